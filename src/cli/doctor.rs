//! `pilotlight doctor`: finds what may keep Pilotlight from working, and suggests or applies remedies.

use super::ask::{CANNOT_ASK, confirm, has_terminal};
use super::context::Context;
use super::fold::{on_stdout, on_stdout_from};
use super::report::{LINE_MAX, REFUSED, say};
use super::{color, json};
use crate::doctor::bridge::running;
use crate::doctor::{Finding, Level, examine};
use clap::ColorChoice;
use pilotlight_core::text::{counted, plain};
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print a JSON array: each check, its level, its finding and the remedy
    #[arg(long, conflicts_with = "fix")]
    json: bool,
    /// Repair Pilotlight's own files; asks before each repair
    #[arg(long)]
    fix: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.fix && !has_terminal() {
        say(&format!("`--fix` asks before each repair. {CANNOT_ASK}: nothing was done"));
        return Ok(ExitCode::from(REFUSED));
    }
    let check_context = context.check_context();
    let mut findings = examine(&check_context);
    findings.extend(running(&check_context.sessions));
    if arguments.json {
        let mut out = io::stdout().lock();
        json::write_pretty(&mut out, &findings)?;
        writeln!(out)?;
    } else {
        print(&findings, context.color)?;
    }
    if arguments.fix && apply_fixes(&findings)? {
        // The settings may have changed.
        findings = examine(&Context::new(&context.named_homes).check_context());
        writeln!(io::stdout(), "\n{}", summary(&findings))?;
    }
    Ok(if findings.iter().any(|finding| finding.level == Level::Problem) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The width of the word for how bad a finding is.
const WORD_WIDTH: usize = 8;
/// The column in which findings begin.
const SAID_COLUMN: usize = 24;

fn print(findings: &[Finding], choice: ColorChoice) -> io::Result<()> {
    let colours = color::on_stdout(choice);
    let mut out = io::stdout().lock();
    for Finding { check, level, said, remedy, .. } in findings {
        let colour = match level {
            Level::Ok => "32",
            Level::Warning => "33",
            Level::Problem => "31",
        };
        let line = format!("{:<WORD_WIDTH$} {check:<14} {}", level.word(), plain(said, LINE_MAX));
        let line = on_stdout_from(&line, SAID_COLUMN);
        match line.split_at(WORD_WIDTH) {
            (word, rest) if colours => writeln!(out, "\u{1b}[{colour}m{word}\u{1b}[0m{rest}")?,
            _ => writeln!(out, "{line}")?,
        }
        if let Some(remedy) = remedy {
            let line = format!("{:SAID_COLUMN$}→ {}", "", plain(remedy, LINE_MAX));
            writeln!(out, "{}", on_stdout_from(&line, SAID_COLUMN + 2))?;
        }
    }
    writeln!(out, "\n{}", summary(findings))
}

fn summary(findings: &[Finding]) -> String {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    match (count(Level::Problem), count(Level::Warning)) {
        (0, 0) => "All is well.".into(),
        (0, warnings) => format!("No problem; {}.", counted(warnings, "warning")),
        (problems, 0) => format!("{}.", counted(problems, "problem")),
        (problems, warnings) => format!("{}, {}.", counted(problems, "problem"), counted(warnings, "warning")),
    }
}

/// Applies each fix, asking first. Returns whether any was applied.
fn apply_fixes(findings: &[Finding]) -> io::Result<bool> {
    let fixes: Vec<_> = findings.iter().filter_map(|finding| finding.fix.as_ref()).collect();
    if fixes.is_empty() {
        writeln!(io::stdout(), "There is nothing that Pilotlight can fix by itself.")?;
        return Ok(false);
    }
    let mut any = false;
    for fix in fixes {
        if confirm(&plain(&fix.question(), LINE_MAX)) != Some(true) {
            say("it was left as it is");
            continue;
        }
        match fix.apply() {
            Ok(done) => {
                any = true;
                writeln!(io::stdout(), "{}", on_stdout(&plain(&done, LINE_MAX)))?;
            }
            Err(error) => say(&format!("it could not be fixed: {error:#}")),
        }
    }
    Ok(any)
}
