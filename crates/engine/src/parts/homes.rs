//! The homes that are followed, and whether the folder in each place is still the one that was read.

use crate::last_seen::HomeHash;
use pilotlight_agents::home::Home;
use pilotlight_agents::listing_cache::ListingCache;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::time::{Span, Time};
use pilotlight_system::clock::Clock;
use pilotlight_system::identity::Identity;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// How often to check whether homes were replaced if no event reports that: on file systems without events, on systems
/// other than Linux, and where the watch is not possible.
const CHECK_INTERVAL: Span = Span::seconds(5);

/// How soon to check again after homes were replaced faster than they could be watched: what took a place last may have
/// caused no event.
const UNSETTLED_CHECK: Span = Span(100);

/// The most homes that are followed without having been named.
const BESIDE_MAX: usize = 16;

/// The homes by number. A home keeps its number as long as the program runs.
pub(crate) struct Homes {
    homes: Vec<HomeState>,
    check_at: Time,
    /// They were still being replaced when they were last checked.
    is_unsettled: bool,
}

struct HomeState {
    home: Home,
    /// What marks of its sessions are found by.
    hash: HomeHash,
    is_followed: bool,
    /// Since when, by the wall clock.
    since: Time,
    /// Nobody named it: it is followed for what its processes say of sessions that a followed home has, too.
    is_beside: bool,
    /// It turned out to be another agent's, and is not watched as such yet.
    is_retold: bool,
    /// Its file system answers. While it does not, nothing in the home is touched.
    is_answering: bool,
    state: RootState,
    /// When an entry of the root last appeared or disappeared, as of the last look.
    entries_changed: Option<SystemTime>,
    /// What the last listing read, if a change of that shows.
    listed: ListingCache,
}

/// What is in the place of a home's session folders.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RootState {
    /// Not checked yet, or changed since.
    Unknown,
    /// Nothing.
    Missing,
    Folder(Identity),
}

impl RootState {
    fn of(root: &Path) -> Self {
        fs::metadata(root).map_or(Self::Missing, |meta| Self::Folder(Identity::of(&meta)))
    }
}

impl HomeState {
    fn of(home: Home) -> Self {
        let hash = HomeHash::of(home.folder());
        Self {
            home,
            hash,
            is_followed: true,
            since: Clock::start().now().wall,
            is_beside: false,
            is_retold: false,
            is_answering: true,
            state: RootState::Unknown,
            entries_changed: None,
            listed: ListingCache::default(),
        }
    }

    const fn is_read(&self) -> bool {
        self.is_followed && self.is_answering
    }
}

impl Homes {
    /// These homes, none of them checked yet.
    pub(crate) fn new(homes: &[Home], now: Time) -> Self {
        Self { homes: homes.iter().cloned().map(HomeState::of).collect(), check_at: now, is_unsettled: false }
    }

    /// The numbers of the homes that the settings name, whether they answer or not.
    pub(crate) fn wanted(&self) -> Vec<HomeId> {
        self.numbered().filter(|(_, home)| home.is_followed).map(|(number, _)| number).collect()
    }

    fn numbered(&self) -> impl Iterator<Item = (HomeId, &HomeState)> {
        self.homes.iter().enumerate().map(|(number, home)| (HomeId(number), home))
    }

    /// Every home with its root, whether it is followed or not.
    pub(crate) fn all(&self) -> impl Iterator<Item = (HomeId, &Path)> {
        self.numbered().map(|(number, home)| (number, home.home.root()))
    }

    /// Sets which homes' file systems answer. Returns the homes for which that has changed, and whether they do now.
    pub(crate) fn set_answering(&mut self, answers: impl Fn(HomeId) -> bool) -> Vec<(HomeId, bool)> {
        let homes = self.homes.iter_mut().enumerate().filter(|(_, home)| home.is_followed);
        let changed = homes.filter_map(|(number, home)| {
            let number = HomeId(number);
            let now = answers(number);
            (std::mem::replace(&mut home.is_answering, now) != now).then_some((number, now))
        });
        changed.collect()
    }

    /// Forgets what is in the place of a home.
    pub(crate) fn forget_state(&mut self, home: HomeId) {
        self.homes[home.0].state = RootState::Unknown;
    }

