//! The owner of a session: which process its lock names, and whether that process really has the session open.
//!
//! A lock file names a process id, which is weak evidence: locks survive a SIGKILL, ids are reused, and another user's
//! process shows little of itself. So an owner is *alive* only if three things hold: the id is in use, its process did
//! not start after the lock was made, and it runs Copilot. Only where the system shows that it holds the session is its
//! name beside the point: a wrapper may have given it another. It is *gone* if the id is free or provably another
//! program's. Anything in between, where something cannot be read, is *unknown*, and is never taken for gone: a wrong
//! "gone" would show a crash that never happened and offer to start a second owner, which forks the log.
//!
//! Reading and deciding are separate. [`process::read`](pilotlight_system::process::read) reads; `decide` is pure and has
//! the rules, so that the tests cover what no test machine has at hand (another user's process, a container's).
//!
//! - [`owner_of`]: the lock's process and its state.
//! - [`claim`]: the same, and whether it holds the session.

pub(super) mod hold;
#[cfg(test)]
#[cfg(target_os = "linux")]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;

use hold::Hold;

use super::identity::{is_copilot, runs_copilot};
use crate::reading::GRACE;
use pilotlight_core::owner::{HoldProof, Owner};
use pilotlight_core::time::{Span, Time};
use pilotlight_system::process::{PidStatus, SLACK, arguments, read};

/// A lock file `inuse.<pid>.lock`, which claims a session for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The process id in the file's name.
    pub pid: u32,
    /// When the lock was made, by the wall clock: the file's modification time.
    pub made: Time,
}

impl Lock {
    /// How long until it should be checked again whether the lock's process holds the session, as no event reports it:
    /// until [`GRACE`] is over, and once more until [`SLACK`] is. `None` if both are over, and on systems that never
    /// show it.
    pub(crate) fn recheck_in(self, now: Time) -> Option<Span> {
        let age = now - self.made;
        let due = [GRACE, SLACK].into_iter().find(|end| age < *end)?;
        // A lock from the future would stay new for too long.
        (cfg!(target_os = "linux") && age > Span::ZERO - SLACK).then_some(due - age)
    }

    /// Whether a Copilot may have the lock's id. No system has a process 0 or one past `i32::MAX`. And this process is not
    /// Copilot, whatever its file is called.
    pub(super) fn may_name_copilot(self) -> bool {
        self.pid != 0 && i32::try_from(self.pid).is_ok() && self.pid != std::process::id()
    }

    fn is_new(self, now: Time) -> bool {
        self.recheck_in(now).is_some() && now - self.made < GRACE
    }
}

/// What a lock's process is to the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The process: the result of [`owner_of`], or [`Owner::Unheld`].
    pub owner: Owner,
    /// The evidence that it holds the session.
    pub held: HoldProof,
}

/// The lock's process: [`Owner::Alive`], [`Owner::Gone`] (without a time, as its end was not observed) or
/// [`Owner::Unknown`]; never [`Owner::Never`].
///
/// `names` are file names of further executables that count as Copilot, from the config; on Windows with or without
/// `.exe`. `now` is the wall clock, read just before: on Linux a process's start is counted back from it, so setting
/// the clock by more than [`SLACK`] after the lock was made shifts the start.
///
/// A lock that was made in a container has an id of that container, which here is free or another program's: its owner
/// reads as gone, or as unknown. Only [`claim`] sees whether its file is locked.
///
/// Takes 30 to 70 us on Linux (6 us if the process does not exist), some milliseconds elsewhere. Never fails: what
/// cannot be read is `Unknown`.
pub(crate) fn owner_of(lock: Lock, names: &[String], now: Time) -> Owner {
    let pid = lock.pid;
    if !lock.may_name_copilot() {
        return Owner::Gone { pid, at: None };
    }
    decide(lock, read(pid, now), names, || arguments(pid))
}

