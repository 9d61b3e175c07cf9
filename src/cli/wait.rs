//! `pilotlight wait`: waits until sessions have a status, for scripts. It waits for events, as `watch` does, and sees what
//! that sees.
//!
//! This module reads the arguments, and says how it ended. [`awaited`] decides when what is waited for is true.

mod awaited;

use super::agents::Agents;
use super::context::{Context, watch_until_stopped};
use super::fold::on_stdout;
use super::json;
use super::observe::Effort;
use super::pick::{Named, NotFound, Picked, complete, find};
use super::report::{FAILED, LINE_MAX, NO_HOME, TIMED_OUT, USAGE, say};
use super::watch::Removed;
use awaited::{Awaited, Hit, NAMES, Target, Until, Which};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use pilotlight_agents::home::Home;
use pilotlight_core::session::Key;
use pilotlight_core::text::{counted, listed, plain};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_engine::config;
use pilotlight_engine::hosts::Purpose;
use pilotlight_engine::past::Depth;
use pilotlight_engine::{Fleet, Trouble, View};
use pilotlight_system::clock::Clock;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

/// Maximum number of sessions that a message names.
const NAMED_MAX: usize = 5;
/// Maximum length of a wrong word in a message, in characters.
const WORD_MAX: usize = 40;

/// Arguments of `wait`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The sessions, each by its id, the beginning of its id, its folder or its title. Default: every session that has not ended, and those that start during the wait
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete))]
    sessions: Vec<String>,
    /// What to wait for: a status such as `idle`, or `needs-you` for every status in which a session needs you. Separate several statuses with commas. Default: `needs-you,idle,ended` if you name sessions, else `needs-you`
    #[arg(long, value_name = "STATUS", value_delimiter = ',', add = ArgValueCompleter::new(complete_status))]
    until: Vec<String>,
    /// Wait until one of the sessions has that status (the default)
    #[arg(long, conflicts_with = "all")]
    any: bool,
    /// Wait until all of the sessions have that status at the same time
    #[arg(long)]
    all: bool,
    /// Give up after this time, such as `30m` or `1h30m`, with exit code 6; `0` checks once. Time that the machine sleeps does not count
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Span>,
    /// Print JSON: one object for each session that has that status
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(super) agents: Agents,
}

fn timeout(text: &str) -> Result<Span, String> {
    match text.parse() {
        Ok(seconds @ 0..=1_000_000_000) => Ok(Span::seconds(seconds)),
        _ => config::parse_span_or_zero(text).map_err(|error| format!("it {error}")),
    }
}

fn complete_status(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let (before, last) = typed.rsplit_once(',').map_or(("", &*typed), |(before, last)| (before, last));
    let fits = NAMES.iter().filter(|name| name.starts_with(last));
    fits.map(|name| if before.is_empty() { (*name).into() } else { format!("{before},{name}").into() }).collect()
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (clock, names) = (Clock::start(), &arguments.sessions);
    let began = clock.now().awake;
    context.report_problems();
    let until = match until(&arguments.until, names.is_empty()) {
        Ok(until) => until,
        Err(unknown) => {
            say(&format!("no status is called {:?}; the names are {}", plain(&unknown, WORD_MAX), listed(&NAMES)));
            return Ok(ExitCode::from(USAGE));
        }
    };
    let which = if names.is_empty() {
        if context.has_no_home() && context.hosts().next().is_none() {
            context.unreadable_homes().iter().for_each(|problem| say(problem));
            return Ok(ExitCode::from(NO_HOME));
        }
        Which::Every
    } else {
        match targets(context, names, arguments.agents.only_host()) {
            Ok(targets) => Which::These(targets),
            Err(NotFound::Unknown) => return Ok(ExitCode::from(NO_HOME)),
            Err(not_found) => return Ok(not_found.code()),
        }
    };
    let mut view = WaitView {
        awaited: Awaited::new(which, until, arguments.all),
        homes: &context.homes,
        has_looked: false,
        left: arguments.timeout.map(|timeout| timeout - (clock.now().awake - began)),
        deadline: None,
        troubles: Vec::new(),
        end: None,
    };
    view.end = view.awaited.hits_at_start().map(End::True);
    if view.end.is_none() {
        watch_until_stopped(context.engine_with_hosts(Purpose::Watch), &mut view)?;
    }
    Ok(match view.end {
        Some(End::True(hits)) => {
            print(&hits, arguments.json)?;
            ExitCode::SUCCESS
        }
        Some(End::Gone(label)) => {
            say(&format!("{label} is gone: there is no such session any more"));
            ExitCode::from(NO_HOME)
        }
        Some(End::TimedOut) => {
            say(&timed_out(arguments.timeout.unwrap_or_default(), &view.awaited));
            ExitCode::from(TIMED_OUT)
        }
        None => {
            say("interrupted before a session had that status");
            ExitCode::from(FAILED)
        }
    })
}

