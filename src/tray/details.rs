//! The details of one session, worded for `Why` in its submenu.

use super::notifications::NotificationState;
use super::view::{COLUMNS, Text};
use pilotlight_core::action::{ServerState, bridge_words};
use pilotlight_core::fleet::{Row, Session, SubAgentView};
use pilotlight_core::limits::Limits;
use pilotlight_core::remote::Remote;
use pilotlight_core::session::NoFileEvents;
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::text::{counted, fit, isolated, lines, plain};
use pilotlight_core::verdict::Status;
use pilotlight_core::words::known;
pub use pilotlight_engine::Shown as Source;
use pilotlight_system::clock::short;

/// Maximum number of sub-agents that are listed.
const SUB_AGENTS_MAX: usize = 4;

/// What the details depend on besides the session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetailsContext<'a> {
    /// The limits of the verdict.
    pub limits: &'a Limits,
    /// The user's home, which is shown as `~`.
    pub user_home: Option<&'a str>,
    /// Whether it is shown how the last message begins.
    pub last_message: bool,
    /// What is muted.
    pub notifications: &'a NotificationState,
}

/// The reason for the status, in at most `max` lines whose ages are worded when they are shown. `named`: with the
/// status.
pub(crate) fn reason(row: &Row, named: bool, max: usize) -> Vec<Text> {
    let named = |words: &str| if named { format!("{}: {words}", row.status) } else { words.to_owned() };
    match &row.short_reason {
        short_reason @ ShortReason::Silent { what, .. } => {
            let what = lines(&named(what), COLUMNS, max.saturating_sub(1)).into_iter().map(Text::from);
            std::iter::once(Text::age(short_reason.clone())).chain(what).collect()
        }
        _ => lines(&named(&plain(&row.because.to_string(), 300)), COLUMNS, max).into_iter().map(Text::from).collect(),
    }
}

/// How the last message of a session begins that rests, or asks by that message alone.
pub(crate) fn last_message(source: &Source<'_>, context: &DetailsContext<'_>) -> Option<Text> {
    let facts = &source.session.observed.facts;
    let rests = facts.turn.is_none() && matches!(source.row.status, Status::Idle | Status::NeedsInput);
    let message = facts.last_message.as_deref().filter(|_| context.last_message && rests)?;
    Some(Text::from(isolated(&format!("“{}”", fit(message, COLUMNS - 2))).into_owned()))
}

/// The reason for the status, what would change it, and further details.
pub(crate) fn why(source: &Source<'_>, context: &DetailsContext<'_>) -> Vec<Text> {
    let Source { row, session, .. } = *source;
    let mut texts = reason(row, true, 3);
    if let Some(remote) = &session.remote {
        texts.extend(why_there(row, remote));
        if row.last_progress.is_some() {
            texts.push(Text::since_last("Last activity", source.last_progress));
        }
        return texts;
    }
    let mut say = |text: String| texts.extend(lines(&plain(&text, 200), COLUMNS, 2).into_iter().map(Text::from));
    if let Some(doing) = doing(session) {
        say(format!("Now: {doing}"));
    }
    if let Some(turn) = &session.observed.facts.turn
        && turn.question().is_none()
        && session.observed.facts.requests.is_empty()
    {
        let limits = session.limits(context.limits);
        let is_compacting = session.observed.facts.compaction.is_some();
        let (situation, quiet, stuck) = turn.silence_limits(is_compacting, session.probe_result(), &limits);
        say(format!("Limits: {situation}, quiet after {quiet} of silence, stuck after {stuck}"));
    }
    if let Some(denials) = known::denials(session) {
        say(denials);
    }
    if let Some(part) = control(source) {
        say(part);
    }
    let branch = row.branch.as_deref().map(|branch| format!(" ({branch})")).unwrap_or_default();
    say(format!("Folder: {}{branch}", folder(row, context.user_home)));
    if row.label.agent.is_some() {
        say(format!("Agent: {}", row.agent));
    }
    say(format!("Run by: {}", known::owner(session, short)));
    if let Some(no_file_events) = &session.no_file_events {
        say(format!("Files: {}", without_file_events(no_file_events, session.may_be_open())));
    }
    say(format!("Model: {}", session.observed.facts.model.as_deref().unwrap_or("not known")));
    if let Some(context) = known::context(&session.observed.facts) {
        say(format!("Context: {context}"));
    }
    if let Some(background) = known::background(row.background.counts()) {
        say(format!("Background: {background}"));
    }
    for sub_agent in sub_agents(row) {
        say(sub_agent);
    }
    if context.notifications.quiet.is_muted(&row.id, row.cwd.as_deref()) {
        say("Muted: no popups".into());
    }
    if row.last_progress.is_some() {
        texts.push(Text::since_last("Last activity", source.last_progress));
    }
    texts
}

