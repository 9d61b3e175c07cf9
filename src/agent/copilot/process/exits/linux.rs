//! Exits on Linux: one thread that sleeps in epoll over a pidfd for each process.
//!
//! A pidfd stays with its process when the id is handed out anew, and becomes readable when the whole process (not only
//! its first thread) has ended, whoever its parent is. An epoll set may be changed while a thread waits on it, so nothing
//! wakes the thread but an end, and the drop of [`Waits`] through an eventfd.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Tell;
use crate::system::descriptors::is_scarce;

/// The key of the eventfd that ends the thread; those of processes are never 0, as no process has the id 0.
const STOP: u64 = 0;

/// All that is watched, and the thread that waits for it.
pub(super) struct Waits(Arc<Shared>);

struct Shared {
    epoll: OwnedFd,
    /// Ends the thread. Kept for as long as the thread runs: closed too early, it would leave the epoll set unseen.
    stop: OwnedFd,
    watched: Mutex<Watched>,
    tell: Tell,
}

#[derive(Default)]
struct Watched {
    by_pid: HashMap<u32, Watch>,
    serial: u32,
}

struct Watch {
    /// What epoll gives back: the id, and above it a serial number, so that an event already fetched is not taken for
    /// one of a later process with the same id.
    key: u64,
    /// Closing it takes it out of the epoll set.
    pidfd: OwnedFd,
}

impl Waits {
    pub(super) fn new(tell: Tell) -> io::Result<Self> {
        // Asked of this very process, to fail here and not at the first owner.
        pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).map_err(|error| match error {
            Errno::NOSYS => io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel does not tell when another program's process ends (pidfd_open needs Linux 5.3)",
            ),
            error => error.into(),
        })?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &stop, epoll::EventData::new_u64(STOP), epoll::EventFlags::IN)?;
        let shared = Arc::new(Shared { epoll, stop, watched: Mutex::default(), tell });
        let thread = Arc::clone(&shared);
        std::thread::Builder::new().name("exits".into()).spawn(move || thread.run())?;
        Ok(Self(shared))
    }

    pub(super) fn watch(&self, pid: u32) -> io::Result<bool> {
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
        let mut watched = self.0.watched();
        if watched.by_pid.contains_key(&pid) {
            return Ok(true);
        }
        let pidfd = match pidfd_open(id, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // A thread's id is INVAL, or NOENT since Linux 6.15: no process has it.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        if is_scarce(&pidfd) {
            return Err(Errno::MFILE.into()); // what is left is for what is read in between
        }
        if has_ended(&pidfd)? {
            return Ok(false); // a zombie: its parent has not waited for it yet
        }
        watched.serial = watched.serial.wrapping_add(1);
        let key = (u64::from(watched.serial) << 32) | u64::from(pid);
        epoll::add(&self.0.epoll, &pidfd, epoll::EventData::new_u64(key), epoll::EventFlags::IN)?;
        watched.by_pid.insert(pid, Watch { key, pidfd });
        Ok(true)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        // Not joined: it may be in `tell`, or be this very thread. The counter cannot overflow by one write.
        let _ = rustix::io::write(&self.0.stop, &1u64.to_ne_bytes());
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut events = Vec::with_capacity(16);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot wait for processes to end; the slow rescan will find out");
                    return;
                }
            }
            for event in &events {
                match event.data.u64() {
                    STOP => return,
                    key => self.ended(key),
                }
            }
        }
    }

    fn ended(&self, key: u64) {
        let pid = (key & u64::from(u32::MAX)) as u32;
        let mut watched = self.watched();
        let current = watched.by_pid.get(&pid).is_some_and(|watch| watch.key == key);
        let ended = if current { watched.by_pid.remove(&pid) } else { None };
        drop(watched);
        if let Some(watch) = ended {
            drop(watch.pidfd);
            (self.tell)(pid);
        }
    }
}

fn has_ended(pidfd: &OwnedFd) -> io::Result<bool> {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    Ok(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&at_once))? > 0)
}