    /// The source of the sessions of a home.
    pub(crate) fn home(&self, home: HomeId) -> &Home {
        &self.homes[home.0].home
    }

    /// What marks of a home's sessions are found by.
    pub(crate) fn hash(&self, home: HomeId) -> HomeHash {
        self.homes[home.0].hash
    }

    /// The folder that holds the sessions of a home.
    pub(crate) fn root(&self, home: HomeId) -> &Path {
        self.home(home).root()
    }

    /// Where a session is: its folder, or its file.
    pub(crate) fn path(&self, key: &Key) -> PathBuf {
        self.home(key.home).path(&key.id)
    }

    /// Since when a home is followed, by the wall clock.
    pub(crate) fn since(&self, home: HomeId) -> Time {
        self.homes[home.0].since
    }

    /// The home that a session is in.
    pub(crate) fn home_folder(&self, key: &Key) -> &Path {
        self.home(key.home).folder()
    }

    /// The number of the home with this root.
    pub(crate) fn number(&self, root: &Path) -> Option<HomeId> {
        self.numbered().find(|(_, home)| home.home.root() == root).map(|(number, _)| number)
    }

    pub(crate) fn is_followed(&self, home: HomeId) -> bool {
        self.homes.get(home.0).is_some_and(HomeState::is_read)
    }

    /// The homes that are followed, with their roots.
    pub(crate) fn followed(&self) -> impl Iterator<Item = (HomeId, &Path)> {
        let homes = self.numbered().filter(|(_, home)| home.is_read());
        homes.map(|(number, home)| (number, home.home.root()))
    }

    /// The numbers of the followed homes.
    pub(crate) fn numbers(&self) -> Vec<HomeId> {
        self.followed().map(|(home, _)| home).collect()
    }

    /// The followed homes.
    pub(crate) fn homes(&self) -> Vec<&Home> {
        self.homes.iter().filter(|home| home.is_read()).map(|home| &home.home).collect()
    }

    /// Follows a home. Returns its number, or `None` if it was followed already.
    pub(crate) fn follow(&mut self, home: Home) -> Option<HomeId> {
        let Some(number) = self.number(home.root()) else {
            self.homes.push(HomeState::of(home));
            return Some(HomeId(self.homes.len() - 1));
        };
        let known = &mut self.homes[number.0];
        (!known.is_followed || known.is_beside).then(|| *known = HomeState::of(home)).map(|()| number)
    }

    /// Follows a home for what its processes say of sessions that a followed one has, too. Returns its number, or `None`
    /// if that is not so, or it was followed already.
    pub(crate) fn follow_beside(&mut self, home: Home) -> Option<HomeId> {
        let is_full = self.homes.iter().filter(|home| home.is_beside && home.is_followed).count() >= BESIDE_MAX;
        let is_known = self.number(home.root()).is_some_and(|home| self.homes[home.0].is_followed);
        if is_full || is_known {
            return None;
        }
        let claimed = home.claimed();
        let is_shared = |other: &Home| home.shares_all(other) || claimed.iter().any(|id| home.shares(other, id, None));
        let mut named = self.homes.iter().filter(|home| home.is_read() && !home.is_beside);
        if !named.any(|home| is_shared(&home.home)) {
            return None;
        }
        let home = self.follow(home)?;
        self.homes[home.0].is_beside = true;
        Some(home)
    }

    /// Whether nobody named a home.
    pub(crate) fn is_beside(&self, home: HomeId) -> bool {
        self.homes.get(home.0).is_some_and(|home| home.is_beside)
    }

    /// The same session in the home that it is read in, if that is another one: homes may share logs. `log`: where its log
    /// is, if that is known.
    pub(crate) fn stand_in(&self, key: &Key, log: Option<&Path>) -> Option<Key> {
        let home = self.homes.get(key.home.0)?;
        let comes_first = |number: HomeId, other: &HomeState| {
            number != key.home && other.is_read() && !other.is_beside && (home.is_beside || number < key.home)
        };
        let mut others = self.numbered().filter(|(number, other)| comes_first(*number, other));
        let other = others.find(|(_, other)| home.home.shares(&other.home, &key.id, log))?;
        Some(Key::new(other.0, Arc::clone(&key.id)))
    }

