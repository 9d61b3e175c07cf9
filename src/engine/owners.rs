//! The processes that locks name: whose end is waited for, and whose lock is too new to tell whether it holds the session.

use super::Key;
use super::scarce::Scarce;
use crate::agent::copilot::store::Folder;
use crate::core::time::{Moment, Time};
use crate::system::process::Exits;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::pending;

/// Owners, as they are followed.
pub(super) struct Owners {
    /// `None`: the system tells of no end, and the slow look at everything finds it.
    exits: Option<Exits>,
    /// Processes whose end will be told.
    known: HashSet<u32>,
    /// Those whose end will not.
    scarce: Scarce,
    /// Sessions whose lock was too new to tell who holds them, and when, by the awake clock, they are looked at again.
    new_locks: HashMap<Key, Time>,
}

impl Owners {
    /// Nobody is followed yet.
    pub(super) fn new() -> Self {
        let exits = Exits::new();
        if let Err(error) = &exits {
            tracing::warn!(%error, "the end of owners cannot be waited for; looking once a minute instead");
        }
        let (known, scarce, new_locks) = (HashSet::new(), Scarce::default(), HashMap::new());
        Self { exits: exits.ok(), known, scarce, new_locks }
    }

    /// The next process that ends.
    pub(super) async fn ended(&mut self) -> u32 {
        if let Some(exits) = &mut self.exits {
            match exits.ended().await {
                Ok(pid) => return pid,
                Err(error) => {
                    tracing::error!(%error, "cannot wait for processes to end; the slow rescan will find out");
                }
            }
            self.exits = None;
            self.known.clear();
        }
        pending().await
    }

    /// The processes whose end will be told.
    pub(super) const fn known(&self) -> &HashSet<u32> {
        &self.known
    }

    /// Waits for the end of the processes that a folder's locks name. Those of them that ended between the look at the folder and
    /// this.
    pub(super) fn follow(&mut self, key: &Key, folder: &Folder, now: Moment) -> Vec<u32> {
        match folder.tells_at() {
            Some(at) => self.new_locks.insert(key.clone(), at),
            None => self.new_locks.remove(key),
        };
        let Some(exits) = &mut self.exits else { return Vec::new() };
        let mut ended = Vec::new();
        for pid in folder.pids().filter(|pid| !self.known.contains(pid)).collect::<Vec<_>>() {
            match exits.watch(pid) {
                Ok(true) => drop(self.known.insert(pid)),
                Ok(false) => ended.push(pid),
                Err(error) => self.scarce.add(pid, &error, now.awake),
            }
        }
        ended
    }

    /// A process has ended.
    pub(super) fn has_ended(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// A session is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.new_locks.remove(key);
    }

    /// When there is something to look at though nothing happened.
    pub(super) fn wake_at(&self) -> Option<Time> {
        self.new_locks.values().copied().chain(self.scarce.look_at()).min()
    }

    /// The sessions whose lock may tell more by now.
    pub(super) fn told_by_now(&mut self, now: Time) -> Vec<Key> {
        self.new_locks.extract_if(|_, at| *at <= now).map(|(key, _)| key).collect()
    }

    /// The processes whose end nobody tells and that are to be looked at now.
    pub(super) fn due(&mut self, now: Time) -> BTreeSet<u32> {
        self.scarce.due(now)
    }
}
