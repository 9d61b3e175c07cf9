//! The processes that locks name: whose exit is waited for, and whose lock is still too new to show whether it holds
//! the session.
//!
//! Copilot creates its lock and opens the session a moment later, without any event in between. So the process of a lock
//! younger than [`GRACE`](pilotlight_agents::reading::GRACE) counts as the owner, and is checked again then, and two seconds
//! after the lock was made. Until then nothing relies on it: orders wait, and no secret is sent. A command that looks once
//! waits once for all such locks together.

use super::polled::Polled;
use pilotlight_agents::reader::Reader;
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Time};
use pilotlight_system::log::{self, cause};
use pilotlight_system::process::Exits;
use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::io;

/// The owners that are followed.
pub(crate) struct Owners {
    /// `None` if the system does not report exits; the rescan finds them.
    exits: Option<Exits>,
    /// Processes whose exit will be reported.
    known: HashSet<u32>,
    /// Processes whose exit will not be reported, because file descriptors are short.
    polled: Polled<u32, 2>,
    /// The user was told of that.
    warned: bool,
    /// Sessions whose lock was too new to show who holds them, and when, by the awake clock, they are read again.
    new_locks: HashMap<Key, Time>,
}

impl Owners {
    /// No owner is followed yet.
    pub(crate) fn new() -> Self {
        let exits = Exits::new();
        if let Err(error) = &exits {
            log::warn!("cannot wait for owners to end; checking once a minute instead: {}", cause(error));
        }
        let (known, polled, new_locks) = (HashSet::new(), Polled::default(), HashMap::new());
        Self { exits: exits.ok(), known, polled, warned: false, new_locks }
    }

    /// The next process that exits.
    pub(crate) async fn next_exit(&mut self) -> u32 {
        if let Some(exits) = &mut self.exits {
            match exits.ended().await {
                Ok(pid) => return pid,
                Err(error) => {
                    log::error!("cannot wait for processes to end; the slow rescan will find out: {}", cause(&error));
                }
            }
            self.exits = None;
            self.known.clear();
        }
        pending().await
    }

    /// The processes whose exit will be reported.
    pub(crate) const fn known(&self) -> &HashSet<u32> {
        &self.known
    }

    /// Starts to wait for the exit of the processes that may own a session. Returns those that exited after it
    /// was read.
    pub(crate) fn follow(&mut self, key: &Key, reader: &Reader, now: Moment) -> Vec<u32> {
        match reader.owner_recheck_at() {
            Some(at) => self.new_locks.insert(key.clone(), at),
            None => self.new_locks.remove(key),
        };
        reader.pids().into_iter().filter(|pid| self.follow_process(*pid, now)).collect()
    }

    /// Starts to wait for the exit of a process. Returns whether it has exited already.
    pub(crate) fn follow_process(&mut self, pid: u32, now: Moment) -> bool {
        let Some(exits) = self.exits.as_mut().filter(|_| !self.known.contains(&pid)) else { return false };
        match exits.watch(pid) {
            Ok(true) => drop(self.known.insert(pid)),
            Ok(false) => return true,
            Err(error) => self.poll(pid, &error, now.awake),
        }
        false
    }

    /// Polls a process, so that the status of its sessions stays true. Warns the first time.
    fn poll(&mut self, pid: u32, error: &io::Error, now: Time) {
        self.polled.set(&pid, true, now);
        if !std::mem::replace(&mut self.warned, true) {
            log::warn!(
                "the end of some owners cannot be waited for ({}), so they are checked every {} instead; \
                 allow more open files to end this: `ulimit -n`, or LimitNOFILE= of a service",
                cause(error),
                Polled::<u32, 2>::INTERVAL
            );
        }
    }

    /// Forgets a process that has exited.
    pub(crate) fn forget_process(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// Forgets a session that is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.new_locks.remove(key);
    }

    /// When the next work is due without an event.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.new_locks.values().copied().chain(self.polled.poll_at()).min()
    }

    /// Takes the sessions whose new lock is due to be read again.
    pub(crate) fn take_due_locks(&mut self, now: Time) -> Vec<Key> {
        self.new_locks.extract_if(|_, at| *at <= now).map(|(key, _)| key).collect()
    }

    /// Takes the polled processes that are due. One that still cannot be waited for is added again.
    pub(crate) fn take_due_polls(&mut self, now: Time) -> Vec<u32> {
        let due = self.polled.due(now);
        due.iter().for_each(|pid| self.polled.set(pid, false, now));
        due
    }
}
