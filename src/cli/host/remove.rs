//! `pilotlight host remove`: takes a machine out of the settings, and takes away the program that `host add` copied there.

use super::super::ask::confirm;
use super::super::context::{Context, runtime};
use super::super::report::{FAILED, REFUSED, USAGE, say};
use super::talk::{hold_off_others, is_confirmed, replaced, state_folder, wait, write_settings};
use anyhow::{Context as _, anyhow};
use pilotlight_engine::config;
use pilotlight_engine::config::edit::{host_entry, names_host, without_host};
use pilotlight_engine::hosts::copied::{Additions, Copied, Copies};
use pilotlight_engine::hosts::remote_shell::{RemoteInfo, RemoteShell, Removed};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use tokio::runtime::Runtime;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The machine's name in the settings
    name: String,
    /// Leave the copy of Pilotlight on the machine
    #[arg(long)]
    keep_program: bool,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (name, yes) = (&*arguments.name, arguments.yes);
    context.report_problems();
    let copies = Copies::read(&state_folder()?);
    let copied = copies.as_ref().ok().and_then(|copies| copies.of(name).cloned());
    let copied = copied.filter(|_| !arguments.keep_program);
    let path = context.config_path.as_deref().context("no folder for settings is known: set HOME")?;
    if context.config.hosts.iter().any(|host| host.name == name) {
        without(path, name)?;
        if !is_confirmed(&format!("Remove {name} from {}?", path.display()), yes) {
            return Ok(ExitCode::from(REFUSED));
        }
        // As they are now: the question may have waited for long.
        let held_off = hold_off_others()?;
        take_out(path, name)?;
        drop(held_off);
        say(&format!("{name} is no longer in the settings"));
    } else if is_unreadable(path, name) {
        say(&format!(
            "the settings cannot be used as they are, so {name} was not removed: mend them with `pilotlight config --edit`"
        ));
        return Ok(ExitCode::from(FAILED));
    } else if copied.is_none() && copies.is_ok() {
        say(&format!("no machine in the settings is called {name:?}: `pilotlight host list` lists them"));
        return Ok(ExitCode::from(USAGE));
    }
    if let (Err(unread), false) = (copies, arguments.keep_program) {
        say(&format!("{unread:#}. If `host add` copied a program to {name}, it is still there"));
        return Ok(ExitCode::from(FAILED));
    }
    copied.map_or(Ok(ExitCode::SUCCESS), |copied| take_away(context, name, copied, yes))
}

/// Takes the machine out of the settings, and leaves them as they were before it was added.
fn take_out(path: &Path, name: &str) -> anyhow::Result<()> {
    let kept = without(path, name)?;
    let text = config::read(path).map_err(|why| anyhow!("{} {why}", path.display()))?;
    let hosts = config::parse(&text, Path::new(".")).0.hosts;
    let entry = hosts.iter().find(|host| host.name == name).map(host_entry).unwrap_or_default();
    match Additions::read(&state_folder()?).undo(name, &text, &entry, kept, &config::reference()) {
        Some(text) => write_settings(path, &text),
        None => fs::remove_file(replaced(path)?).with_context(|| format!("{} cannot be removed", path.display())),
    }
}

/// Takes the program away that was copied for this machine, unless another entry uses it; asks first.
fn take_away(context: &Context, name: &str, copied: Copied, yes: bool) -> anyhow::Result<ExitCode> {
    let others = || context.config.hosts.iter().filter(|host| host.name != name);
    if let Some(other) = others().find(|host| copied.way.is_of(host)) {
        say(&format!("the program there stays: {} uses it, too", other.name));
        let _held_off = hold_off_others()?;
        let mut copies = Copies::read(&state_folder()?)?;
        copies.note(&other.name, Some(copied))?;
        copies.note(name, None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let question =
        format!("Also remove the program that `host add` copied to ~/.local/bin/pilotlight there ({})?", copied.way);
    if !yes && confirm(&question) != Some(true) {
        say("the program there stays");
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = runtime()?;
    let again = || {
        say(&format!("`pilotlight host remove {name}` tries again; or remove ~/.local/bin/pilotlight there yourself"));
        Ok(ExitCode::from(FAILED))
    };
    let (mut shell, info) = match started(&runtime, &copied) {
        Ok(started) => started,
        Err(why) => {
            say(&format!("{name} is not reached, so the program is still there: {why}"));
            return again();
        }
    };
    let uses = match interruptible(&runtime, shell.uses(&copied.sum)) {
        Ok(uses) => uses,
        Err(why) => {
            say(&format!("the program is still there: {why}"));
            return again();
        }
    };
    if let Some(process) = &uses.process {
        say(&format!(
            "the program there stays: it is in use, as by another machine that shows its sessions (process {process}); \
             `pilotlight host remove {name}` removes it later"
        ));
        return Ok(ExitCode::SUCCESS);
    }
    if uses.has_bridge {
        let question = "An agent there has its bridge, which would not work without it. Remove the bridge first?";
        if !yes && confirm(question) != Some(true) {
            say("the program there stays: `pilotlight bridge remove` there removes the bridge");
            return Ok(ExitCode::SUCCESS);
        }
        if let Err(why) = interruptible(&runtime, shell.remove_bridge()) {
            say(&format!("the program is still there: {why}"));
            return again();
        }
        say("the bridge there is removed");
    }
    // What Pilotlight remembers there is another one's, too, if there is one.
    let is_alone = info.programs.iter().all(|found| found.path == info.own_path());
    let made: Vec<_> = copied.made.iter().filter(|made| is_alone || ***made != *"kept").cloned().collect();
    match interruptible(&runtime, shell.remove(&copied.sum, &made)) {
        Ok(removed) => {
            let _held_off = hold_off_others()?;
            Copies::read(&state_folder()?)?.note(name, None)?;
            say(match removed {
                Removed::Now => "the program there is removed",
                Removed::Before => "the program there was removed already",
                Removed::Changed => "another program is there now, and was left alone",
            });
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            say(&format!("the program is still there: {why}"));
            again()
        }
    }
}

/// Whether the settings may have a machine of this name in what is not understood of them.
fn is_unreadable(path: &Path, name: &str) -> bool {
    config::read(path).map_or(true, |text| names_host(&text, name).unwrap_or(true))
}

/// The text of the settings without the machine.
fn without(path: &Path, name: &str) -> anyhow::Result<String> {
    let text = config::read(path).map_err(|why| anyhow!("{} {why}", path.display()))?;
    without_host(&text, name).ok_or_else(|| {
        anyhow!(
            "Pilotlight cannot take {name} out of {} as it is written: remove it with `pilotlight config --edit`",
            path.display()
        )
    })
}

/// Connects, and looks what is there.
fn started(runtime: &Runtime, copied: &Copied) -> Result<(RemoteShell, RemoteInfo), String> {
    interruptible(runtime, RemoteShell::start(copied.way.clone()))
}

/// What comes of this, unless Ctrl-C ends it.
fn interruptible<T>(runtime: &Runtime, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    wait(runtime, work).unwrap_or_else(|| Err("interrupted".to_owned()))
}
