//! `pilotlight host`: adds other machines to the settings, tries them, lists and removes them.
//!
//! Nothing is connected to but what the user names, and nothing is written, here or there, before the user agrees.

mod add;
mod remove;
mod retry;
mod suggest;
mod talk;
mod test;
mod update;

use super::context::{Context, runtime};
use super::fold::on_stdout;
use super::hosts::{ask_tray, unreached_of};
use super::json;
use super::report::{LINE_MAX, say};
use super::table::pad;
use super::trays::ask_first_within;
use pilotlight_core::remote::Unreached;
use pilotlight_core::text::{counted, plain};
use pilotlight_core::time::Time;
use pilotlight_engine::config::{HostSetting, Reach};
use pilotlight_engine::control::{self, HostReport};
use pilotlight_system::clock::Clock;
use pilotlight_system::identity;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// Arguments of `host`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add a machine: connect, copy Pilotlight to it if needed, and write the settings; asks first. Without a name, choose
    /// from the list of `host suggest`
    Add(add::Arguments),
    /// List the machines in the settings, and whether the running tray reaches them
    List(List),
    /// Connect to a machine, and report each step; makes the running tray connect again, too
    Test(Named),
    /// Make the running tray try again at once, for one machine or for all that it does not reach
    Retry(retry::Arguments),
    /// Update a machine's Pilotlight to this version, if `host add` put it there; asks first
    Update(update::Arguments),
    /// Remove a machine from the settings, and the copy of Pilotlight that `host add` made; asks first
    Remove(remove::Arguments),
    /// List machines that you could add, from your ssh config, docker, podman and wsl; connects to none
    Suggest(suggest::Arguments),
}

#[derive(Debug, clap::Args)]
struct List {
    /// Print a JSON array: one object per machine
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The machine's name in the settings
    name: String,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        Action::Add(arguments) => add::run(context, arguments),
        Action::List(arguments) => list(context, arguments.json),
        Action::Test(Named { name }) => test::run(context, name),
        Action::Retry(arguments) => retry::run(context, arguments),
        Action::Update(arguments) => update::run(context, arguments),
        Action::Remove(arguments) => remove::run(context, arguments),
        Action::Suggest(arguments) => suggest::run(context, arguments),
    }
}

/// The name of another machine that this one is, as far as the tray knows them by what they call themselves; empty for the
/// one that this program runs on.
fn same_as(machine: &str, name: &str, reports: &[HostReport]) -> Option<Box<str>> {
    if identity::own_machine().as_deref() == Some(machine) {
        return Some("".into());
    }
    let is_other = |report: &&HostReport| *report.host != *name && report.machine.as_deref() == Some(machine);
    reports.iter().find(is_other).map(|report| report.host.clone())
}

/// How long the tray may take to find out whether a machine is reached: until it gives up, and a little more.
const TRIED_WITHIN: Duration = Duration::from_secs(30);

/// Has the running tray take up at once what may have become of a machine, by another connection if `anew`. Returns what came
/// of it: `None` without a tray that knows it.
async fn tell_tray(name: &str, anew: bool) -> Option<HostReport> {
    let retried = ask_first_within(TRIED_WITHIN, async |folder: &Path| control::ask_to_retry(folder, name, anew).await);
    retried.await.ok().flatten()
}

/// A machine, in the JSON.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    ssh: Option<&'a str>,
    program: Option<&'a str>,
    command: Option<&'a [String]>,
    /// `reached`, `not-reached`, or `not-asked` where no tray knows.
    state: &'static str,
    why: Option<Box<str>>,
    sessions: Option<usize>,
    /// Since when it is not reached, and when it is tried again.
    since: Option<Time>,
    next_try: Option<Time>,
    /// The machine in the settings that it is, too, or an empty text if it is this machine.
    same_as: Option<Box<str>>,
    /// Since when and when next, for people.
    #[serde(skip)]
    unreached: Option<Unreached>,
}

impl<'a> Row<'a> {
    fn new(host: &'a HostSetting, report: Option<&HostReport>, same_as: Option<Box<str>>, now: Time) -> Self {
        let (ssh, program, command) = match &host.reach {
            Reach::Ssh { to, program, .. } => (Some(&**to), Some(&**program), None),
            Reach::Command(words) => (None, None, Some(&**words)),
        };
        let why = report.and_then(|report| report.trouble.as_ref()).map(|why| plain(why, LINE_MAX));
        let state = match (report, &why) {
            (None, _) => "not-asked",
            (Some(_), Some(_)) => "not-reached",
            (Some(_), None) => "reached",
        };
        let sessions = report.filter(|_| why.is_none()).map(|report| report.sessions.len());
        let lost = report.filter(|report| report.trouble.is_some());
        let (since, next_try) = (lost.and_then(|lost| lost.since), lost.and_then(|lost| lost.again));
        let unreached = lost.and_then(|lost| unreached_of(lost, now));
        Self { name: &host.name, ssh, program, command, state, why, sessions, since, next_try, same_as, unreached }
    }

    fn words(&self) -> String {
        let state = match (&self.why, &self.unreached, self.sessions) {
            (Some(why), Some(unreached), _) => format!("{unreached}: {why}"),
            (Some(why), None, _) => format!("not reached: {why}"),
            (None, _, Some(sessions)) => format!("reached, {}", counted(sessions, "session")),
            (None, _, None) => "unknown: no tray that watches it is running".to_owned(),
        };
        match self.same_as.as_deref() {
            None => state,
            Some("") => state + " (it is this machine itself)",
            Some(other) => format!("{state} (it is the same machine as {other})"),
        }
    }

    fn how(&self) -> String {
        match (self.ssh, self.command) {
            (Some(to), _) => format!("ssh {to}"),
            (None, command) => command.unwrap_or_default().join(" "),
        }
    }
}

fn list(context: &Context, as_json: bool) -> anyhow::Result<ExitCode> {
    context.report_problems();
    let reports = runtime()?.block_on(ask_tray()).unwrap_or_default();
    let report = |host: &HostSetting| reports.iter().find(|report| *report.host == *host.name);
    let now = Clock::start().now().wall;
    let row = |host| {
        let report = report(host);
        let machine = report.and_then(|report| report.machine.as_deref());
        Row::new(host, report, machine.and_then(|machine| same_as(machine, &host.name, &reports)), now)
    };
    let rows: Vec<_> = context.config.hosts.iter().map(row).collect();
    let mut out = io::stdout().lock();
    if as_json {
        json::write_pretty(&mut out, &rows)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        say("there is no other machine in the settings: `pilotlight host suggest` looks for some");
    }
    let width = |of: &dyn Fn(&Row<'_>) -> String| rows.iter().map(|row| of(row).width()).max().unwrap_or_default();
    let how = |row: &Row<'_>| plain(&row.how(), 40).into();
    let (names, ways) = (width(&|row| row.name.to_owned()), width(&how));
    for row in &rows {
        let line = format!("{}  {}  {}", pad(row.name, names), pad(&how(row), ways), row.words());
        writeln!(out, "{}", on_stdout(&line))?;
    }
    Ok(ExitCode::SUCCESS)
}
