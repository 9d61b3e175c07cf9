//! `pilotlight explain ID`: why a session has its status, and what would change it.

mod page;

use super::asking::{Asks, MaybeNamed};
use super::context::Context;
use super::fold::on_stdout_from;
use super::observe::Effort;
use super::pick::Named;
use super::report::say;
use page::Page;
pub(super) use page::{Lesser, Line, NAME_WIDTH};
use pilotlight_core::action::{Action, bridge_words, offer, questions};
use pilotlight_core::fleet::{Label, Row, Session};
use pilotlight_core::limits::Limits;
use pilotlight_core::remote::Remote;
use pilotlight_core::text::{counted, plain};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::turn::{LastMessage, TurnPhase};
use pilotlight_core::verdict::{Status, Verdict, last_activity};
use pilotlight_core::words::known;
use pilotlight_core::words::refusal::Refusal;
use pilotlight_engine::control::caller::agent_behind;
use pilotlight_engine::last_seen::{HomeHash, SessionMarks};
use pilotlight_engine::past::Depth;
use pilotlight_system::clock::short;
use pilotlight_system::deadline::run_within;
use pilotlight_system::paths::is_local_folder;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Maximum number of sub-agents that are listed.
const SUB_AGENTS_MAX: usize = 20;
/// How long a look at a session's folder may take.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    session: MaybeNamed,
}

impl Arguments {
    /// Those for the session that is named.
    pub(super) fn of(named: &Named) -> Self {
        Self { session: MaybeNamed::of(named) }
    }
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let picked = match arguments.session.pick(context, Asks::Anything, Depth::Whole, Effort::Ask) {
        Ok(picked) => picked,
        Err(code) => return Ok(code),
    };
    let shows = Shows { refusals: Refusals::Explained, last_message: context.config.list.last_message };
    let mut page = page(&picked, &picked.label, picked.now, &context.config.limits, shows);
    if let Some(folder) = gone_folder(&picked)
        && offer(Action::Resume, &picked, picked.row(picked.now, &context.config.limits).0.status).is_ok()
    {
        let why = Refusal::FolderGone { folder: folder.into(), id: (*picked.id).into() };
        page.reword(Action::Resume.name(), &format!("refused — {why}"));
    }
    write!(io::stdout(), "{}", on_stdout_from(&page.to_string(), NAME_WIDTH))?;
    note_told(context, &picked, picked.now.wall);
    Ok(ExitCode::SUCCESS)
}

/// The folder of a session of this machine, if it is gone.
fn gone_folder(session: &Session) -> Option<&str> {
    let folder = session.cwd().filter(|_| session.remote.is_none())?;
    let path = PathBuf::from(folder);
    // A file system may not answer.
    let is_there = run_within("folder", LOOK_MAX, move || is_local_folder(&path)).ok().flatten();
    (is_there == Some(false)).then_some(folder)
}

/// Notes that the user was told of an approval by a command, if a person reads this.
fn note_told(context: &Context, session: &Session, now: Time) {
    let is_read =
        io::stdout().is_terminal() && agent_behind(std::process::id(), &context.config.owners.names).is_none();
    let is_told_of = session.control.approved_by_command.is_some() || session.control.approval_unconfirmed.is_some();
    if !is_told_of || !is_read {
        return;
    }
    let Some(home) = context.home_of(session) else { return };
    let mut seen = context.seen.clone();
    seen.note(
        HomeHash::of(home.folder()),
        &session.id,
        SessionMarks { told: Some(now), ..SessionMarks::default() },
        now,
    );
    if let Err(error) = seen.save(now) {
        say(&format!("{error:#}"));
    }
}

/// How a page shows the actions that are not possible now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusals {
    /// Each with its reason.
    Explained,
    /// By their names.
    Named,
}

/// What a page shows besides what it always does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shows {
    pub(super) refusals: Refusals,
    /// How the last message begins.
    pub(super) last_message: bool,
}