    /// Whether all logs of a home are read in another one.
    pub(crate) fn is_read_elsewhere(&self, home: HomeId) -> bool {
        let its = &self.homes[home.0];
        let comes_first = |number: HomeId, other: &HomeState| number < home && other.is_read() && !other.is_beside;
        its.is_beside
            || self.numbered().any(|(number, other)| comes_first(number, other) && its.home.shares_all(&other.home))
    }

    /// Stops following a home.
    pub(crate) fn unfollow(&mut self, home: HomeId) {
        self.homes[home.0].is_followed = false;
    }

    /// Forgets what is in the place of homes at or below these removed paths. Their watches are gone, even if the same
    /// folder is back by now.
    pub(crate) fn invalidate(&mut self, gone: &HashSet<PathBuf>) {
        for home in &mut self.homes {
            if home.home.root().ancestors().any(|path| gone.contains(path)) {
                home.state = RootState::Unknown;
            }
        }
    }

    /// Forgets what is in the place of every home.
    pub(crate) fn invalidate_all(&mut self) {
        for home in &mut self.homes {
            home.state = RootState::Unknown;
        }
    }

    /// Checks the followed homes. Returns those that were created, removed or replaced since the last check.
    pub(crate) fn take_replaced(&mut self) -> Vec<HomeId> {
        let mut replaced = Vec::new();
        for (number, home) in self.homes.iter_mut().enumerate().filter(|(_, home)| home.is_read()) {
            let mut state = RootState::of(home.home.root());
            if (state == RootState::Missing || state != home.state)
                && let Some(told) = home.home.recognized_anew()
            {
                state = RootState::of(told.root());
                (home.home, home.state, home.is_retold) = (told, RootState::Unknown, true);
            }
            if std::mem::replace(&mut home.state, state) != state {
                home.hash = HomeHash::of(home.home.folder());
                home.listed = ListingCache::default();
                replaced.push(HomeId(number));
            }
        }
        replaced
    }

    /// Whether a home turned out to be another agent's since the last time that this was asked.
    pub(crate) fn take_retold(&mut self, home: HomeId) -> bool {
        std::mem::take(&mut self.homes[home.0].is_retold)
    }

    /// Whether sessions may have appeared in or disappeared from a home since the last look.
    pub(crate) fn has_other_entries(&mut self, home: HomeId) -> bool {
        let home = &mut self.homes[home.0];
        let changed = fs::metadata(home.home.root()).and_then(|meta| meta.modified()).ok();
        std::mem::replace(&mut home.entries_changed, changed) != changed
    }

    /// Notes what a listing of a home read just now, by the wall clock.
    pub(crate) fn set_listed(&mut self, home: HomeId, listed: ListingCache, now: Time) {
        self.homes[home.0].listed = if listed.are_settled(now) { listed } else { ListingCache::default() };
    }

    /// Whether another listing of a home would find what the last one found.
    pub(crate) fn is_as_listed(&self, home: HomeId) -> bool {
        self.homes[home.0].listed.stand()
    }

    /// Has the homes checked again soon, even if events report changes: they are being replaced faster than they can be
    /// watched.
    pub(crate) fn mark_unsettled(&mut self, now: Time) {
        (self.is_unsettled, self.check_at) = (true, now + UNSETTLED_CHECK);
    }

    /// When to check them next without an event. `has_file_events`: the system reports when a home is replaced.
    pub(crate) fn check_at(&self, has_file_events: bool) -> Option<Time> {
        let is_needed = self.is_unsettled || !has_file_events && !self.homes.is_empty();
        is_needed.then_some(self.check_at)
    }

