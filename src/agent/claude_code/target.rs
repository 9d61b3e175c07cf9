//! A process of Claude Code that can be signalled: the one that its file says runs the session, and no other in its place.

use super::pid_file::{self, Life, PidFile};
use super::profile::PROFILE;
use crate::agent::callers::agent_of;
use crate::core::time::Time;
use crate::system::identity::Identity;
use crate::system::process::{self, Expected, Force, Handle, Reading, is_of_our_user};
use std::fs;
use std::path::{Path, PathBuf};

/// What shows that a process runs a session: its own file.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    home: PathBuf,
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
    pub(super) fn new(home: &Path, file: &PidFile) -> Self {
        Self { home: home.to_owned(), file: file.clone() }
    }

    /// The process.
    pub(crate) const fn pid(&self) -> u32 {
        self.file.pid
    }

    /// Whether the process still is the one that wrote the file, and still says that it runs the session.
    fn holds(&self, now: Time) -> bool {
        let says = pid_file::read(&self.home, self.file.pid);
        let is_same = |file: PidFile| file.is_same_process(&self.file) && file.session == self.file.session;
        says.is_some_and(is_same) && self.file.life(now) == Life::Alive
    }

    /// Holds the process, verified. `now` is the wall clock.
    ///
    /// # Errors
    /// Any other process is refused, with the reason for the user.
    pub(crate) fn open(&self, now: Time) -> Result<Target, String> {
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
        if !runs_it(pid, &self.home) {
            let word = PROFILE.names.word;
            return Err(format!("process {pid} is not known to run {word} with this home. Nothing was signalled"));
        }
        Ok(Target { claim: self.clone(), now, handle })
    }
}

impl Target {
    /// Signals the process, verified once more right before.
    ///
    /// # Errors
    /// It has ended, runs another session, or the system forbids the signal: the reason, for the user.
    pub(crate) fn signal(&self, force: Force) -> Result<(), String> {
        let holds = |pid| runs_it(pid, &self.claim.home) && self.claim.holds(self.now);
        self.handle.signal(force, &Expected { name: "the session", runs_in: &holds })
    }

    /// Whether the process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.handle.has_ended()
    }
}

/// Whether a process runs Claude Code with this home. A file in a copy of its home is of another time: it may run another
/// session by now.
pub(super) fn runs_it(pid: u32, home: &Path) -> bool {
    agent_of(pid, &[]) == Some(PROFILE.names.word) && home_of(pid).is_none_or(|its| is_same_folder(&its, home))
}

/// A process that may run any session whose log was written since it started: its own file cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct MayRun {
    pub(super) pid: u32,
    /// When it started, at the earliest, by the wall clock.
    pub(super) since: Time,
}

/// Those of these processes that run Claude Code with this home. `now` is the wall clock.
pub(super) fn may_run(home: &Path, pids: &[u32], now: Time) -> impl Iterator<Item = MayRun> {
    let running = pids.iter().filter(|pid| runs_it(**pid, home));
    running.filter_map(move |&pid| match process::read(pid, now) {
        Reading::Process { started, .. } => {
            Some(MayRun { pid, since: started.map_or(Time(0), |at| at - process::SLACK) })
        }
        Reading::Absent | Reading::Hidden => None,
    })
}

/// The home of a process, by its environment. `None` if that does not tell.
#[cfg(target_os = "linux")]
fn home_of(pid: u32) -> Option<PathBuf> {
    let variables = process::variables(pid, &[PROFILE.home_variable, "HOME"])?;
    let value =
        |name: &str| variables.iter().find(|(is, value)| is == name && !value.is_empty()).map(|(_, value)| value);
    let named = value(PROFILE.home_variable).map(PathBuf::from);
    named.or_else(|| Some(Path::new(value("HOME")?).join(PROFILE.home))).filter(|home| home.is_absolute())
}

/// The home of a process: the system does not tell.
#[cfg(not(target_os = "linux"))]
const fn home_of(_: u32) -> Option<PathBuf> {
    None
}

fn is_same_folder(one: &Path, other: &Path) -> bool {
    let identity = |folder: &Path| fs::metadata(folder).ok().map(|meta| Identity::of(&meta));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}
