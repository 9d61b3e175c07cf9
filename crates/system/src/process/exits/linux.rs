//! Exits on Linux: an epoll set of one pidfd per process, itself registered with the runtime.
//!
//! A pidfd stays with its process when the id is reused, and becomes readable when the whole process (not only its
//! first thread) has ended, whoever its parent is.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::descriptors::is_scarce;
use crate::process::pidfd;
use crate::readiness::wait_for;

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The watched processes.
pub(super) struct Waits {
    epoll: Arc<OwnedFd>,
    /// The same set, registered with the runtime at the first wait.
    ready: Option<AsyncFd<Arc<OwnedFd>>>,
    watched: HashMap<u32, OwnedFd>,
}

impl Waits {
    pub(super) fn new() -> io::Result<Self> {
        // Tried on our own process, to fail here and not at the first one that is watched.
        pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).map_err(|error| match error {
            Errno::NOSYS => io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel does not report when another program's process ends (pidfd_open needs Linux 5.3)",
            ),
            error => error.into(),
        })?;
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        Ok(Self { epoll, ready: None, watched: HashMap::new() })
    }

    pub(super) fn watch(&mut self, pid: u32) -> io::Result<bool> {
        if self.watched.contains_key(&pid) {
            return Ok(true);
        }
        let Some(pidfd) = pidfd::open(pid)? else { return Ok(false) };
        if is_scarce(&pidfd) {
            return Err(Errno::MFILE.into()); // the rest is reserved for short reads
        }
        if pidfd::has_ended(&pidfd)? {
            return Ok(false); // a zombie
        }
        epoll::add(&self.epoll, &pidfd, EventData::new_u64(pid.into()), EventFlags::IN)?;
        self.watched.insert(pid, pidfd);
        Ok(true)
    }

    pub(super) async fn ended(&mut self) -> io::Result<u32> {
        let ready = match &mut self.ready {
            Some(ready) => ready,
            none => none.insert(wait_for(Arc::clone(&self.epoll), Interest::READABLE)?),
        };
        loop {
            let mut guard = ready.readable().await?;
            match next_of(&self.epoll)? {
                Some(pid) => {
                    let Some(pidfd) = self.watched.remove(&pid) else {
                        guard.clear_ready();
                        continue;
                    };
                    // Closing the pidfd is not enough: a child that was just forked may hold a copy until it execs.
                    let _ = epoll::delete(&self.epoll, &pidfd);
                    return Ok(pid);
                }
                None => guard.clear_ready(),
            }
        }
    }
}

/// A process that has ended, if any.
fn next_of(epoll: &OwnedFd) -> io::Result<Option<u32>> {
    let mut events = Vec::<epoll::Event>::with_capacity(1);
    match epoll::wait(epoll, spare_capacity(&mut events), Some(&AT_ONCE)) {
        Ok(_) => Ok(events.first().and_then(|event| u32::try_from(event.data.u64()).ok())),
        Err(Errno::INTR) => next_of(epoll),
        Err(error) => Err(error.into()),
    }
}
