//! The history: sessions of which only the folder matters, because their process is gone and their log is old. There
//! may be tens of thousands, so only the id and the watch of each are kept: some 80 bytes.

use pilotlight_agents::reading::LogPaths;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::time::Time;
use pilotlight_system::watcher::WATCHES_TREES;
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The sessions of the history, and what remains to be done with them.
pub(crate) struct History {
    /// By home.
    homes: Vec<BTreeMap<Arc<str>, OldSession>>,
    sweep: u32,
    /// Candidates for the sessions that ended last, with the time of their last change. `None` once those are known.
    recent: Option<Vec<(Time, Key)>>,
    /// Sessions that remain to be shown.
    unshown: Vec<Key>,
    /// Where the logs of each home are, while sessions remain to be shown: one listing for all of them.
    logs: HashMap<HomeId, LogPaths>,
    /// Sessions whose folder remains to be watched.
    unwatched: Vec<Key>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            homes: Vec::new(),
            sweep: 0,
            recent: Some(Vec::new()),
            unshown: Vec::new(),
            logs: HashMap::new(),
            unwatched: Vec::new(),
        }
    }
}

/// What is kept of an old session. Must be small: there may be tens of thousands.
struct OldSession {
    /// The number of the last listing that found it.
    found_in: u32,
    shown: bool,
}