/// All that is known of a session, as lines of a name, in the first [`NAME_WIDTH`] columns, and a value.
pub(super) fn page(session: &Session, label: &Label, now: Moment, limits: &Limits, shows: Shows) -> Page {
    let (row, verdict) = session.row(now, limits);
    if let Some(remote) = &session.remote {
        return remote_page(session, remote, (&row, label), now, shows);
    }
    let mut page = Page::default();
    page.line("session", &*row.id);
    page.line("name", label.to_string());
    if label.agent.is_some() {
        page.line("agent", row.agent.word());
    }
    page.line("status", format!("{}, since {} ({} ago)", row.status, row.since, ago(now, row.since)));
    page.line("because", row.because.to_string());
    page.lesser(Lesser::Changes, "next check", next_check(&verdict, now));
    page.line("last seen", last_seen(session, now));
    page.line("run by", known::owner(session, short));
    if let Some(bridge) = bridge_words(session) {
        page.line("bridge", bridge);
    }
    about(&mut page, session, &row, now);
    turn(&mut page, session, now);
    open_requests(&mut page, session, now);
    open_questions(&mut page, session, now);
    last_message(&mut page, session, shows);
    limits_that_apply(&mut page, session, limits);
    actions(&mut page, session, row.status, shows.refusals);
    page
}

/// The same of a session on another machine, which judges it and knows more.
fn remote_page(session: &Session, remote: &Remote, (row, label): (&Row, &Label), now: Moment, shows: Shows) -> Page {
    let mut page = Page::default();
    page.line("session", &*row.id);
    page.line("machine", &*remote.host.name);
    page.line("name", label.to_string());
    page.line("agent", row.agent.word());
    page.line("status", format!("{}, since {} ({} ago)", row.status, row.since, ago(now, row.since)));
    page.line("because", row.because.to_string());
    if let Some(last) = row.last_progress {
        page.line("last seen", format!("{last} ({} ago)", ago(now, last)));
    }
    if let Some(owner) = &row.owner {
        page.line("run by", format!("process {} on {}, {}", owner.pid, remote.host.name, owner.state));
    }
    if let Some(cwd) = row.cwd.as_deref() {
        page.line("folder", cwd);
    }
    if let Some(branch) = row.branch.as_deref() {
        page.line("branch", branch);
    }
    if let Some(context) = &row.context {
        page.line("context", known::context_use(context));
    }
    for sub_agent in known::sub_agents(&row.background.list, now.wall, SUB_AGENTS_MAX) {
        page.line("sub-agent", sub_agent);
    }
    // Of a machine that is not reached, nobody knows what is open now.
    if remote.unreached.is_none() {
        open_requests(&mut page, session, now);
    }
    open_questions(&mut page, session, now);
    last_message(&mut page, session, shows);
    actions(&mut page, session, row.status, shows.refusals);
    page.line("more", format!("on {}, `pilotlight explain {}` also shows its limits", remote.host.name, row.id));
    page
}

fn last_message(page: &mut Page, session: &Session, shows: Shows) {
    if let Some(message) = session.observed.facts.last_message.as_deref().filter(|_| shows.last_message) {
        page.line("last message", message);
    }
}

fn ago(now: Moment, at: Time) -> Span {
    (now.wall - at).max(Span::ZERO)
}

/// What was last heard of it, where and when.
fn last_seen(session: &Session, now: Moment) -> String {
    if let Some(hook_report) = &session.observed.hook_report {
        return format!("{} ({} ago), by its hook", hook_report.at.wall, ago(now, hook_report.at.wall));
    }
    last_activity(&session.observed.facts, &session.liveness).map_or_else(
        || "nothing yet".into(),
        |last| format!("{} ({} ago), by {}", last.at.wall, ago(now, last.at.wall), last.words()),
    )
}

/// When the status is judged again.
fn next_check(verdict: &Verdict, now: Moment) -> String {
    match verdict.recheck_at {
        Some(at) => format!("at the next event, at the latest in {}", at - now.awake),
        None => "at the next event".into(),
    }
}

fn about(page: &mut Page, session: &Session, row: &Row, now: Moment) {
    let facts = &session.observed.facts;
    let is_told = session.observed.hook_report.is_some();
    let or_none = |text: Option<&str>| text.map_or("unknown".to_owned(), |text| plain(text, 400).into());
    page.line("folder", or_none(row.cwd.as_deref()));
    if let Some(branch) = &row.branch {
        page.lesser(Lesser::Branch, "branch", &**branch);
    }
    if !is_told {
        page.lesser(Lesser::Model, "model", or_none(facts.model.as_deref()));
    }
    if let Some(context) = known::context(facts) {
        page.lesser(Lesser::Context, "context", context);
    }
    page.lesser(
        Lesser::Log,
        "log",
        match is_told {
            true => "none is read: its hook only sends reports".to_owned(),
            false => format!("{} read{}", number_of(facts.events, "event"), skipped_lines(facts.skipped)),
        },
    );
    if let Some(background) = known::background(row.background.counts()) {
        page.line("background", background);
    }
    for sub_agent in known::sub_agents(&row.background.list, now.wall, SUB_AGENTS_MAX) {
        page.line("sub-agent", sub_agent);
    }
    if let Some(denials) = known::denials(session) {
        page.line("denials", denials);
    }
}

