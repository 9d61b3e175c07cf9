//! An owner that can be signalled: Copilot's side of [`Handle`], which never signals another process in its place.
//!
//! The handle is opened *first* and the owner verified *afterwards*, so both are the same process. Right before each
//! signal the handle checks again that it runs Copilot. Nothing else in the program opens such a handle.

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::path::{Path, PathBuf};

use super::identity::is_copilot;
use super::owner::{Claim, Lock, claim};
use crate::evidence::{self, Evidence};
use pilotlight_core::owner::{HoldProof, Owner};
use pilotlight_core::time::Time;
use pilotlight_system::process::{Expected, Force, Handle, is_of_our_user};

/// What shows that a process owns a session: a lock in the session's folder.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) lock: Lock,
    pub(super) folder: PathBuf,
}

impl Evidence for Locked {
    fn pid(&self) -> u32 {
        self.lock.pid
    }

    fn open(&self, names: &[String], now: Time, confirmed: bool) -> Result<Box<dyn evidence::Target>, String> {
        Ok(Box::new(Target::open(self.lock, &self.folder, names, now, confirmed)?))
    }
}

/// An owner that can be signalled.
///
/// A process that owns, or may own, more than one session must never become a target: a signal ends them all. That
/// cannot be checked here; the caller of [`Target::open`] checks it.
#[derive(Debug)]
pub struct Target {
    names: Vec<String>,
    handle: Handle,
}

impl Target {
    /// Holds the process of this lock, verified by the rules of [`claim`], which explains the arguments: it is alive,
    /// as old as the lock, runs Copilot, is our user's, and holds the session in `folder`. If the system cannot show
    /// the last of these, the others are enough if a person `confirmed` that this session is to be ended.
    ///
    /// # Errors
    /// Any other process is refused, with the reason for the user.
    pub fn open(lock: Lock, folder: &Path, names: &[String], now: Time, confirmed: bool) -> Result<Self, String> {
        let pid = lock.pid;
        if !lock.may_name_copilot() {
            return Err(format!("{pid} is not the id of a Copilot process. Nothing was signalled"));
        }
        let handle = Handle::open(pid, now)?.ok_or_else(|| no_owner(pid))?;
        let claim = claim(lock, folder, names, now);
        if matches!(claim.owner, Owner::Alive { .. } | Owner::Unheld { .. }) && !is_of_our_user(pid) {
            return Err(format!("process {pid} is another user's. Nothing was signalled; ask that user to end it"));
        }
        match claim {
            Claim { owner: Owner::Alive { .. }, held: HoldProof::Verified } => {}
            Claim { owner: Owner::Alive { .. }, held: HoldProof::Unverified } if confirmed => {}
            Claim { owner: Owner::Alive { .. }, held: HoldProof::Unverified | HoldProof::Pending } => {
                return Err(format!(
                    "only its lock says that process {pid} runs this session: end it with `pilotlight stop`. Nothing was signalled"
                ));
            }
            Claim { owner: Owner::Unheld { .. }, .. } => {
                return Err(format!(
                    "its lock names process {pid}, which does not have it open. Nothing was signalled"
                ));
            }
            Claim { owner: Owner::Gone { .. } | Owner::Opened { .. } | Owner::Never, .. } => return Err(no_owner(pid)),
            Claim { owner: Owner::Unknown { .. } | Owner::Doubtful { .. }, .. } => {
                return Err(format!(
                    "process {pid} cannot be inspected (is it another user's, or in a container?), so it is not certain \
                     that it is Copilot. Nothing was signalled"
                ));
            }
        }
        if handle.has_ended() {
            return Err(no_owner(pid));
        }
        Ok(Self { names: names.to_vec(), handle })
    }

    /// The process id.
    #[cfg(test)]
    pub(crate) fn pid(&self) -> u32 {
        self.handle.pid()
    }
}

impl evidence::Target for Target {
    fn signal(&self, force: Force) -> Result<(), String> {
        let runs_in = |pid| is_copilot(pid, &self.names);
        self.handle.signal(force, &Expected { name: "Copilot", runs_in: &runs_in })
    }

    fn has_ended(&self) -> bool {
        self.handle.has_ended()
    }
}

/// The refusal of a lock whose process is not the session's owner.
fn no_owner(pid: u32) -> String {
    format!(
        "process {pid} does not own the session: it has ended, or its id is another program's by now. Nothing was signalled"
    )
}
