//! A handle to a process on Linux: a pidfd, which stays with its process when the id is reused.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::request::{Expected, Force, unsent};
use crate::core::time::Time;

#[derive(Debug)]
pub(super) struct Handle {
    pid: u32,
    process: OwnedFd,
}

impl Handle {
    /// Holds the process that has the id now. `None` if there is none.
    pub(super) fn open(pid: u32, _now: Time) -> Result<Option<Self>, String> {
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(process) => Ok(Some(Self { pid, process })),
            // INVAL, or NOENT since Linux 6.15: the id is a thread's, so no process has it.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(Errno::NOSYS) => Err(format!(
                "this kernel cannot hold on to process {pid} (pidfd_open needs Linux 5.3), so another one might be hit. \
                 Nothing was signalled; end it yourself"
            )),
            Err(error) => Err(format!("cannot hold on to process {pid}: {error}. Nothing was signalled")),
        }
    }

    /// Whether it has ended. `true` if that is unknown.
    pub(super) fn has_ended(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&at_once)) != Ok(0)
    }

    pub(super) fn signal(&self, force: Force, _expected: &Expected<'_>) -> Result<(), String> {
        pidfd_send_signal(&self.process, force.signal()).map_err(|error| unsent(self.pid, error))
    }
}
