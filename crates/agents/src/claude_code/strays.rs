//! Processes that run a session although no file says so: their file was deleted, is in a home that is not followed, or
//! names another session.

use super::pid_file::{self, Life, PidFile};
use super::store;
use super::target::is_plausible;
use crate::runners::Runner;
use pilotlight_core::owner::Doubt;
use pilotlight_core::time::Time;
#[cfg(target_os = "linux")]
use pilotlight_system::process::{inner_id, start_ticks};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Whether a process may have written a session's log, by when it started and where it works.
pub(super) fn may_have_written(runner: &Runner, touched: Time, log: &Path) -> bool {
    runner.may_have_written(touched, |folder| store::is_of(log, folder))
}

/// Whether a process in the folder of this log goes on with a session, and has no file yet that says with which.
fn shows_nothing_yet(runner: &Runner, log: &Path) -> bool {
    let works_there = || runner.folder.as_deref().is_some_and(|folder| store::is_of(log, folder));
    runner.continues && !runner.is_helper && runner.claims.is_empty() && runner.home.is_some() && works_there()
}

/// What suggests that one of these processes runs a session that none claims, and which of them. `homes` are those whose
/// files are known.
pub(super) fn find<'a>(
    runners: impl Iterator<Item = &'a Runner>,
    (root, log, id): (&Path, &Path, &str),
    touched: Time,
    homes: &[PathBuf],
    now: Time,
) -> Option<(u32, Doubt)> {
    let suspected = runners.filter_map(|runner| {
        let why = match &runner.named {
            Some(named) if **named == *id => Doubt::Named,
            // Until it shows which one it goes on with, it may be this.
            None if shows_nothing_yet(runner, log) => Doubt::WorksThere,
            _ if may_have_written(runner, touched, log) => Doubt::WorksThere,
            _ => return None,
        };
        (runner.shares(root, log) && !shows_another(runner, homes, now)).then_some((runner.pid, why))
    });
    suspected.min_by_key(|(pid, why)| (*why != Doubt::Named, *pid))
}

/// Whether a process has ended, or what it says that it runs is borne out.
fn shows_another(runner: &Runner, homes: &[PathBuf], now: Time) -> bool {
    #[cfg(target_os = "linux")]
    if start_ticks(runner.pid) != Some(runner.born) {
        return true;
    }
    // In a container it has another id, by which its file is named.
    #[cfg(target_os = "linux")]
    let (pid, is_its) = (inner_id(runner.pid), |file: &PidFile| file.is_of(runner.pid, runner.born));
    #[cfg(not(target_os = "linux"))]
    let (pid, is_its) = (runner.pid, |_: &PidFile| true);
    let homes: HashSet<&Path> = runner.home.iter().chain(homes).map(PathBuf::as_path).collect();
    let files = homes.into_iter().filter_map(|home| pid_file::read(home, pid)).filter(is_its);
    files
        .filter(|file| file.life(now) != Life::Dead)
        .any(|file| is_plausible(&PidFile { pid: runner.pid, ..file }, now))
}
