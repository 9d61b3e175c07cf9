//! `pilotlight host`: adds other machines to the settings, tries them, lists and removes them.
//!
//! Nothing is connected to but what the user names, and nothing is written, here or there, before the user agrees.

mod add;
mod remove;
mod suggest;
mod talk;
mod test;

use super::charset::{has_unicode_stdout, words};
use super::context::{Context, runtime};
use super::hosts::ask_tray;
use super::json;
use super::report::{LINE_MAX, say};
use super::table::pad;
use crate::config::{Host, Reach};
use crate::control::HostReport;
use crate::core::text::{counted, plain};
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use unicode_width::UnicodeWidthStr;

/// Arguments of `host`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add a machine: try it, copy Pilotlight there if it is missing, write the settings; asks first. Without a name,
    /// choose among those that `host suggest` finds
    Add(add::Arguments),
    /// List the machines in the settings, with what the running tray knows of them
    List(List),
    /// Connect to a machine, and say what is there
    Test(Named),
    /// Remove a machine from the settings, and the program that `host add` copied there; asks first
    Remove(remove::Arguments),
    /// Look for machines that could be added, without connecting to any: in your ssh config, and what tailscale, docker,
    /// podman, wsl, gh and incus know of
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
    /// Its name in the settings
    name: String,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        Action::Add(arguments) => add::run(context, arguments),
        Action::List(arguments) => list(context, arguments.json),
        Action::Test(Named { name }) => test::run(context, name),
        Action::Remove(arguments) => remove::run(context, arguments),
        Action::Suggest(arguments) => suggest::run(context, arguments),
    }
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
}

impl<'a> Row<'a> {
    fn new(host: &'a Host, report: Option<&HostReport>) -> Self {
        let (ssh, program, command) = match &host.reach {
            Reach::Ssh { to, program } => (Some(&**to), Some(&**program), None),
            Reach::Command(words) => (None, None, Some(&**words)),
        };
        let why = report.and_then(|report| report.trouble.as_ref()).map(|why| plain(why, LINE_MAX));
        let state = match (report, &why) {
            (None, _) => "not-asked",
            (Some(_), Some(_)) => "not-reached",
            (Some(_), None) => "reached",
        };
        let sessions = report.filter(|_| why.is_none()).map(|report| report.sessions.len());
        Self { name: &host.name, ssh, program, command, state, why, sessions }
    }

    fn words(&self) -> String {
        match (&self.why, self.sessions) {
            (Some(why), _) => format!("not reached: {why}"),
            (None, Some(sessions)) => format!("reached, {}", counted(sessions, "session")),
            (None, None) => "not asked: no tray runs that knows it".to_owned(),
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
    let report = |host: &Host| reports.iter().find(|report| *report.host == *host.name);
    let rows: Vec<_> = context.config.hosts.iter().map(|host| Row::new(host, report(host))).collect();
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
        writeln!(out, "{}", words(&line, has_unicode_stdout()))?;
    }
    Ok(ExitCode::SUCCESS)
}
