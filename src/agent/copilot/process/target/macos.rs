//! A hold on a process on macOS, which has none: its id, and when it started, compared again right before each signal.
//!
//! Ids are handed out in turn there, so one comes back after some 99,000 processes at the earliest, not within the
//! microseconds between comparing and signalling.

use rustix::io::Errno;
use rustix::process::{Pid, kill_process};

use super::super::{Reading, exits, platform};
use super::{Force, no_owner, unsent};
use crate::core::time::Time;

#[derive(Debug)]
pub(super) struct Handle {
    pid: u32,
    id: Pid,
    started: Time,
    /// The wall clock when it was opened.
    opened: Time,
}

impl Handle {
    /// Notes the process that has the id now.
    pub(super) fn open(pid: u32, now: Time) -> Result<Self, String> {
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| no_owner(pid))?;
        let started = started(pid, now).ok_or_else(|| {
            format!("cannot see when process {pid} started, so another one might be hit. Nothing was signalled")
        })?;
        Ok(Self { pid, id, started, opened: now })
    }

    /// Whether it has ended. Another one with its id is not it.
    pub(super) fn has_ended(&self) -> bool {
        exits::has_ended(self.pid) || started(self.pid, self.opened) != Some(self.started)
    }

    pub(super) fn signal(&self, force: Force, _names: &[String]) -> Result<(), String> {
        if self.has_ended() {
            return Err(unsent(self.pid, Errno::SRCH));
        }
        kill_process(self.id, force.signal()).map_err(|error| unsent(self.pid, error))
    }
}

fn started(pid: u32, now: Time) -> Option<Time> {
    match platform::read(pid, now) {
        Reading::Process { started, .. } => started,
        Reading::Absent | Reading::Hidden => None,
    }
}