/// The lock's process, and whether it really has the session in `folder` open.
///
/// A process that provably holds the session is its owner even if it seems to have started after the lock: then the
/// wall clock was set in between. One that provably does not is [`Owner::Unheld`]. If the system shows neither,
/// [`owner_of`] alone decides.
///
/// Takes some 100 us more than [`owner_of`] on Linux.
pub(crate) fn claim(lock: Lock, folder: &Path, names: &[String], now: Time) -> Claim {
    claim_where(lock, folder, names, now, false)
}

/// The same for callers that check again when [`Lock::recheck_in`] says so: Copilot makes its lock, and holds the session
/// a moment later. Until [`GRACE`] is over, the lock's process counts as the owner, [`HoldProof::Pending`].
pub(crate) fn claim_so_far(lock: Lock, folder: &Path, names: &[String], now: Time) -> Claim {
    claim_where(lock, folder, names, now, lock.is_new(now))
}

fn claim_where(lock: Lock, folder: &Path, names: &[String], now: Time, may_hold_soon: bool) -> Claim {
    let owner = owner_of(lock, names, now);
    let (pid, claim) = (lock.pid, |owner, held| Claim { owner, held });
    match owner {
        Owner::Alive { .. } => match hold::of(lock.pid, folder) {
            Hold::Locked => claim(owner, HoldProof::Verified),
            Hold::Home | Hold::Unknown => claim(owner, HoldProof::Unverified),
            // The config says that this is a Copilot, perhaps one that keeps other files open.
            Hold::Nothing if !is_copilot(pid, &[]) => claim(owner, HoldProof::Unverified),
            Hold::Nothing | Hold::Elsewhere if may_hold_soon => claim(owner, HoldProof::Pending),
            Hold::Nothing | Hold::Elsewhere => claim(Owner::Unheld { pid }, HoldProof::Unverified),
            Hold::Hidden => claim(Owner::Unknown { pid }, HoldProof::Unverified),
        },
        // Whatever its program is called (a wrapper's, the dynamic loader), and whenever it started by a clock that was set:
        // nobody but the session's owner has that file open and locked under this id.
        Owner::Gone { .. } if hold::of(pid, folder) == Hold::Locked => match read(pid, now) {
            PidStatus::Process { started, .. } => claim(Owner::Alive { pid, started }, HoldProof::Verified),
            PidStatus::Absent | PidStatus::Hidden => claim(Owner::Unknown { pid }, HoldProof::Unverified),
        },
        // Somebody holds it whose process is not seen by this id: of a container, and perhaps of another user.
        Owner::Gone { .. } if hold::is_locked(pid, folder) => claim(Owner::Unknown { pid }, HoldProof::Unverified),
        // The id is another's here, of whom nothing is shown: a container's Copilot often has one of the first ids.
        Owner::Unknown { .. } if !may_hold_soon && hold::is_left(pid, folder) => {
            claim(Owner::Gone { pid, at: None }, HoldProof::Unverified)
        }
        owner => claim(owner, HoldProof::Unverified),
    }
}

/// The rules: what a reading says about the lock's process. `arguments` is called only for a node: its command line,
/// followed by the real paths of its scripts; `None` if that cannot be read.
fn decide(
    lock: Lock,
    reading: PidStatus,
    names: &[String],
    arguments: impl FnOnce() -> Option<Vec<OsString>>,
) -> Owner {
    let pid = lock.pid;
    let gone = Owner::Gone { pid, at: None };
    let unknown = Owner::Unknown { pid };
    let (started, executable) = match reading {
        PidStatus::Absent => return gone,
        PidStatus::Hidden => return unknown,
        PidStatus::Process { started, executable } => (started, executable),
    };
    // Whatever it runs, it did not make this lock.
    if started.is_some_and(|started| started > lock.made + SLACK) {
        return gone;
    }
    let Some(runs_copilot) = executable.and_then(|path| runs_copilot(&path, names, arguments)) else { return unknown };
    match (runs_copilot, started) {
        (false, _) => gone,
        (true, Some(_)) => Owner::Alive { pid, started },
        (true, None) => unknown, // a Copilot, but perhaps a later one with the same id
    }
}