/// The details of a session on another machine, which judges it.
fn why_there(row: &Row, remote: &Remote) -> Vec<Text> {
    let name = &remote.host.name;
    let owner = row.owner.as_ref().map(|owner| format!("Run by: process {} on {name}, {}", owner.pid, owner.state));
    let branch = row.branch.as_deref().map(|branch| format!(" ({branch})")).unwrap_or_default();
    let told = [
        Some(format!("Machine: {name}")),
        Some(format!("Folder: {}{branch}", folder(row, None))),
        Some(format!("Agent: {}", row.agent)).filter(|_| row.label.agent.is_some()),
        owner,
        row.context.as_ref().map(|context| format!("Context: {}", known::context_use(context))),
        known::background(row.background.counts()).map(|background| format!("Background: {background}")),
    ];
    told.into_iter()
        .flatten()
        .chain(sub_agents(row))
        .flat_map(|text| lines(&plain(&text, 200), COLUMNS, 2))
        .map(Text::from)
        .collect()
}

/// The sub-agents behind a session, each on a line. Times do not age while the menu is open.
fn sub_agents(row: &Row) -> Vec<String> {
    let list = &row.background.list;
    let words = |it: &SubAgentView| {
        let does = it.does.as_deref().map(|does| format!(": {does}")).unwrap_or_default();
        format!("Sub-agent, since {}, last activity {}: {}{does}", short(it.since), short(it.last), it.name)
    };
    let more = list.len().checked_sub(SUB_AGENTS_MAX).filter(|more| *more > 0);
    let more = more.map(|more| counted(more, "more sub-agent"));
    list.iter().take(SUB_AGENTS_MAX).map(words).chain(more).collect()
}

fn folder(row: &Row, home: Option<&str>) -> String {
    let Some(path) = row.cwd.as_deref() else { return "not known".into() };
    match home.filter(|home| home.len() > 1).and_then(|home| path.strip_prefix(home)) {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with(['/', '\\']) => format!("~{rest}"),
        _ => path.into(),
    }
}

/// The current activity: the last open tool and its command.
fn doing(session: &Session) -> Option<String> {
    let facts = &session.observed.facts;
    if facts.compaction.is_some() {
        return Some("compacting its history".into());
    }
    let Some(tool) = facts.turn.as_ref()?.tools.last() else { return Some("a turn is open, no tool in it".into()) };
    let more = facts.turn.as_ref().map_or(0, |turn| turn.tools.len() - 1);
    let more = if more > 0 { format!("{} more, ", counted(more, "tool")) } else { String::new() };
    let command = tool.command.as_deref().map(|command| format!(": {command}")).unwrap_or_default();
    Some(format!("{more}{}{command}", tool.name))
}

fn without_file_events(why: &NoFileEvents, is_live: bool) -> String {
    let why = match why {
        NoFileEvents::FileSystem(name) => format!("{name} reports no changes of files"),
        NoFileEvents::Refused => "the system cannot watch them".into(),
    };
    format!("{why}; read {}", if is_live { "every 5 s" } else { "once a minute" })
}

/// Our connection to the session, and the outcome of the last order.
fn control(source: &Source<'_>) -> Option<String> {
    let control = &source.session.control;
    let bridge = bridge_words(source.session);
    let server = match &control.server {
        ServerState::Hosted(_) => "it runs in a server of Pilotlight's own",
        ServerState::Attached => "attached to its server",
        ServerState::Listening => "its server can be reached",
        ServerState::Refused(_) => "its server refused Pilotlight",
        ServerState::NotListening | ServerState::Unknown if let Some(bridge) = &bridge => bridge,
        ServerState::NotListening | ServerState::Unknown if control.outcome.is_none() => return None,
        ServerState::NotListening | ServerState::Unknown => "it is only watched",
    };
    let outcome = control.outcome.as_ref().map(|(_, words)| format!("; {words}")).unwrap_or_default();
    Some(format!("Pilotlight: {server}{outcome}"))
}
