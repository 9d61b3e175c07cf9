//! A handle to a process on macOS, which has no such thing: its id and its start, compared again right before each
//! signal.
//!
//! macOS assigns ids in turn, so an id is reused after some 99,000 processes at the earliest, not within the
//! microseconds between the comparison and the signal.

use rustix::io::Errno;
use rustix::process::{Pid, kill_process};

use super::{Expected, Force, unsent};
use crate::process::reading::PidStatus;
use crate::process::{elsewhere, exits};
use pilotlight_core::time::Time;

#[derive(Debug)]
pub(crate) struct Handle {
    pid: u32,
    id: Pid,
    started: Time,
    /// The wall clock when the handle was opened.
    opened: Time,
}

impl Handle {
    /// Records the process that has the id now. `None` if the id is not valid.
    pub(super) fn open(pid: u32, now: Time) -> Result<Option<Self>, String> {
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        let started = started(pid, now).ok_or_else(|| {
            format!("cannot see when process {pid} started, so another one might be hit. Nothing was signalled")
        })?;
        Ok(Some(Self { pid, id, started, opened: now }))
    }

    /// Whether it has ended, even if another process has its id now.
    pub(super) fn has_ended(&self) -> bool {
        exits::has_ended(self.pid) || started(self.pid, self.opened) != Some(self.started)
    }

    pub(super) fn signal(&self, force: Force, _expected: &Expected<'_>) -> Result<(), String> {
        if self.has_ended() {
            return Err(unsent(self.pid, Errno::SRCH));
        }
        kill_process(self.id, force.signal()).map_err(|error| unsent(self.pid, error))
    }
}

fn started(pid: u32, now: Time) -> Option<Time> {
    match elsewhere::read(pid, now) {
        PidStatus::Process { started, .. } => started,
        PidStatus::Absent | PidStatus::Hidden => None,
    }
}
