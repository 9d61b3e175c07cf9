//! A process that may be signalled: an owner whose identity was verified, and that no other process can be taken for.
//!
//! An id alone is a weak name to send a signal to: between the look at an owner and the signal it may have ended, and its
//! id been handed out anew. So the system's own hold on the process is taken *first* (a pidfd on Linux, a handle on
//! Windows, on macOS, which has neither, the id with the start time), and the owner is verified *afterwards*: if it is
//! alive then, and what is held has not ended, both are the same process. Right before each signal it is asked again
//! whether that process still is Copilot, since a process may become another program.

#[cfg(target_os = "linux")]
#[path = "target/linux.rs"]
mod platform;
#[cfg(target_os = "macos")]
#[path = "target/macos.rs"]
mod platform;
#[cfg(windows)]
#[path = "target/windows.rs"]
mod platform;

use std::path::Path;

use super::{Claim, Lock, claim, is_copilot, is_of_our_user};
use crate::core::owner::{Held, Owner, UNHELD};
use crate::core::time::Time;
#[cfg(unix)]
use rustix::{io::Errno, process::Signal};

/// An owner that can be signalled, and nobody else instead.
///
/// A process that owns, or may own, more than one session must never be made a target: a signal ends them all. Nothing here
/// can see that; whoever calls [`Target::open`] does.
#[derive(Debug)]
pub struct Target {
    pid: u32,
    names: Vec<String>,
    handle: platform::Handle,
}

/// How hard a process is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// As by Ctrl-C: SIGINT; on Windows Ctrl-C in its console. Copilot writes its shutdown and ends its tools.
    Interrupt,
    /// SIGTERM; on Windows, which has no such request for a program without a window, Ctrl-C once more.
    Terminate,
    /// SIGKILL; on Windows `TerminateProcess`. Nothing is written, and the tools live on.
    Kill,
}

#[cfg(unix)]
impl Force {
    const fn signal(self) -> Signal {
        match self {
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
            Self::Kill => Signal::KILL,
        }
    }
}

/// Why a process was not signalled.
#[cfg(unix)]
fn unsent(pid: u32, error: Errno) -> String {
    match error {
        Errno::SRCH => format!("process {pid} has ended. Nothing was signalled"),
        error => format!("cannot signal process {pid}: {error}"),
    }
}

impl Target {
    /// Holds the process of this lock, verified by the rules of [`claim`], which explains the arguments: it lives, is as old as
    /// the lock, runs Copilot, is of our user, and holds the session in `folder`. Where the system cannot tell the last of
    /// these, the rest is enough if a person `confirmed` that this session is to be ended.
    ///
    /// # Errors
    /// Everything else is refused, with the reason for the user.
    pub fn open(lock: Lock, folder: &Path, names: &[String], now: Time, confirmed: bool) -> Result<Self, String> {
        let pid = lock.pid;
        if pid == 0 || i32::try_from(pid).is_err() || pid == std::process::id() {
            return Err(format!("{pid} is not the id of a Copilot process. Nothing was signalled"));
        }
        let handle = platform::Handle::open(pid, now)?;
        let claim = claim(lock, folder, names, now);
        if matches!(claim.owner, Owner::Alive { .. } | Owner::Unheld { .. }) && !is_of_our_user(pid) {
            return Err(format!("process {pid} is another user's. Nothing was signalled; ask that user to end it"));
        }
        match claim {
            Claim { owner: Owner::Alive { .. }, held: Held::Seen } => {}
            Claim { owner: Owner::Alive { .. }, held: Held::Untold } if confirmed => {}
            Claim { owner: Owner::Alive { .. }, held: Held::Untold | Held::Soon } => {
                return Err(format!(
                    "nothing but its lock says that process {pid} runs this session, and so only `pilotlight stop` ends it. \
                     Nothing was signalled"
                ));
            }
            Claim { owner: Owner::Unheld { .. }, .. } => {
                return Err(format!("{UNHELD} (process {pid}). Nothing was signalled"));
            }
            Claim { owner: Owner::Gone { .. } | Owner::Opened { .. } | Owner::Never, .. } => return Err(no_owner(pid)),
            Claim { owner: Owner::Unknown { .. }, .. } => {
                return Err(format!(
                    "process {pid} cannot be inspected (is it another user's, or in a container?), so it is not certain \
                     that it is Copilot. Nothing was signalled"
                ));
            }
        }
        if handle.has_ended() {
            return Err(no_owner(pid));
        }
        Ok(Self { pid, names: names.to_vec(), handle })
    }

    /// The process id.
    #[cfg(test)]
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Signals the process, after another look at whether it is still the one that was verified, and still Copilot. Returns
    /// at once (on Windows after at most 0.2 s): whether it ends is seen by [`Target::has_ended`].
    ///
    /// # Errors
    /// It is not, or the system forbids it: the reason, for the user.
    pub fn signal(&self, force: Force) -> Result<(), String> {
        let pid = self.pid;
        if self.handle.has_ended() {
            return Err(format!("process {pid} has ended. Nothing was signalled"));
        }
        if !is_copilot(pid, &self.names) {
            return Err(format!("process {pid} no longer runs Copilot. Nothing was signalled"));
        }
        tracing::info!(pid, ?force, "signalling");
        self.handle.signal(force, &self.names)
    }

    /// Whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.handle.has_ended()
    }
}

/// What is said of a lock whose process is not its owner.
fn no_owner(pid: u32) -> String {
    format!(
        "process {pid} does not own the session: it has ended, or its id is another program's by now. Nothing was signalled"
    )
}