    /// Whether that check is due. If so, the next one is due in five seconds.
    pub(crate) fn is_due(&mut self, has_file_events: bool, now: Time) -> bool {
        let is_due = self.check_at(has_file_events).is_some_and(|at| at <= now);
        if is_due {
            (self.is_unsettled, self.check_at) = (false, now + CHECK_INTERVAL);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source with this folder for its sessions.
    fn home(root: &Path) -> Home {
        Home::at(root.parent().unwrap())
    }

    fn homes(roots: &[&Path]) -> Homes {
        let homes: Vec<_> = roots.iter().map(|root| home(root)).collect();
        Homes::new(&homes, Time(0))
    }

    #[test]
    fn a_home_or_parent_that_is_made_removed_or_replaced_is_reported() {
        let scratch = tempfile::tempdir().unwrap();
        let (root, aside) = (scratch.path().join("home/session-state"), scratch.path().join("aside"));
        let mut homes = homes(&[&root]);
        assert_eq!((homes.take_replaced(), homes.take_replaced()), (vec![HomeId(0)], vec![]), "nothing is there");
        fs::create_dir_all(&root).unwrap();
        assert_eq!((homes.take_replaced(), homes.take_replaced()), (vec![HomeId(0)], vec![]), "made");
        fs::create_dir(&aside).unwrap();
        fs::remove_dir(&root).unwrap();
        fs::rename(&aside, &root).unwrap();
        assert_eq!((homes.take_replaced(), homes.take_replaced()), (vec![HomeId(0)], vec![]), "another one");
        homes.invalidate(&HashSet::from([scratch.path().join("other")]));
        assert!(homes.take_replaced().is_empty());
        homes.invalidate(&HashSet::from([scratch.path().join("home")]));
        assert_eq!(homes.take_replaced(), [HomeId(0)], "its parent was gone for a moment");
        homes.invalidate_all();
        assert_eq!(homes.take_replaced(), [HomeId(0)]);
    }

    #[test]
    fn case_284_a_home_that_is_told_by_its_content_becomes_another_agents() {
        let scratch = tempfile::tempdir().unwrap();
        let mut homes = Homes::new(&[Home::at(scratch.path())], Time(0));
        assert_eq!((homes.take_replaced(), homes.take_retold(HomeId(0))), (vec![HomeId(0)], false), "it is empty");
        fs::create_dir(scratch.path().join("projects")).unwrap();
        assert_eq!((homes.take_replaced(), homes.take_retold(HomeId(0))), (vec![HomeId(0)], true));
        assert!(homes.root(HomeId(0)).ends_with("projects"));
        assert_eq!((homes.take_replaced(), homes.take_retold(HomeId(0))), (vec![], false));
    }

    #[test]
    fn a_home_that_is_followed_again_keeps_its_number_and_is_checked_again() {
        let scratch = tempfile::tempdir().unwrap();
        let (a, b) = (scratch.path().join("a/session-state"), scratch.path().join("b/session-state"));
        let mut homes = homes(&[&a]);
        assert_eq!((homes.follow(home(&b)), homes.follow(home(&b))), (Some(HomeId(1)), None));
        assert_eq!(homes.take_replaced(), [HomeId(0), HomeId(1)]);
        homes.unfollow(HomeId(0));
        assert!(!homes.is_followed(HomeId(0)) && homes.is_followed(HomeId(1)) && !homes.is_followed(HomeId(2)));
        homes.invalidate_all();
        assert_eq!(
            (homes.take_replaced(), homes.numbers(), homes.homes()),
            (vec![HomeId(1)], vec![HomeId(1)], vec![&home(&b)])
        );
        assert_eq!(homes.follow(home(&a)), Some(HomeId(0)));
        assert_eq!((homes.take_replaced(), homes.number(&a)), (vec![HomeId(0)], Some(HomeId(0))));
    }

    #[test]
    fn without_file_events_homes_are_checked_every_five_seconds() {
        let mut homes = homes(&[Path::new("/a/session-state")]);
        assert_eq!((homes.check_at(false), homes.check_at(true)), (Some(Time(0)), None));
        assert!(homes.is_due(false, Time(0)) && !homes.is_due(false, Time(4999)) && homes.is_due(false, Time(5000)));
        assert!(!homes.is_due(true, Time(60_000)), "events report changes");
        assert_eq!(Homes::new(&[], Time(0)).check_at(false), None);
    }

    #[test]
    fn homes_that_are_still_being_replaced_are_checked_again_soon_whatever_events_report() {
        let mut homes = homes(&[Path::new("/a/session-state")]);
        homes.mark_unsettled(Time(1000));
        assert_eq!(homes.check_at(true), Some(Time(1100)));
        assert!(!homes.is_due(true, Time(1099)) && homes.is_due(true, Time(1100)));
        assert_eq!(homes.check_at(true), None, "once");
    }
}
