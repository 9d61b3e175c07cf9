//! An owner that can be signalled: a process that runs one thread by itself. The daemon never is.
//!
//! The handle is opened *first* and the owner verified *afterwards*, so both are the same process. Right before each
//! signal the handle checks again that it runs Codex.

use super::daemon;
use super::lock::{Holder, Lock};
use crate::evidence::{self, Evidence};
use crate::program_file::is_named;
use pilotlight_core::time::Time;
use pilotlight_system::process::{Expected, Force, Handle, arguments, executable, is_of_our_user};
use std::path::{Path, PathBuf};

/// The file name of the program.
pub(super) const PROGRAM: &str = "codex";

/// What shows that a process runs a thread: a lock in a home, which it holds.
#[derive(Debug)]
pub(super) struct HeldLock {
    pub(super) home: PathBuf,
    pub(super) id: Box<str>,
    pub(super) pid: u32,
}

impl Evidence for HeldLock {
    fn pid(&self) -> u32 {
        self.pid
    }

    // All signals end it alike, and leave its turn open.
    fn ends_by(&self, force: Force) -> bool {
        force != Force::Interrupt
    }

    fn open(&self, _names: &[String], now: Time, _confirmed: bool) -> Result<Box<dyn evidence::Target>, String> {
        Ok(Box::new(Target::open(&self.home, &self.id, self.pid, now)?))
    }
}

/// An owner that can be signalled.
#[derive(Debug)]
pub(crate) struct Target(Handle);

impl Target {
    /// Holds this process, verified as the one that holds the lock of the thread, of our user, and no service.
    ///
    /// # Errors
    /// Any other process is refused, with the reason for the user.
    pub(crate) fn open(home: &Path, id: &str, pid: u32, now: Time) -> Result<Self, String> {
        let gone = || format!("process {pid} does not hold the session any more. Nothing was signalled");
        let handle = Handle::open(pid, now)?.ok_or_else(gone)?;
        match Lock::of(home, id).map(|lock| lock.holder()) {
            Some(Holder::Process(holder)) if holder == pid => {}
            Some(Holder::Untold) => {
                return Err(format!("this system does not show that process {pid} runs it: end it in its terminal"));
            }
            _ => return Err(gone()),
        }
        if !is_of_our_user(pid) {
            return Err(format!("process {pid} is another user's. Nothing was signalled; ask that user to end it"));
        }
        if !runs_codex(pid) || arguments(pid).is_none_or(|arguments| daemon::serves(&arguments)) {
            return Err(format!("process {pid} is not known to run this session alone. Nothing was signalled"));
        }
        if handle.has_ended() { Err(gone()) } else { Ok(Self(handle)) }
    }
}

impl evidence::Target for Target {
    fn signal(&self, force: Force) -> Result<(), String> {
        self.0.signal(force, &Expected { name: "Codex", runs_in: &runs_codex })
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}

/// Whether a process runs Codex.
pub(super) fn runs_codex(pid: u32) -> bool {
    executable(pid).is_some_and(|path| path.file_name().is_some_and(|name| is_named(name, PROGRAM)))
}
