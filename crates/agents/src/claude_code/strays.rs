//! Processes that run a session although no file says so: their file was deleted, is in a home that is not followed, or
//! names another session; and what else shows that a process runs what its file names.
//!
//! Only a file names a process's session, and any program of the user can write it. Three facts support it: the command line,
//! the common folder, and a log that changes when the process reports a new state.

use super::pid_file::{self, Life, PidFile};
use super::running;
use super::store::{self, PROJECTS};
use crate::runners::Runner;
use pilotlight_core::owner::Doubt;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::file_times::modified;
use pilotlight_system::process::{SLACK, arguments, executable, folder_of};
#[cfg(target_os = "linux")]
use pilotlight_system::process::{inner_id, start_ticks};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How far apart a process says that what it does has changed, and writes its log. Seen: 0.7 s.
const TOGETHER: Span = Span::seconds(3);

/// Whether a process may have written a session's log, by when it started and where it works.
pub(super) fn may_have_written(runner: &Runner, touched: Time, log: &Path) -> bool {
    runner.may_have_written(touched, |folder| is_of(log, folder))
}

/// Whether a process in the folder of this log goes on with a session, and has no file yet that says with which.
fn shows_nothing_yet(runner: &Runner, log: &Path) -> bool {
    let works_there = || runner.folder.as_deref().is_some_and(|folder| is_of(log, folder));
    runner.continues && !runner.is_helper && runner.claims.is_empty() && runner.home.is_some() && works_there()
}

/// Whether a log is among those of the sessions that work in this folder.
fn is_of(log: &Path, folder: &Path) -> bool {
    let project = log.parent().and_then(Path::file_name);
    let is_project = || project.is_some_and(|project| project == &*store::project_of(&folder.to_string_lossy()));
    is_project() || super::head::read(log).and_then(|head| head.cwd).is_some_and(|cwd| Path::new(&*cwd) == folder)
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

/// Whether nothing speaks against a process running what its file names.
fn is_plausible(file: &PidFile, now: Time) -> bool {
    let Some(log) = store::find_log(&file.home.join(PROJECTS), &file.session) else { return true };
    if names(file) {
        return true;
    }
    let rivals = rivals(file, &log, now);
    works_with(file, &log) && (is_written_with(file, &log) || !rivals.iter().any(|rival| is_written_with(file, rival)))
}

/// Whether something besides its file shows that a process runs a session. `now` is the wall clock.
pub(super) fn is_shown(file: &PidFile, log: &Path, now: Time) -> bool {
    if names(file) {
        return true;
    }
    let has_log = log.exists();
    let is_written = || touched(log).is_some_and(|at| started(file, now).is_none_or(|start| at + SLACK >= start));
    if has_log && !(works_with(file, log) && is_written()) {
        return false;
    }
    let rivals = rivals(file, log, now);
    rivals.is_empty()
        || has_log && is_written_with(file, log) && !rivals.iter().any(|rival| is_written_with(file, rival))
}

/// Whether the command line of a file's process names its session.
fn names(file: &PidFile) -> bool {
    let role = executable(file.pid).and_then(|program| running::role(&program, &arguments(file.pid)?));
    role.and_then(|role| role.named).is_some_and(|named| named == file.session)
}

/// Whether a process works in the folder that this log is of. What is not known does not speak against it.
fn works_with(file: &PidFile, log: &Path) -> bool {
    folder_of(file.pid).is_none_or(|folder| is_of(log, &folder))
}

/// Whether a log was last written when a process said that what it does has changed.
fn is_written_with(file: &PidFile, log: &Path) -> bool {
    file.since.zip(touched(log)).is_some_and(|(since, at)| at - since <= TOGETHER && since - at <= TOGETHER)
}

/// The other logs beside this one that the process may have written: since it started, and of sessions that no process
/// names.
fn rivals(file: &PidFile, log: &Path, now: Time) -> Vec<PathBuf> {
    let named: HashSet<_> = pid_file::all(&file.home)
        .into_iter()
        .filter(|other| other.life(now) == Life::Alive)
        .map(|other| other.session)
        .collect();
    let start = started(file, now);
    let is_rival = |path: &PathBuf| {
        let id = path.file_name().and_then(|name| store::session_of(name.to_str()?));
        id.is_some_and(|id| *id != *file.session && !named.contains(id))
            && touched(path).is_some_and(|at| start.is_none_or(|start| at + SLACK >= start))
    };
    let folder = log.parent().and_then(|folder| fs::read_dir(folder).ok());
    folder.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_rival).collect()
}

fn touched(log: &Path) -> Option<Time> {
    fs::metadata(log).ok().map(|meta| modified(&meta))
}

fn started(file: &PidFile, now: Time) -> Option<Time> {
    match pilotlight_system::process::read(file.pid, now) {
        pilotlight_system::process::Reading::Process { started, .. } => started,
        _ => file.started,
    }
}