fn number_of(n: u64, what: &str) -> String {
    counted(usize::try_from(n).unwrap_or(usize::MAX), what)
}

fn skipped_lines(n: u64) -> String {
    match n {
        0 => String::new(),
        1 => "; skipped 1 line that is not an event".into(),
        n => format!("; skipped {n} lines that are not events"),
    }
}

fn turn(page: &mut Page, session: &Session, now: Moment) {
    if session.observed.hook_report.is_some() {
        return;
    }
    let Some(turn) = &session.observed.facts.turn else { return page.line("turn", "none is open") };
    let said = match turn.last_message {
        LastMessage::Nothing => "the model has not answered since",
        LastMessage::Request => "the model's last message asked for tools",
        LastMessage::Answer { .. } => "the model has answered",
    };
    let phase = match turn.phase {
        TurnPhase::Running => "",
        TurnPhase::Answered(_) => ", but the turn has not ended yet",
        TurnPhase::MayContinue(_) => ", but autopilot may continue",
        TurnPhase::Unanswered(_) => ", and the model stopped without one",
        TurnPhase::AwaitsOpenWork => ", but a tool or request is still open",
    };
    let opened = ago(now, turn.opened.wall);
    let used = match turn.used {
        0 => "no tool used".to_owned(),
        used => format!("{} started, {} succeeded", number_of(used.into(), "tool"), turn.succeeded),
    };
    page.line("turn", format!("open for {opened}; {used}; {said}{phase}"));
    for tool in &turn.tools {
        let command = tool.command.as_deref().map(|command| format!(": {command}")).unwrap_or_default();
        page.line("open tool", format!("{}, started {} ago{command}", tool.name, ago(now, tool.at.wall)));
    }
}

/// The open requests, each with the id that `approve --request` takes.
fn open_requests(page: &mut Page, session: &Session, now: Moment) {
    for request in &session.observed.facts.requests {
        let by = session.observed.facts.asker(request).map(|by| format!(" by its sub-agent {by}")).unwrap_or_default();
        let (kind, since) = (&request.kind, ago(now, request.at.wall));
        let options = request.over_bridge.as_ref();
        let held = options.filter(|options| options.is_held).map_or("", |_| ", not yet shown in the terminal");
        page.line(
            "asks permission",
            format!("to use {kind}, asked {since} ago{by}{held}; request {}", request.request),
        );
        if let Some(rules) = options.and_then(|options| options.always.as_deref()) {
            page.line("suggests", format!("to allow from now on: {rules} (`pilotlight approve --always`)"));
        }
    }
}

/// The questions that are known to be open, each with the id that `answer --request` takes.
fn open_questions(page: &mut Page, session: &Session, now: Moment) {
    for asking in questions(session) {
        let request = asking.form.as_ref().map(|form| format!("; request {}", form.request)).unwrap_or_default();
        let since = ago(now, asking.since);
        page.line("asks you", format!("\"{}\", asked {since} ago{request}", asking.question.text));
    }
}

fn limits_that_apply(page: &mut Page, session: &Session, limits: &Limits) {
    let (facts, probe_result) = (&session.observed.facts, session.probe_result());
    let Some(turn) = &facts.turn else { return };
    let limits = &session.limits(limits);
    let (situation, quiet, stuck) = turn.silence_limits(facts.compaction.is_some(), probe_result, limits);
    let waits_for_model = turn.tools.is_empty() || probe_result.is_some();
    let busy = if waits_for_model || limits.tool_busy_stuck == stuck {
        String::new()
    } else {
        format!(", or after {} if the tool's process is busy", limits.tool_busy_stuck)
    };
    page.lesser(
        Lesser::Limits,
        "limits",
        format!("{situation}: quiet after {quiet} of silence, stuck after {stuck}{busy}"),
    );
}

/// What each action would do now, or why it is refused.
fn actions(page: &mut Page, session: &Session, status: Status, refusals: Refusals) {
    let mut refused = Vec::new();
    for action in Action::ALL {
        let mut line = |said: String| page.line_of(Lesser::of(action), action.name(), said);
        match offer(action, session, status) {
            Ok(does) => line(does.to_string()),
            Err(why) if refusals == Refusals::Explained => line(format!("refused — {why}")),
            Err(_) => refused.push(action.name()),
        }
    }
    if !refused.is_empty() {
        page.line("not possible", format!("{} (press m to see why)", refused.join(", ")));
    }
}
