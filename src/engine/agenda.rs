//! What is still to be looked at, and in which order.
//!
//! Nothing that can be made long or many by somebody else is done in one go: a log of gigabytes, a home with ten thousand
//! folders, a storm of file events. All of it waits here, and each turn of the loop does some of it, what just happened to a
//! session that is held before all else, and of the rest at least a little.

use super::Key;
use crate::agent::copilot::store::SessionIds;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// The sessions and homes that are to be looked at.
#[derive(Default)]
pub(super) struct Agenda {
    /// Something happened to these, and they are held.
    urgent: VecDeque<Key>,
    /// Folders of which nothing is known, and sessions that are looked at without a reason.
    others: VecDeque<Key>,
    /// Where each of the above waits.
    queued: HashMap<Key, Queue>,
    /// Sessions whose log takes longer to read than one look lasts.
    long: VecDeque<Key>,
    /// The same, and since when.
    since: HashMap<Key, Instant>,
    /// Homes that are being listed.
    pub(super) listings: VecDeque<Listing>,
    /// It was long, and is done.
    was_long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Urgent,
    Others,
}

/// A home that is being listed.
pub(super) struct Listing {
    pub(super) home: usize,
    pub(super) ids: SessionIds,
    /// Names that were listed, and that there was no time for.
    pub(super) left: Vec<Arc<str>>,
    /// The number that is left at what is found of the history.
    pub(super) sweep: u32,
    /// What was found of the sessions that are held.
    pub(super) held: HashSet<Arc<str>>,
}

impl Listing {
    pub(super) fn next(&mut self) -> Option<Arc<str>> {
        self.left.pop().or_else(|| self.ids.next())
    }
}

impl Agenda {
    /// Something happened to a session that is held.
    pub(super) fn urgent(&mut self, key: Key) {
        // A log that is being read gets its turn anyway, and its folder is looked at whenever it does.
        if !self.since.contains_key(&key) && self.queued.get(&key) != Some(&Queue::Urgent) {
            self.queued.insert(key.clone(), Queue::Urgent);
            self.urgent.push_back(key);
        }
    }

    /// A folder is to be looked at when there is time.
    pub(super) fn sometime(&mut self, key: Key) {
        if !self.since.contains_key(&key) && !self.queued.contains_key(&key) {
            self.queued.insert(key.clone(), Queue::Others);
            self.others.push_back(key);
        }
    }

    pub(super) fn next_urgent(&mut self) -> Option<Key> {
        let key = self.urgent.pop_front()?;
        self.queued.remove(&key);
        Some(key)
    }

    pub(super) fn next_other(&mut self) -> Option<Key> {
        loop {
            let key = self.others.pop_front()?;
            // One that has become urgent meanwhile was looked at, or will be.
            if self.queued.get(&key) == Some(&Queue::Others) {
                self.queued.remove(&key);
                return Some(key);
            }
        }
    }

    pub(super) fn next_long(&mut self) -> Option<Key> {
        self.long.pop_front()
    }

    /// There is more of a session's log to read. Since when it is being read.
    pub(super) fn read_on(&mut self, key: &Key) -> Instant {
        if !self.long.contains(key) {
            self.long.push_back(key.clone());
        }
        *self.since.entry(key.clone()).or_insert_with(Instant::now)
    }

    /// Whether there is more of a session's log to read.
    pub(super) fn is_reading(&self, key: &Key) -> bool {
        self.since.contains_key(key)
    }

    /// A session's log was read to its end, or is gone.
    pub(super) fn is_read(&mut self, key: &Key) {
        if self.since.remove(key).is_some() {
            self.long.retain(|long| long != key);
        }
    }

    /// How many are to be looked at when there is time.
    pub(super) fn others(&self) -> usize {
        self.others.len()
    }

    /// Nothing of this home is to be looked at any more.
    pub(super) fn forget_home(&mut self, home: usize) {
        self.urgent.retain(|key| key.0 != home);
        self.others.retain(|key| key.0 != home);
        self.queued.retain(|key, _| key.0 != home);
        self.long.retain(|key| key.0 != home);
        self.since.retain(|key, _| key.0 != home);
        self.listings.retain(|listing| listing.home != home);
    }

    /// Whether only long logs are left.
    pub(super) fn only_reads(&self) -> bool {
        self.urgent.is_empty() && self.others.is_empty() && self.listings.is_empty()
    }

    /// Whether there is anything to do; what a storm needed is given back as soon as there is not.
    pub(super) fn is_busy(&mut self) -> bool {
        let busy = !self.only_reads() || !self.long.is_empty();
        if !busy && self.queued.capacity() + self.others.capacity() > 256 {
            *self = Self { was_long: true, ..Self::default() };
        }
        busy
    }

    /// What is to be looked at now needs as much room as a long agenda.
    pub(super) const fn is_long(&mut self) {
        self.was_long = true;
    }

    /// Whether it was long, and was done since this was asked.
    pub(super) const fn was_long(&mut self) -> bool {
        std::mem::replace(&mut self.was_long, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Key {
        (0, id.into())
    }

    #[test]
    fn what_is_urgent_comes_once_and_first() {
        let mut agenda = Agenda::default();
        for id in ["a", "b", "a"] {
            agenda.sometime(key(id));
        }
        agenda.urgent(key("b"));
        agenda.urgent(key("b"));
        assert_eq!((agenda.next_urgent(), agenda.next_urgent()), (Some(key("b")), None));
        assert_eq!((agenda.next_other(), agenda.next_other()), (Some(key("a")), None));
        agenda.urgent(key("b"));
        assert!(agenda.is_busy() && agenda.next_urgent().is_some() && !agenda.is_busy());
    }

    #[test]
    fn a_long_log_waits_for_its_turn_whatever_happens_to_it() {
        let mut agenda = Agenda::default();
        let since = agenda.read_on(&key("long"));
        agenda.urgent(key("long"));
        agenda.sometime(key("long"));
        assert!(agenda.only_reads() && agenda.is_busy());
        assert_eq!(agenda.next_long(), Some(key("long")));
        assert_eq!(agenda.read_on(&key("long")), since);
        agenda.is_read(&key("long"));
        assert!(!agenda.is_busy());
        agenda.urgent(key("long"));
        assert_eq!(agenda.next_urgent(), Some(key("long")));
    }
}
