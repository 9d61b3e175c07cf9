//! Pidfds. A pidfd stays with its process when the id is reused.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Opens a pidfd of the process that has the id now. `None` if there is none.
pub(super) fn open(pid: u32) -> rustix::io::Result<Option<OwnedFd>> {
    let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    match pidfd_open(id, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Some(pidfd)),
        // INVAL, or NOENT since Linux 6.15: the id is a thread's, so no process has it.
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the whole process (not only its first thread) has ended. A zombie has.
pub(super) fn has_ended(pidfd: &OwnedFd) -> rustix::io::Result<bool> {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&at_once))? > 0)
}