impl History {
    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.homes.get(key.home.0).is_some_and(|home| home.contains_key(&key.id))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.homes.iter().all(BTreeMap::is_empty)
    }

    /// Adds a session. If the system watches each folder separately, this one is queued for its watch, unless that was
    /// there before the session was looked at.
    pub(crate) fn insert(&mut self, key: &Key, is_watched: bool) {
        if self.homes.len() <= key.home.0 {
            self.homes.resize_with(key.home.0 + 1, BTreeMap::default);
        }
        let Entry::Vacant(place) = self.homes[key.home.0].entry(Arc::clone(&key.id)) else { return };
        place.insert(OldSession { found_in: self.sweep, shown: false });
        if !WATCHES_TREES && !is_watched {
            self.unwatched.push(key.clone());
        }
    }

    /// Removes a session. Returns whether it had been shown.
    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let old = self.homes.get_mut(key.home.0).and_then(|home| home.remove(&key.id));
        old.is_some_and(|old| old.shown)
    }

    pub(crate) fn mark_shown(&mut self, key: &Key) {
        if let Some(old) = self.homes.get_mut(key.home.0).and_then(|home| home.get_mut(&key.id)) {
            old.shown = true;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Key> {
        self.homes
            .iter()
            .enumerate()
            .flat_map(|(home, ids)| ids.keys().map(move |id| Key::new(HomeId(home), Arc::clone(id))))
    }

    pub(crate) fn of_home(&self, home: HomeId) -> impl Iterator<Item = Key> {
        self.homes.get(home.0).into_iter().flatten().map(move |(id, _)| Key::new(home, Arc::clone(id)))
    }

    /// Returns the number for a new listing.
    pub(crate) const fn start_sweep(&mut self) -> u32 {
        self.sweep = self.sweep.wrapping_add(1);
        self.sweep
    }

    /// Marks a session as found by a listing. Returns whether it is part of the history.
    pub(crate) fn mark_found(&mut self, home: HomeId, id: &str, sweep: u32) -> bool {
        let found = self.homes.get_mut(home.0).and_then(|ids| ids.get_mut(id));
        found.map(|old| old.found_in = sweep).is_some()
    }

    /// The sessions that no listing found since this one began.
    pub(crate) fn not_found_since(&self, home: HomeId, sweep: u32) -> Vec<Key> {
        let ids = self.homes.get(home.0).into_iter().flatten();
        // The numbers may have wrapped around since.
        let missed = ids.filter(|(_, old)| old.found_in.wrapping_sub(sweep) > u32::MAX / 2);
        missed.map(|(id, _)| Key::new(home, Arc::clone(id))).collect()
    }

    /// Whether the sessions that ended last remain to be found.
    pub(crate) const fn seeks_recent(&self) -> bool {
        self.recent.is_some()
    }

    /// Starts to look for the sessions that ended last.
    pub(crate) fn seek_recent(&mut self) {
        self.recent.get_or_insert_default();
    }

    /// Adds a candidate for the sessions that ended last.
    pub(crate) fn add_recent_candidate(&mut self, key: &Key, touched: Time) {
        if let Some(recent) = &mut self.recent {
            recent.push((touched, key.clone()));
        }
    }

    /// Takes at most `most` sessions that ended last, the latest first, and ends the search.
    pub(crate) fn take_recent(&mut self, most: usize) -> Vec<Key> {
        let mut recent = self.recent.take().unwrap_or_default();
        // A candidate may have been opened since, its home may no longer be followed, and it may have been added twice.
        recent.retain(|(_, key)| self.contains(key));
        recent.sort_unstable_by(|(one, key), (other, its)| (Reverse(one), key).cmp(&(Reverse(other), its)));
        recent.dedup_by(|(_, key), (_, before)| key == before);
        recent.truncate(most);
        recent.into_iter().map(|(_, key)| key).collect()
    }

    /// Queues the whole history to be shown.
    pub(crate) fn queue_all_to_show(&mut self) {
        self.unshown = self.iter().collect();
    }

    /// Whether sessions remain to be shown.
    pub(crate) const fn has_unshown(&self) -> bool {
        !self.unshown.is_empty()
    }

    /// Takes at most `most` of the sessions that remain to be shown.
    pub(crate) fn next_unshown(&mut self, most: usize) -> Vec<Key> {
        let mut some = self.unshown.split_off(self.unshown.len().saturating_sub(most));
        some.retain(|key| self.contains(key));
        some
    }

    /// Where the logs of a home are, which `list` finds the first time that this is asked.
    pub(crate) fn logs(&mut self, home: HomeId, list: impl FnOnce() -> LogPaths) -> LogPaths {
        LogPaths::clone(self.logs.entry(home).or_insert_with(list))
    }

    /// Forgets where the logs are, if nothing remains to be shown.
    pub(crate) fn forget_logs(&mut self) {
        if !self.has_unshown() {
            self.logs = HashMap::new();
        }
    }

    /// Queues a home's sessions to be watched again after their watches were lost.
    pub(crate) fn queue_watches(&mut self, home: HomeId) {
        if !WATCHES_TREES {
            let ids = self.homes.get(home.0).into_iter().flatten();
            self.unwatched.extend(ids.map(|(id, _)| Key::new(home, Arc::clone(id))));
        }
    }

    /// Whether folders remain to be watched.
    pub(crate) const fn has_unwatched(&self) -> bool {
        !self.unwatched.is_empty()
    }

    /// The next session whose folder is to be watched.
    pub(crate) fn next_unwatched(&mut self) -> Option<Key> {
        while let Some(key) = self.unwatched.pop() {
            if self.contains(&key) {
                return Some(key);
            }
        }
        self.unwatched = Vec::new();
        None
    }

    /// Drops a home that is no longer followed from the watch queue.
    pub(crate) fn forget_home(&mut self, home: HomeId) {
        self.unwatched.retain(|key| key.home != home);
    }

    /// Clears the watch queue, because it is done or no more can be watched.
    pub(crate) fn clear_watch_queue(&mut self) {
        self.unwatched = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Key {
        Key::new(HomeId::default(), id)
    }

    #[test]
    fn a_session_that_a_listing_missed_is_known_and_one_added_during_it_is_not_missed() {
        let mut history = History::default();
        for id in ["old", "gone"] {
            history.insert(&key(id), false);
        }
        let sweep = history.start_sweep();
        assert!(
            history.mark_found(HomeId(0), "old", sweep)
                && !history.mark_found(HomeId(0), "new", sweep)
                && !history.mark_found(HomeId(1), "old", sweep)
        );
        history.insert(&key("new"), false);
        assert_eq!(history.not_found_since(HomeId(0), sweep), [key("gone")]);
        history.mark_shown(&key("old"));
        assert!(!history.remove(&key("gone")) && history.remove(&key("old")) && !history.remove(&key("old")));
        assert!(!history.contains(&key("gone")) && history.contains(&key("new")) && !history.is_empty());
    }

    #[test]
    fn the_last_ended_are_found_once_and_again_on_request() {
        let mut history = History::default();
        assert!(history.seeks_recent());
        for (id, touched) in [("first", 1), ("third", 3), ("third", 3), ("second", 2), ("opened", 4)] {
            history.insert(&key(id), false);
            history.add_recent_candidate(&key(id), Time(touched));
        }
        history.remove(&key("opened"));
        assert_eq!(history.take_recent(2), [key("third"), key("second")]);
        history.insert(&key("late"), false);
        history.add_recent_candidate(&key("late"), Time(4));
        assert!(!history.seeks_recent() && history.take_recent(2).is_empty());
        history.seek_recent();
        history.add_recent_candidate(&key("late"), Time(4));
        history.seek_recent();
        assert_eq!(history.take_recent(2), [key("late")]);
    }

    #[test]
    fn a_session_that_left_the_history_is_neither_shown_nor_watched() {
        let mut history = History::default();
        for id in ["a", "b", "c"] {
            history.insert(&key(id), false);
            history.insert(&key(id), false);
        }
        history.queue_all_to_show();
        history.remove(&key("b"));
        let mut shown = history.next_unshown(2);
        assert!(history.has_unshown());
        shown.extend(history.next_unshown(2));
        shown.sort_unstable();
        assert_eq!((shown, history.has_unshown()), (vec![key("a"), key("c")], false));
        if WATCHES_TREES {
            return assert!(!history.has_unwatched());
        }
        let watched = |history: &mut History| {
            let mut all: Vec<_> = std::iter::from_fn(|| history.next_unwatched()).collect();
            all.sort_unstable();
            all
        };
        assert_eq!((watched(&mut history), history.has_unwatched()), (vec![key("a"), key("c")], false));
        history.queue_watches(HomeId(0));
        history.queue_watches(HomeId(1));
        assert_eq!(watched(&mut history), [key("a"), key("c")]);
        history.queue_watches(HomeId(0));
        history.forget_home(HomeId(1));
        assert!(history.has_unwatched());
        history.forget_home(HomeId(0));
        assert!(!history.has_unwatched());
        history.queue_watches(HomeId(0));
        history.clear_watch_queue();
        assert!(!history.has_unwatched());
    }
}
