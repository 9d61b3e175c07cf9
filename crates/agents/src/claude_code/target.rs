//! A process of Claude Code that can be signalled: the one that its file says runs the session, and no other in its place.

use super::pid_file::{self, Life, PidFile};
use super::running::{WORD, runs_it};
use crate::evidence::{self, Evidence};
use pilotlight_core::time::Time;
use pilotlight_system::process::{Expected, Force, Handle, is_of_our_user};

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
            return Err(format!("process {pid} is not known to run {WORD} with this home. Nothing was signalled"));
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
