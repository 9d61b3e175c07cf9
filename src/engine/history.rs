//! The history: sessions of which nothing but their folder matters, because their process is gone and their log is old. There may
//! be tens of thousands of them.

use super::Key;
use crate::agent::copilot::watcher::WATCHES_TREES;
use crate::core::packed::Packed;
use crate::core::time::Time;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// These sessions, and what is still to be done with them.
pub(super) struct History {
    /// By home.
    homes: Vec<BTreeMap<Packed, Old>>,
    sweep: u32,
    /// Those that may be among the last ended, with the time of their last change; `None` once these were found.
    recent: Option<Vec<(Time, Key)>>,
    /// Those that are still to be shown.
    untold: Vec<Key>,
    /// Those whose folder is still to be watched.
    unwatched: Vec<(usize, Packed)>,
}

impl Default for History {
    fn default() -> Self {
        Self { homes: Vec::new(), sweep: 0, recent: Some(Vec::new()), untold: Vec::new(), unwatched: Vec::new() }
    }
}

/// What is known of an old session: there may be tens of thousands of them.
struct Old {
    /// The number of the listing that found it last.
    found: u32,
    /// It was shown.
    told: bool,
}

impl History {
    pub(super) fn contains(&self, key: &Key) -> bool {
        self.homes.get(key.0).is_some_and(|home| home.contains_key(&Packed::from(&key.1)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.homes.iter().all(BTreeMap::is_empty)
    }

    /// A session is history. Where the system watches each folder by itself, this one waits for its watch.
    pub(super) fn insert(&mut self, key: &Key) {
        if self.homes.len() <= key.0 {
            self.homes.resize_with(key.0 + 1, BTreeMap::default);
        }
        let Entry::Vacant(place) = self.homes[key.0].entry(Packed::from(&key.1)) else { return };
        place.insert(Old { found: self.sweep, told: false });
        if !WATCHES_TREES {
            self.unwatched.push((key.0, Packed::from(&key.1)));
        }
    }

    /// Whether it was there, and was shown.
    pub(super) fn remove(&mut self, key: &Key) -> bool {
        let old = self.homes.get_mut(key.0).and_then(|home| home.remove(&Packed::from(&key.1)));
        old.is_some_and(|old| old.told)
    }

    /// It is shown.
    pub(super) fn tell(&mut self, key: &Key) {
        if let Some(old) = self.homes.get_mut(key.0).and_then(|home| home.get_mut(&Packed::from(&key.1))) {
            old.told = true;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Key> {
        self.homes.iter().enumerate().flat_map(|(home, ids)| ids.keys().map(move |id| (home, id.id())))
    }

    pub(super) fn of_home(&self, home: usize) -> impl Iterator<Item = Key> {
        self.homes.get(home).into_iter().flatten().map(move |(id, _)| (home, id.id()))
    }

    /// The number of a listing that begins now.
    pub(super) const fn begin_sweep(&mut self) -> u32 {
        self.sweep = self.sweep.wrapping_add(1);
        self.sweep
    }

    /// A listing found this; whether it is of the history.
    pub(super) fn found(&mut self, home: usize, id: &str, sweep: u32) -> bool {
        let found = self.homes.get_mut(home).and_then(|ids| ids.get_mut(&Packed::from(id)));
        found.map(|old| old.found = sweep).is_some()
    }

    /// What no listing found since that one began.
    pub(super) fn missed(&self, home: usize, sweep: u32) -> Vec<Key> {
        let ids = self.homes.get(home).into_iter().flatten();
        // Numbers may have gone round since.
        let missed = ids.filter(|(_, old)| old.found.wrapping_sub(sweep) > u32::MAX / 2);
        missed.map(|(id, _)| (home, id.id())).collect()
    }

    /// Whether the last ended sessions are still to be found.
    pub(super) const fn seeks_recent(&self) -> bool {
        self.recent.is_some()
    }

    /// They are to be found, or found anew.
    pub(super) fn seek_recent(&mut self) {
        self.recent.get_or_insert_default();
    }

    /// A session may be one of them.
    pub(super) fn may_be_recent(&mut self, key: &Key, touched: Time) {
        if let Some(recent) = &mut self.recent {
            recent.push((touched, key.clone()));
        }
    }

    /// So many of them, the last first: they are found.
    pub(super) fn take_recent(&mut self, most: usize) -> Vec<Key> {
        let mut recent = self.recent.take().unwrap_or_default();
        // Somebody may have opened one since, or its home is followed no more; and one may have been looked at twice.
        recent.retain(|(_, key)| self.contains(key));
        recent.sort_unstable_by(|(one, key), (other, its)| (Reverse(one), key).cmp(&(Reverse(other), its)));
        recent.dedup_by(|(_, key), (_, before)| key == before);
        recent.truncate(most);
        recent.into_iter().map(|(_, key)| key).collect()
    }

    /// All of it is to be shown.
    pub(super) fn tell_all(&mut self) {
        self.untold = self.iter().collect();
    }

    /// Whether some of it is still to be shown.
    pub(super) const fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// The next that are to be shown, at most so many.
    pub(super) fn next_untold(&mut self, most: usize) -> Vec<Key> {
        let mut some = self.untold.split_off(self.untold.len().saturating_sub(most));
        some.retain(|key| self.contains(key));
        some
    }

    /// What was watched of a home is not any more.
    pub(super) fn watch_anew(&mut self, home: usize) {
        if !WATCHES_TREES {
            let ids = self.homes.get(home).into_iter().flatten();
            self.unwatched.extend(ids.map(|(id, _)| (home, id.clone())));
        }
    }

    /// Whether some of it is still to be watched.
    pub(super) const fn has_unwatched(&self) -> bool {
        !self.unwatched.is_empty()
    }

    /// The next session whose folder is to be watched.
    pub(super) fn next_unwatched(&mut self) -> Option<Key> {
        while let Some((home, id)) = self.unwatched.pop() {
            let key = (home, id.id());
            if self.contains(&key) {
                return Some(key);
            }
        }
        self.unwatched = Vec::new();
        None
    }

    /// A home is followed no more: nothing of it is to be watched.
    pub(super) fn forget_home(&mut self, home: usize) {
        self.unwatched.retain(|key| key.0 != home);
    }

    /// None of it is to be watched, or can be.
    pub(super) fn watch_none(&mut self) {
        self.unwatched = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Key {
        (0, id.into())
    }

    #[test]
    fn what_a_listing_missed_is_known_and_what_came_meanwhile_is_not_missed() {
        let mut history = History::default();
        for id in ["old", "gone"] {
            history.insert(&key(id));
        }
        let sweep = history.begin_sweep();
        assert!(history.found(0, "old", sweep) && !history.found(0, "new", sweep) && !history.found(1, "old", sweep));
        history.insert(&key("new"));
        assert_eq!(history.missed(0, sweep), [key("gone")]);
        history.tell(&key("old"));
        assert!(!history.remove(&key("gone")) && history.remove(&key("old")) && !history.remove(&key("old")));
        assert!(!history.contains(&key("gone")) && history.contains(&key("new")) && !history.is_empty());
    }

    #[test]
    fn the_last_ended_are_found_once_and_anew_when_that_is_asked_for() {
        let mut history = History::default();
        assert!(history.seeks_recent());
        for (id, touched) in [("first", 1), ("third", 3), ("third", 3), ("second", 2), ("opened", 4)] {
            history.insert(&key(id));
            history.may_be_recent(&key(id), Time(touched));
        }
        history.remove(&key("opened"));
        assert_eq!(history.take_recent(2), [key("third"), key("second")]);
        history.insert(&key("late"));
        history.may_be_recent(&key("late"), Time(4));
        assert!(!history.seeks_recent() && history.take_recent(2).is_empty());
        history.seek_recent();
        history.may_be_recent(&key("late"), Time(4));
        history.seek_recent();
        assert_eq!(history.take_recent(2), [key("late")]);
    }

    #[test]
    fn what_is_no_longer_history_is_neither_shown_nor_watched_with_it() {
        let mut history = History::default();
        for id in ["a", "b", "c"] {
            history.insert(&key(id));
            history.insert(&key(id));
        }
        history.tell_all();
        history.remove(&key("b"));
        let mut told = history.next_untold(2);
        assert!(history.has_untold());
        told.extend(history.next_untold(2));
        told.sort_unstable();
        assert_eq!((told, history.has_untold()), (vec![key("a"), key("c")], false));
        if WATCHES_TREES {
            return assert!(!history.has_unwatched());
        }
        let watched = |history: &mut History| {
            let mut all: Vec<_> = std::iter::from_fn(|| history.next_unwatched()).collect();
            all.sort_unstable();
            all
        };
        assert_eq!((watched(&mut history), history.has_unwatched()), (vec![key("a"), key("c")], false));
        history.watch_anew(0);
        history.watch_anew(1);
        assert_eq!(watched(&mut history), [key("a"), key("c")]);
        history.watch_anew(0);
        history.forget_home(1);
        assert!(history.has_unwatched());
        history.forget_home(0);
        assert!(!history.has_unwatched());
        history.watch_anew(0);
        history.watch_none();
        assert!(!history.has_unwatched());
    }
}
