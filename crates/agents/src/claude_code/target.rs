//! What shows that a process runs a session; and the process that can be signalled, the one that its file says runs the
//! session, and no other in its place.
//!
//! Only a file names a process's session, and any program of the user can write it. Three facts support it: the command line,
//! the common folder, and a log that changes when the process reports a new state.

use super::pid_file::{self, Life, PidFile};
use super::running::{self, DISPLAY_NAME, runs_it};
use super::store::{self, PROJECTS};
use crate::evidence::{self, Evidence};
use pilotlight_core::time::{Span, Time};
use pilotlight_system::file_times::modified;
use pilotlight_system::process::{
    Expected, Force, Handle, PidStatus, SLACK, arguments, executable, folder_of, is_of_our_user, read,
};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How far apart a process says that what it does has changed, and writes its log. Seen: 0.7 s.
const TOGETHER: Span = Span::seconds(3);

/// What shows that a process runs a session: its own file.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    file: PidFile,
}

/// A process that can be signalled.
#[derive(Debug)]
pub(crate) struct Target {
    claim: Claim,
    now: Time,
    handle: Handle,
}

impl Claim {
    pub(super) fn new(file: &PidFile) -> Self {
        Self { file: file.clone() }
    }

    /// Whether the process still is the one that wrote the file, and still says that it runs the session.
    fn holds(&self, now: Time) -> bool {
        let says = pid_file::read(&self.file.home, self.file.pid);
        let is_same = |file: PidFile| file.is_same_process(&self.file) && file.session == self.file.session;
        says.is_some_and(is_same) && self.file.life(now) == Life::Alive
    }
}

impl Evidence for Claim {
    fn pid(&self) -> u32 {
        self.file.pid
    }

    fn ends_by(&self, force: Force) -> bool {
        force == Force::Terminate
    }

    fn open(&self, _names: &[String], now: Time, _confirmed: bool) -> Result<Box<dyn evidence::Target>, String> {
        let pid = self.file.pid;
        if self.file.is_background {
            return Err(format!("process {pid} would be started again by its supervisor. Nothing was signalled"));
        }
        let gone = || {
            format!(
                "process {pid} does not run the session: it has ended, or runs another one by now. Nothing was signalled"
            )
        };
        let handle = Handle::open(pid, now)?.ok_or_else(gone)?;
        if !self.holds(now) || handle.has_ended() {
            return Err(gone());
        }
        if !is_of_our_user(pid) {
            return Err(format!("process {pid} is another user's. Nothing was signalled; ask that user to end it"));
        }
        // Any tool of a session can write such a file, about any process.
        if !runs_it(pid, &self.file.home) {
            return Err(format!(
                "process {pid} is not known to run {DISPLAY_NAME} with this home. Nothing was signalled"
            ));
        }
        Ok(Box::new(Target { claim: self.clone(), now, handle }))
    }
}

impl evidence::Target for Target {
    // Verified once more right before.
    fn signal(&self, force: Force) -> Result<(), String> {
        let holds = |pid| runs_it(pid, &self.claim.file.home) && self.claim.holds(self.now);
        self.handle.signal(force, &Expected { name: "the session", runs_in: &holds })
    }

    fn has_ended(&self) -> bool {
        self.handle.has_ended()
    }
}

/// Whether nothing speaks against a process running what its file names.
pub(super) fn is_plausible(file: &PidFile, now: Time) -> bool {
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
    folder_of(file.pid).is_none_or(|folder| store::is_of(log, &folder))
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
    match read(file.pid, now) {
        PidStatus::Process { started, .. } => started,
        _ => file.started,
    }
}
