//! A handle to a process on Linux: a pidfd, which stays with its process when the id is reused.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::pidfd_send_signal;

use super::{Expected, Force, unsent};
use crate::process::pidfd;
use pilotlight_core::time::Time;

#[derive(Debug)]
pub(super) struct Handle {
    pid: u32,
    process: OwnedFd,
}

impl Handle {
    /// Holds the process that has the id now. `None` if there is none.
    pub(super) fn open(pid: u32, _now: Time) -> Result<Option<Self>, String> {
        match pidfd::open(pid) {
            Ok(process) => Ok(process.map(|process| Self { pid, process })),
            Err(Errno::NOSYS) => Err(format!(
                "this kernel cannot hold on to process {pid} (pidfd_open needs Linux 5.3), so another one might be hit. \
                 Nothing was signalled; end it yourself"
            )),
            Err(error) => Err(format!("cannot hold on to process {pid}: {error}. Nothing was signalled")),
        }
    }

    /// Whether it has ended. `true` if that is unknown.
    pub(super) fn has_ended(&self) -> bool {
        pidfd::has_ended(&self.process) != Ok(false)
    }

    pub(super) fn signal(&self, force: Force, _expected: &Expected<'_>) -> Result<(), String> {
        pidfd_send_signal(&self.process, force.signal()).map_err(|error| unsent(self.pid, error))
    }
}
