//! `pilotlight host suggest`: machines that could be added, each with the command that adds it; and the choice among them.

use super::super::ask::{CANNOT_ASK, prompt};
use super::super::context::{Context, runtime};
use super::super::json;
use super::super::report::{FAILED, say};
use super::super::table::pad;
use super::talk::{tell, wait};
use pilotlight_engine::hosts::command::Way;
use pilotlight_engine::hosts::suggest::{Candidate, Suggested, candidates};
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;
use unicode_width::UnicodeWidthStr;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print a JSON array: one object per machine
    #[arg(long)]
    json: bool,
}

/// A machine, in the JSON.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    source: &'static str,
    ssh: Option<&'a str>,
    /// The words that run a command there.
    before: Option<&'a [String]>,
    /// The command that adds it.
    command: String,
}

impl<'a> Row<'a> {
    fn new(candidate: &'a Candidate) -> Self {
        let (ssh, before) = match &candidate.way {
            Way::Ssh(to) => (Some(&**to), None),
            Way::Command(words) => (None, Some(&**words)),
        };
        Self { name: &candidate.name, source: candidate.source, ssh, before, command: candidate.command() }
    }
}

const NONE: &str = "found no machine to add: `pilotlight host add NAME --ssh USER@ADDRESS` adds one";

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    context.report_problems();
    let Some(found) = find(context)? else { return Ok(ExitCode::from(FAILED)) };
    if arguments.json {
        let rows: Vec<_> = found.iter().map(Row::new).collect();
        let mut out = io::stdout().lock();
        json::write_pretty(&mut out, &rows)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    #[cfg(target_os = "linux")]
    crate::doctor::containers::words(&context.config.owners.names).iter().for_each(|words| say(words));
    if found.is_empty() {
        say(NONE);
    }
    let width = found.iter().map(|candidate| candidate.source.width()).max().unwrap_or_default();
    for candidate in &found {
        tell(&format!("{}  {}", pad(candidate.source, width), candidate.command()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Looks for them, and says why some may be missing. `None` if the user ended it, and was told.
fn find(context: &Context) -> anyhow::Result<Option<Vec<Candidate>>> {
    let suggested = wait(&runtime()?, candidates(&context.config.hosts, Vec::new()));
    let Some(Suggested { candidates, missing }) = suggested else {
        say("interrupted");
        return Ok(None);
    };
    missing.iter().for_each(|words| say(words));
    Ok(Some(candidates))
}

/// Has the user choose one of them. `None` if none is chosen, of which the user was told.
pub(super) fn choose(context: &Context) -> anyhow::Result<Option<Candidate>> {
    let Some(mut found) = find(context)? else { return Ok(None) };
    if found.is_empty() {
        say(NONE);
        return Ok(None);
    }
    tell("Machines that could be added:")?;
    let (digits, width) =
        (found.len().to_string().len(), found.iter().map(|one| one.name.width()).max().unwrap_or_default());
    for (n, candidate) in found.iter().enumerate() {
        let name = pad(&candidate.name, width);
        tell(&format!("  {:>digits$}  {name}  {} ({})", n + 1, candidate.way, candidate.source))?;
    }
    let typed = prompt("Which one? Type its number or its name; Enter for none: ");
    let Some(typed) = typed else {
        say(&format!("{CANNOT_ASK}: `pilotlight host add NAME` adds one of them"));
        return Ok(None);
    };
    let at = match typed.parse::<usize>() {
        Ok(number) if found.iter().all(|one| one.name != typed) => number.checked_sub(1).filter(|at| *at < found.len()),
        _ => found.iter().position(|candidate| candidate.name == typed),
    };
    match at {
        Some(at) => Ok(Some(found.swap_remove(at))),
        None => {
            say(if typed.is_empty() {
                "nothing was changed"
            } else {
                "no machine in the list has this number or name; nothing was changed"
            });
            Ok(None)
        }
    }
}