/// What is to be waited for.
///
/// # Errors
/// The word that is none.
fn until(words: &[String], is_unnamed: bool) -> Result<Vec<Until>, String> {
    if words.is_empty() {
        return Ok(Until::usual(is_unnamed));
    }
    words.iter().map(|word| Until::named(word.trim()).ok_or_else(|| word.clone())).collect()
}

/// The sessions that are named, each once.
///
/// # Errors
/// Why one was not found. The user has been told then.
fn targets(context: &Context, names: &[String], host: Option<&str>) -> Result<Vec<Target>, NotFound> {
    let mut targets: Vec<Target> = Vec::new();
    for name in names {
        let named = Named { id: name.clone(), host: host.map(Into::into) };
        let Picked { session, label, now } = find(context, &named, Depth::Whole, Effort::Ask)?;
        let target = Target::new(&session, label, now, &context.config.limits);
        if !targets.iter().any(|known| known.is_same(&target)) {
            targets.push(target);
        }
    }
    Ok(targets)
}

/// Says of which sessions it is true.
fn print(hits: &[Hit], json: bool) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for Hit { row, is_gone } in hits {
        match (json, is_gone) {
            (true, true) => {
                json::write(&mut out, &Removed { id: &row.id, removed: true, host: row.host.as_deref() })?;
                writeln!(out)?;
            }
            (true, false) => {
                json::write(&mut out, row)?;
                writeln!(out)?;
            }
            (false, true) => writeln!(out, "{}", on_stdout(&plain(&format!("{}: gone", row.label), LINE_MAX)))?,
            (false, false) => {
                let line = format!("{}: {}, {}", row.label, row.status, row.ageless_reason());
                writeln!(out, "{}", on_stdout(&plain(&line, LINE_MAX)))?;
            }
        }
    }
    out.flush()
}

/// Why nothing is printed.
fn timed_out(timeout: Span, awaited: &Awaited) -> String {
    let mut missing = awaited.missing();
    let more = missing.len().saturating_sub(NAMED_MAX);
    missing.truncate(NAMED_MAX);
    if more > 0 {
        missing.push(counted(more, "more session"));
    }
    let missing = if missing.is_empty() { String::new() } else { format!(": {}", missing.join("; ")) };
    if timeout < Span::seconds(1) {
        return format!("no session has that status now{missing}");
    }
    format!("timed out after {timeout}{missing}")
}

/// How the wait ended.
enum End {
    /// It is true of these.
    True(Vec<Hit>),
    /// A session of which it can no longer become true, by its name for people.
    Gone(String),
    TimedOut,
}

/// Waits, and shows nothing.
struct WaitView<'a> {
    awaited: Awaited,
    homes: &'a [Home],
    /// Whether the engine has told of its first look.
    has_looked: bool,
    /// How much time was left at the start of the engine.
    left: Option<Span>,
    /// When to give up, by the awake clock.
    deadline: Option<Time>,
    /// The machines that are known not to be reached.
    troubles: Vec<Trouble>,
    end: Option<End>,
}

impl View for WaitView<'_> {
    fn show(&mut self, fleet: &Fleet, _changed: &[Key], removed: &[Key], now: Moment) -> ControlFlow<()> {
        let known = &self.troubles;
        let news = fleet.troubles().iter().filter(|trouble| !known.iter().any(|known| known.host == trouble.host));
        news.for_each(|trouble| say(&trouble.words(now.wall)));
        self.troubles = fleet.troubles().to_vec();
        if !std::mem::replace(&mut self.has_looked, true) {
            let is_listed = |id: &str| fleet.shown().any(|shown| shown.key.host.is_none() && *shown.key.id == *id);
            self.awaited.note_missed(is_listed, |id| self.homes.iter().any(|home| home.has(id)));
        }
        if let Some(left) = self.left.take() {
            self.deadline = Some(now.awake + left);
        }
        let is_loading = |shown: &pilotlight_engine::Shown<'_>| shown.session.observed.is_loading;
        let rows = fleet.shown().filter(|shown| !is_loading(shown)).map(|shown| (shown.key, shown.row));
        self.awaited.take(rows, removed);
        // A machine that is yet to tell of its sessions may have one that is not so.
        let is_complete = !fleet.has_untold() && !fleet.shown().any(|shown| is_loading(&shown));
        self.end = match self.awaited.hits(is_complete) {
            Some(hits) => Some(End::True(hits)),
            None => self.awaited.lost().map(End::Gone),
        };
        if self.end.is_none() && self.deadline.is_some_and(|deadline| deadline <= now.awake) {
            self.end = Some(End::TimedOut);
        }
        if self.end.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn redraw_at(&self) -> Option<Time> {
        self.deadline
    }
}
