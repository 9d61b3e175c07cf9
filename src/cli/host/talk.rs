//! What the commands of `host` say, ask and wait for.

use super::super::ask::{CANNOT_ASK, confirm};
use super::super::fold::on_stdout;
use super::super::report::{LINE_MAX, say};
use anyhow::{Context as _, anyhow, bail};
use pilotlight_core::text::plain;
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::signals::Signals;
use pilotlight_system::{deadline, paths, state_file};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The file in the state folder that whoever changes the machines has locked.
const LOCK: &str = "hosts.lock";
/// How long to wait while it stays with another one, who reads and writes two small files meanwhile.
const HELD_OFF_FOR: Duration = Duration::from_secs(5);

/// Waits for work that Ctrl-C ends. `None` if it did.
pub(super) fn wait<T>(runtime: &Runtime, work: impl Future<Output = T>) -> Option<T> {
    runtime.block_on(async {
        let Ok(mut signals) = Signals::new() else { return Some(work.await) };
        tokio::select! {
            done = work => Some(done),
            () = signals.end() => None,
        }
    })
}

/// Asks the user, unless that was answered beforehand; says so if nothing is done.
pub(super) fn is_confirmed(question: &str, yes: bool) -> bool {
    match if yes { Some(true) } else { confirm(question) } {
        Some(true) => return true,
        Some(false) => say("nothing was changed"),
        None => say(&format!("{CANNOT_ASK}, so nothing was changed: add `--yes` if you agree")),
    }
    false
}

/// Holds off every other process that adds or removes a machine, until it is dropped.
///
/// # Errors
/// If another one takes too long, or nothing can be written there.
pub(super) fn hold_off_others() -> anyhow::Result<File> {
    let folder = state_folder()?;
    let path = folder.join(LOCK);
    let cannot = || format!("{} cannot be written", path.display());
    paths::make_folder(&folder).with_context(cannot)?;
    let opened = plain_file::open_with(File::options().create(true).write(true), &path, Links::Refused);
    let (file, _) = opened.with_context(cannot)?;
    let locked = deadline::lock_in_turn(file, HELD_OFF_FOR).with_context(cannot)?;
    locked.context("another `pilotlight host` is changing the machines: try again")
}

/// Where Pilotlight keeps what it remembers.
///
/// # Errors
/// If no such place is known.
pub(super) fn state_folder() -> anyhow::Result<PathBuf> {
    let project = paths::project().context("no folder for what Pilotlight remembers is known: set HOME")?;
    Ok(paths::state_folder(&project))
}

/// Replaces the text of the settings.
pub(super) fn write_settings(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = state_file::replace(&replaced(path)?, text.as_bytes());
    written.map_err(|error| anyhow!("{} cannot be written: {}", path.display(), error.root_cause()))
}

/// Checks that this could be done.
pub(super) fn check_settings(path: &Path) -> anyhow::Result<()> {
    let checked = state_file::check_replaceable(&replaced(path)?);
    checked.map_err(|error| {
        anyhow!("{} cannot be written, so nothing was changed: {}", path.display(), error.root_cause())
    })
}

/// The file that is replaced: the target of a link, not the link.
///
/// # Errors
/// If it is a link that leads to no file.
pub(super) fn replaced(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().or_else(|_| match path.read_link() {
        Ok(target) => bail!(
            "{} is a link to {}, which is not there, so nothing was changed: make that file, or remove the link",
            path.display(),
            target.display()
        ),
        Err(_) => Ok(path.to_owned()),
    })
}

/// Prints a line. Its spaces stay as they are, which `plain` would make one.
pub(super) fn tell(line: &str) -> io::Result<()> {
    let line: Vec<_> = line.split(' ').map(|word| plain(word, LINE_MAX)).collect();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", on_stdout(&line.join(" ")))?;
    out.flush()
}
