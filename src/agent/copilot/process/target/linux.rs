//! A hold on a process on Linux: a pidfd, which stays with its process when the id is handed out anew.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::{Force, no_owner, unsent};
use crate::core::time::Time;

#[derive(Debug)]
pub(super) struct Handle {
    pid: u32,
    process: OwnedFd,
}

impl Handle {
    /// Holds the process that has the id now.
    pub(super) fn open(pid: u32, _now: Time) -> Result<Self, String> {
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| no_owner(pid))?;
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(process) => Ok(Self { pid, process }),
            // A thread's id is INVAL, or NOENT since Linux 6.15: no process has it.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Err(no_owner(pid)),
            Err(Errno::NOSYS) => Err(format!(
                "this kernel cannot hold on to process {pid} (pidfd_open needs Linux 5.3), so another one might be hit. \
                 Nothing was signalled; end it yourself"
            )),
            Err(error) => Err(format!("cannot hold on to process {pid}: {error}. Nothing was signalled")),
        }
    }

    /// Whether it has ended; what cannot be asked is taken for yes, as nothing is signalled then.
    pub(super) fn has_ended(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.process, PollFlags::IN)], Some(&at_once)) != Ok(0)
    }

    pub(super) fn signal(&self, force: Force, _names: &[String]) -> Result<(), String> {
        pidfd_send_signal(&self.process, force.signal()).map_err(|error| unsent(self.pid, error))
    }
}
