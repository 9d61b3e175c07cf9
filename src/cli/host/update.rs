//! `pilotlight host update`: replaces the program that `host add` copied to a machine by this one. The settings stay as they
//! are, and so does what Pilotlight remembers there.

use super::super::context::{Context, runtime};
use super::super::report::{FAILED, REFUSED, USAGE, say};
use super::add::{copies, copy, look, megabytes, program_for};
use super::talk::{hold_off_others, is_confirmed, tell, wait};
use super::tell_tray;
use pilotlight_engine::hosts::copied::Copied;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The machine's name in the settings. Required without `--all`
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Update every machine that `host add` copied Pilotlight to
    #[arg(long)]
    all: bool,
    /// A `pilotlight` unpacked from a release, to copy if this program cannot run on the machine
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    context.report_problems();
    let copies = copies()?;
    if let Some(name) = &arguments.name {
        if !context.config.hosts.iter().any(|host| host.name == *name) {
            say(&format!("no machine in the settings is called {name:?}: `pilotlight host list` lists them"));
            return Ok(ExitCode::from(USAGE));
        }
        if copies.of(name).is_none() {
            say(&format!(
                "`host add` did not install Pilotlight on {name}: update it there in the way that it was installed"
            ));
            return Ok(ExitCode::from(REFUSED));
        }
    }
    let is_meant = |name: &str| arguments.name.as_ref().is_none_or(|meant| meant == name);
    let names = context.config.hosts.iter().map(|host| &*host.name).filter(|name| is_meant(name));
    let meant: Vec<_> = names.filter_map(|name| Some((name, copies.of(name)?.clone()))).collect();
    if meant.is_empty() {
        tell("`host add` copied a program to no machine in the settings")?;
    }
    let mut worst = 0;
    for (name, copied) in meant {
        worst = worst.max(update(arguments, name, copied)?);
    }
    Ok(ExitCode::from(worst))
}

/// Replaces the program on one machine. Returns the exit code.
fn update(arguments: &Arguments, name: &str, copied: Copied) -> anyhow::Result<u8> {
    let runtime = runtime()?;
    let Some((mut shell, info)) = look(&runtime, name, &copied.way)? else { return Ok(FAILED) };
    let program = match program_for(arguments.program.as_deref(), &info)? {
        Ok(program) => program,
        Err(why) => {
            say(&format!("{why}; nothing was changed"));
            return Ok(REFUSED);
        }
    };
    tell(&format!("  replace {} there ({})", info.own_path(), megabytes(program.len())))?;
    if !is_confirmed("Do it?", arguments.yes) {
        return Ok(REFUSED);
    }
    match copy(&runtime, &mut shell, &program) {
        Ok(sum) => {
            let held_off = hold_off_others()?;
            copies()?.note(name, Some(Copied { sum, ..copied }))?;
            drop(held_off);
            say(&format!("{name} is updated"));
            // What runs there for it is of the program before.
            wait(&runtime, tell_tray(name, true));
            Ok(0)
        }
        Err(why) => {
            say(&format!("the program was not replaced: {why}"));
            Ok(FAILED)
        }
    }
}
