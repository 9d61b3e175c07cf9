//! Exits on macOS: one thread sleeps on a kqueue that has a process filter for each process.
//!
//! The filter stays with its process when the id is reused, and works for other users' processes too. A kqueue may be
//! changed while a thread waits on it, so only two events wake the thread: an exit, and the user event that the drop of
//! [`Waits`] sends.
#![allow(unsafe_code)]

use crate::log::{self, cause};
use std::collections::HashMap;
use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::kqueue::{
    Event, EventFilter, EventFlags, ProcessEvents, UserDefinedFlags, UserFlags, kevent_timespec, kqueue,
};
use rustix::io::Errno;
use rustix::process::Pid;
use tokio::sync::mpsc::UnboundedSender;

/// The watched processes, and the thread that waits for them.
pub(super) struct Waits(Arc<Shared>);

struct Shared {
    queue: OwnedFd,
    watched: Mutex<Watched>,
    ended: UnboundedSender<u32>,
}

#[derive(Default)]
struct Watched {
    /// The serial number of each watch, which the kqueue returns with its event: an event fetched earlier is not
    /// mistaken for one of a later process with the same id.
    by_pid: HashMap<u32, usize>,
    serial: usize,
}

impl Waits {
    pub(super) fn new(ended: UnboundedSender<u32>) -> io::Result<Self> {
        let queue = kqueue()?;
        change(&queue, stop(EventFlags::ADD | EventFlags::CLEAR, UserFlags::NOINPUT))?;
        let shared = Arc::new(Shared { queue, watched: Mutex::default(), ended });
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
        let serial = watched.serial.wrapping_add(1);
        match change(&self.0.queue, exit_of(id, EventFlags::ADD | EventFlags::ONESHOT, serial)) {
            Ok(()) => {}
            Err(Errno::SRCH) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        watched.serial = serial;
        watched.by_pid.insert(pid, serial);
        Ok(true)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        // Not joined: this may run on that very thread.
        let _ = change(&self.0.queue, stop(EventFlags::empty(), UserFlags::TRIGGER));
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
            // SAFETY: process and user filters refer to no file descriptor.
            let got = unsafe { kevent_timespec(&self.queue, &[], rustix::buffer::spare_capacity(&mut events), None) };
            match got {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    log::error!("cannot wait for processes to end; the slow rescan will find out: {}", cause(&error));
                    return;
                }
            }
            for event in &events {
                match event.filter() {
                    EventFilter::User { .. } => return,
                    EventFilter::Proc { pid, .. } => {
                        self.ended(pid.as_raw_nonzero().get().unsigned_abs(), event.udata().addr());
                    }
                    _ => {}
                }
            }
        }
    }

    fn ended(&self, pid: u32, serial: usize) {
        let mut watched = self.watched();
        let current = watched.by_pid.get(&pid) == Some(&serial);
        if current {
            watched.by_pid.remove(&pid);
        }
        drop(watched);
        if current {
            let _ = self.ended.send(pid); // fails only if nobody waits any more
        }
    }
}

/// Whether there is no process `pid`, or only a zombie. A process filter cannot be set on a zombie, whereas testing a
/// signal succeeds on one.
pub(crate) fn has_ended(pid: u32) -> bool {
    let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    kqueue().is_ok_and(|queue| change(&queue, exit_of(id, EventFlags::ADD, 0)) == Err(Errno::SRCH))
}

fn exit_of(pid: Pid, flags: EventFlags, serial: usize) -> Event {
    Event::new(
        EventFilter::Proc { pid, flags: ProcessEvents::EXIT },
        flags,
        std::ptr::without_provenance_mut::<c_void>(serial),
    )
}

fn stop(flags: EventFlags, action: UserFlags) -> Event {
    Event::new(EventFilter::User { ident: 0, flags: action, user_flags: UserDefinedFlags::new(0) }, flags, null_mut())
}

/// Applies a change to the queue without fetching events: without room for events, the call returns the change's error.
fn change(queue: &OwnedFd, event: Event) -> rustix::io::Result<()> {
    let mut none: [Event; 0] = [];
    // SAFETY: process and user filters refer to no file descriptor.
    unsafe { kevent_timespec(queue, &[event], &mut none, None) }.map(|_| ())
}
