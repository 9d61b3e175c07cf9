//! What remains to be read, and in which order.
//!
//! Nothing that others can make long or numerous is done in one go: a log of gigabytes, a home with ten thousand
//! folders, a storm of file events. All of it waits here, and each iteration of the loop does part of it: first the
//! changed sessions that are held, then at least a little of the rest: a slice of one long log, some names of a home that is
//! listed, some folders that were not examined yet. One iteration spends 4 ms on it (`disk/scan.rs`), one step 1 ms. In a
//! storm of events the loop polls the system every time, so a signal is handled at once.
//!
//! While a log is read in slices, the facts from before stay in force until the new ones are complete, for at most half a
//! second.

use pilotlight_agents::listing;
use pilotlight_core::session::{HomeId, Key};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one step may read a log or list a folder.
pub(crate) const READ_SLICE: Duration = Duration::from_millis(1);

/// The sessions and homes that remain to be read.
#[derive(Default)]
pub(crate) struct Agenda {
    /// Held sessions that have changed.
    urgent: VecDeque<Key>,
    /// Unknown folders, and sessions that are read without a particular reason.
    others: VecDeque<Key>,
    /// The queue in which each of the above waits.
    queued: HashMap<Key, Queue>,
    /// Sessions whose log takes more than one step to read.
    long: VecDeque<Key>,
    /// The same sessions, and when reading their log began.
    reading_since: HashMap<Key, Instant>,
    /// Homes that are being listed.
    pub(crate) listings: VecDeque<Listing>,
    /// The agenda was large, and is done.
    was_large: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Urgent,
    Others,
}

/// A home that is being listed.
pub(crate) struct Listing {
    pub(crate) home: HomeId,
    pub(crate) ids: listing::Listing,
    /// Names that were listed but not processed yet.
    pub(crate) left: Vec<Arc<str>>,
    /// The number with which found sessions of the history are marked.
    pub(crate) sweep: u32,
    /// The held sessions that were found.
    pub(crate) held: HashSet<Arc<str>>,
}

impl Listing {
    pub(crate) fn next(&mut self) -> Option<Arc<str>> {
        self.left.pop().or_else(|| self.ids.next())
    }
}

impl Agenda {
    /// Queues a held session that has changed.
    pub(crate) fn push_urgent(&mut self, key: Key) {
        // A log that is being read is continued anyway, and its folder is read each time.
        if !self.reading_since.contains_key(&key) && self.queued.get(&key) != Some(&Queue::Urgent) {
            self.queued.insert(key.clone(), Queue::Urgent);
            self.urgent.push_back(key);
        }
    }

    /// Queues a folder to be read when there is time.
    pub(crate) fn push_other(&mut self, key: Key) {
        if !self.reading_since.contains_key(&key) && !self.queued.contains_key(&key) {
            self.queued.insert(key.clone(), Queue::Others);
            self.others.push_back(key);
        }
    }

    pub(crate) fn next_urgent(&mut self) -> Option<Key> {
        let key = self.urgent.pop_front()?;
        self.queued.remove(&key);
        Some(key)
    }

    pub(crate) fn next_other(&mut self) -> Option<Key> {
        loop {
            let key = self.others.pop_front()?;
            // One that has become urgent was read in the meantime, or will be.
            if self.queued.get(&key) == Some(&Queue::Others) {
                self.queued.remove(&key);
                return Some(key);
            }
        }
    }

    pub(crate) fn next_long(&mut self) -> Option<Key> {
        self.long.pop_front()
    }

    /// Queues the rest of a session's log. Returns when reading it began.
    pub(crate) fn continue_reading(&mut self, key: &Key) -> Instant {
        if !self.long.contains(key) {
            self.long.push_back(key.clone());
        }
        *self.reading_since.entry(key.clone()).or_insert_with(Instant::now)
    }

    /// Whether a session's log is being read in steps.
    pub(crate) fn is_reading(&self, key: &Key) -> bool {
        self.reading_since.contains_key(key)
    }

    /// A session's log was read to its end, or is gone.
    pub(crate) fn finish_reading(&mut self, key: &Key) {
        if self.reading_since.remove(key).is_some() {
            self.long.retain(|long| long != key);
        }
    }

    /// How many folders wait to be read when there is time.
    pub(crate) fn others_len(&self) -> usize {
        self.others.len()
    }

    /// Drops everything that belongs to a home.
    pub(crate) fn forget_home(&mut self, home: HomeId) {
        self.urgent.retain(|key| key.home != home);
        self.others.retain(|key| key.home != home);
        self.queued.retain(|key, _| key.home != home);
        self.long.retain(|key| key.home != home);
        self.reading_since.retain(|key, _| key.home != home);
        self.listings.retain(|listing| listing.home != home);
    }

    /// Whether only long logs remain.
    pub(crate) fn only_long_reads(&self) -> bool {
        self.urgent.is_empty() && self.others.is_empty() && self.listings.is_empty()
    }

    /// Whether anything remains. Once nothing does, the memory that a storm needed is freed.
    pub(crate) fn is_busy(&mut self) -> bool {
        let busy = !self.only_long_reads() || !self.long.is_empty();
        if !busy && self.queued.capacity() + self.others.capacity() > 256 {
            *self = Self { was_large: true, ..Self::default() };
        }
        busy
    }

    /// Treats the current work as a large agenda.
    pub(crate) const fn mark_large(&mut self) {
        self.was_large = true;
    }

    /// Whether a large agenda was finished since the last call.
    pub(crate) const fn take_was_large(&mut self) -> bool {
        std::mem::replace(&mut self.was_large, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Key {
        Key::new(HomeId::default(), id)
    }

    #[test]
    fn an_urgent_session_is_returned_once_and_first() {
        let mut agenda = Agenda::default();
        for id in ["a", "b", "a"] {
            agenda.push_other(key(id));
        }
        agenda.push_urgent(key("b"));
        agenda.push_urgent(key("b"));
        assert_eq!((agenda.next_urgent(), agenda.next_urgent()), (Some(key("b")), None));
        assert_eq!((agenda.next_other(), agenda.next_other()), (Some(key("a")), None));
        agenda.push_urgent(key("b"));
        assert!(agenda.is_busy() && agenda.next_urgent().is_some() && !agenda.is_busy());
    }

    #[test]
    fn a_long_log_waits_for_its_turn_even_if_it_changes() {
        let mut agenda = Agenda::default();
        let since = agenda.continue_reading(&key("long"));
        agenda.push_urgent(key("long"));
        agenda.push_other(key("long"));
        assert!(agenda.only_long_reads() && agenda.is_busy());
        assert_eq!(agenda.next_long(), Some(key("long")));
        assert_eq!(agenda.continue_reading(&key("long")), since);
        agenda.finish_reading(&key("long"));
        assert!(!agenda.is_busy());
        agenda.push_urgent(key("long"));
        assert_eq!(agenda.next_urgent(), Some(key("long")));
    }
}
