//! `pilotlight host remove`: takes a machine out of the settings, and takes away the program that `host add` copied there.

use super::super::ask::confirm;
use super::super::context::{Context, runtime};
use super::super::report::{FAILED, REFUSED, USAGE, say};
use super::talk::{hold_off_others, is_confirmed, wait, write_settings};
use crate::config;
use crate::config::edit::{names_host, without_host};
use crate::hosts::copied::{Copied, Copies};
use crate::hosts::there::{Errand, Removed};
use crate::system::paths;
use anyhow::{Context as _, anyhow};
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Its name in the settings
    name: String,
    /// Leave the program that `host add` copied where it is
    #[arg(long)]
    keep_program: bool,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(context: &Context, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (name, yes) = (&*arguments.name, arguments.yes);
    let project = paths::project().context("no folder for settings is known: set HOME")?;
    context.report_problems();
    let copies = Copies::read(&paths::state_folder(&project));
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
        write_settings(path, &without(path, name)?)?;
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

/// Takes the program away that was copied for this machine, unless another entry uses it; asks first.
fn take_away(context: &Context, name: &str, copied: Copied, yes: bool) -> anyhow::Result<ExitCode> {
    let project = paths::project().context("no folder for what Pilotlight remembers is known: set HOME")?;
    let others = || context.config.hosts.iter().filter(|host| host.name != name);
    if let Some(other) = others().find(|host| copied.way.is_of(host)) {
        say(&format!("the program there stays: {} uses it, too", other.name));
        let _held_off = hold_off_others()?;
        let mut copies = Copies::read(&paths::state_folder(&project))?;
        copies.note(&other.name, Some(copied))?;
        copies.note(name, None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let question =
        format!("Remove the program, too, that `host add` copied to ~/.local/bin/pilotlight there ({})?", copied.way);
    if !yes && confirm(&question) != Some(true) {
        say("the program there stays");
        return Ok(ExitCode::SUCCESS);
    }
    match remove_program(&copied)? {
        Ok(removed) => {
            let _held_off = hold_off_others()?;
            Copies::read(&paths::state_folder(&project))?.note(name, None)?;
            say(match removed {
                Removed::Now => "the program there is removed",
                Removed::Before => "the program there was removed already",
                Removed::Changed => "the program there is another one by now, and was left alone",
            });
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            say(&format!("{name} is not reached, so the program is still there: {why}"));
            say(&format!(
                "`pilotlight host remove {name}` tries again; or remove ~/.local/bin/pilotlight there yourself"
            ));
            Ok(ExitCode::from(FAILED))
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
        anyhow!("{} is written so that only you can take {name} out of it: `pilotlight config --edit`", path.display())
    })
}

fn remove_program(copied: &Copied) -> anyhow::Result<Result<Removed, String>> {
    let removed = async {
        let (mut errand, _) = Errand::start(copied.way.clone()).await?;
        errand.remove(&copied.sum).await
    };
    Ok(wait(&runtime()?, removed).unwrap_or_else(|| Err("interrupted".to_owned())))
}
