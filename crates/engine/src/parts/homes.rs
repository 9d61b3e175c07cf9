//! The homes that are followed, and whether the folder in each place is still the one that was read.

use crate::last_seen::HomeHash;
use pilotlight_agents::listing_cache::ListingCache;
use pilotlight_agents::source::Source;
use pilotlight_core::session::{Key, SourceId};
use pilotlight_core::time::{Span, Time};
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
    homes: Vec<Home>,
    check_at: Time,
    /// They were still being replaced when they were last checked.
    is_unsettled: bool,
}

struct Home {
    source: Source,
    /// What marks of its sessions are found by.
    hash: HomeHash,
    is_followed: bool,
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

impl Home {
    fn of(source: Source) -> Self {
        let hash = HomeHash::of(source.home());
        Self {
            source,
            hash,
            is_followed: true,
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
    pub(crate) fn new(sources: &[Source], now: Time) -> Self {
        Self { homes: sources.iter().cloned().map(Home::of).collect(), check_at: now, is_unsettled: false }
    }

    /// The numbers of the homes that the settings name, whether they answer or not.
    pub(crate) fn wanted(&self) -> Vec<SourceId> {
        self.numbered().filter(|(_, home)| home.is_followed).map(|(number, _)| number).collect()
    }

    fn numbered(&self) -> impl Iterator<Item = (SourceId, &Home)> {
        self.homes.iter().enumerate().map(|(number, home)| (SourceId(number), home))
    }

    /// Every home with its root, whether it is followed or not.
    pub(crate) fn all(&self) -> impl Iterator<Item = (SourceId, &Path)> {
        self.numbered().map(|(number, home)| (number, home.source.root()))
    }

    /// Sets which homes' file systems answer. Returns the homes for which that has changed, and whether they do now.
    pub(crate) fn set_answering(&mut self, answers: impl Fn(SourceId) -> bool) -> Vec<(SourceId, bool)> {
        let homes = self.homes.iter_mut().enumerate().filter(|(_, home)| home.is_followed);
        let changed = homes.filter_map(|(number, home)| {
            let number = SourceId(number);
            let now = answers(number);
            (std::mem::replace(&mut home.is_answering, now) != now).then_some((number, now))
        });
        changed.collect()
    }

    /// Forgets what is in the place of a home.
    pub(crate) fn forget_state(&mut self, home: SourceId) {
        self.homes[home.0].state = RootState::Unknown;
    }

    /// The source of the sessions of a home.
    pub(crate) fn source(&self, home: SourceId) -> &Source {
        &self.homes[home.0].source
    }

    /// What marks of a home's sessions are found by.
    pub(crate) fn hash(&self, home: SourceId) -> HomeHash {
        self.homes[home.0].hash
    }

    /// The folder that holds the sessions of a home.
    pub(crate) fn root(&self, home: SourceId) -> &Path {
        self.source(home).root()
    }

    /// Where a session is: its folder, or its file.
    pub(crate) fn path(&self, key: &Key) -> PathBuf {
        self.source(key.source).path(&key.id)
    }

    /// The home that a session is in.
    pub(crate) fn home_folder(&self, key: &Key) -> &Path {
        self.source(key.source).home()
    }

    /// The number of the home with this root.
    pub(crate) fn number(&self, root: &Path) -> Option<SourceId> {
        self.numbered().find(|(_, home)| home.source.root() == root).map(|(number, _)| number)
    }

    pub(crate) fn is_followed(&self, home: SourceId) -> bool {
        self.homes.get(home.0).is_some_and(Home::is_read)
    }

    /// The homes that are followed, with their roots.
    pub(crate) fn followed(&self) -> impl Iterator<Item = (SourceId, &Path)> {
        let homes = self.numbered().filter(|(_, home)| home.is_read());
        homes.map(|(number, home)| (number, home.source.root()))
    }

    /// The numbers of the followed homes.
    pub(crate) fn numbers(&self) -> Vec<SourceId> {
        self.followed().map(|(home, _)| home).collect()
    }

    /// The sources of the followed homes.
    pub(crate) fn sources(&self) -> Vec<&Source> {
        self.homes.iter().filter(|home| home.is_read()).map(|home| &home.source).collect()
    }

    /// Follows a home. Returns its number, or `None` if it was followed already.
    pub(crate) fn follow(&mut self, source: Source) -> Option<SourceId> {
        let Some(home) = self.number(source.root()) else {
            self.homes.push(Home::of(source));
            return Some(SourceId(self.homes.len() - 1));
        };
        let known = &mut self.homes[home.0];
        (!known.is_followed || known.is_beside).then(|| *known = Home::of(source)).map(|()| home)
    }

    /// Follows a home for what its processes say of sessions that a followed one has, too. Returns its number, or `None`
    /// if that is not so, or it was followed already.
    pub(crate) fn follow_beside(&mut self, source: Source) -> Option<SourceId> {
        let is_full = self.homes.iter().filter(|home| home.is_beside && home.is_followed).count() >= BESIDE_MAX;
        let is_known = self.number(source.root()).is_some_and(|home| self.homes[home.0].is_followed);
        if is_full || is_known {
            return None;
        }
        let claimed = source.claimed();
        let is_shared =
            |other: &Source| source.shares_all(other) || claimed.iter().any(|id| source.shares(other, id, None));
        let mut named = self.homes.iter().filter(|home| home.is_read() && !home.is_beside);
        if !named.any(|home| is_shared(&home.source)) {
            return None;
        }
        let home = self.follow(source)?;
        self.homes[home.0].is_beside = true;
        Some(home)
    }

    /// Whether nobody named a home.
    pub(crate) fn is_beside(&self, home: SourceId) -> bool {
        self.homes.get(home.0).is_some_and(|home| home.is_beside)
    }

    /// The same session in the home that it is read in, if that is another one: homes may share logs. `log`: where its log
    /// is, if that is known.
    pub(crate) fn stand_in(&self, key: &Key, log: Option<&Path>) -> Option<Key> {
        let home = self.homes.get(key.source.0)?;
        let comes_first = |number: SourceId, other: &Home| {
            number != key.source && other.is_read() && !other.is_beside && (home.is_beside || number < key.source)
        };
        let mut others = self.numbered().filter(|(number, other)| comes_first(*number, other));
        let other = others.find(|(_, other)| home.source.shares(&other.source, &key.id, log))?;
        Some(Key::new(other.0, Arc::clone(&key.id)))
    }

    /// Whether all logs of a home are read in another one.
    pub(crate) fn is_read_elsewhere(&self, home: SourceId) -> bool {
        let its = &self.homes[home.0];
        let comes_first = |number: SourceId, other: &Home| number < home && other.is_read() && !other.is_beside;
        its.is_beside
            || self.numbered().any(|(number, other)| comes_first(number, other) && its.source.shares_all(&other.source))
    }

    /// Stops following a home.
    pub(crate) fn unfollow(&mut self, home: SourceId) {
        self.homes[home.0].is_followed = false;
    }

    /// Forgets what is in the place of homes at or below these removed paths. Their watches are gone, even if the same
    /// folder is back by now.
    pub(crate) fn invalidate(&mut self, gone: &HashSet<PathBuf>) {
        for home in &mut self.homes {
            if home.source.root().ancestors().any(|path| gone.contains(path)) {
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
    pub(crate) fn take_replaced(&mut self) -> Vec<SourceId> {
        let mut replaced = Vec::new();
        for (number, home) in self.homes.iter_mut().enumerate().filter(|(_, home)| home.is_read()) {
            let mut state = RootState::of(home.source.root());
            if (state == RootState::Missing || state != home.state)
                && let Some(told) = home.source.told_anew()
            {
                state = RootState::of(told.root());
                (home.source, home.state, home.is_retold) = (told, RootState::Unknown, true);
            }
            if std::mem::replace(&mut home.state, state) != state {
                home.hash = HomeHash::of(home.source.home());
                home.listed = ListingCache::default();
                replaced.push(SourceId(number));
            }
        }
        replaced
    }

    /// Whether a home turned out to be another agent's since the last time that this was asked.
    pub(crate) fn take_retold(&mut self, home: SourceId) -> bool {
        std::mem::take(&mut self.homes[home.0].is_retold)
    }

    /// Whether sessions may have appeared in or disappeared from a home since the last look.
    pub(crate) fn has_other_entries(&mut self, home: SourceId) -> bool {
        let home = &mut self.homes[home.0];
        let changed = fs::metadata(home.source.root()).and_then(|meta| meta.modified()).ok();
        std::mem::replace(&mut home.entries_changed, changed) != changed
    }

    /// Notes what a listing of a home read just now, by the wall clock.
    pub(crate) fn set_listed(&mut self, home: SourceId, listed: ListingCache, now: Time) {
        self.homes[home.0].listed = if listed.are_settled(now) { listed } else { ListingCache::default() };
    }

    /// Whether another listing of a home would find what the last one found.
    pub(crate) fn is_as_listed(&self, home: SourceId) -> bool {
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
    fn source(root: &Path) -> Source {
        Source::at(root.parent().unwrap())
    }

    fn homes(roots: &[&Path]) -> Homes {
        let sources: Vec<_> = roots.iter().map(|root| source(root)).collect();
        Homes::new(&sources, Time(0))
    }

    #[test]
    fn a_home_or_parent_that_is_made_removed_or_replaced_is_reported() {
        let scratch = tempfile::tempdir().unwrap();
        let (root, aside) = (scratch.path().join("home/session-state"), scratch.path().join("aside"));
        let mut homes = homes(&[&root]);
        assert_eq!((homes.take_replaced(), homes.take_replaced()), (vec![SourceId(0)], vec![]), "nothing is there");
        fs::create_dir_all(&root).unwrap();
        assert_eq!((homes.take_replaced(), homes.take_replaced()), (vec![SourceId(0)], vec![]), "made");
        fs::create_dir(&aside).unwrap();
        fs::remove_dir(&root).unwrap();
        fs::rename(&aside, &root).unwrap();
        assert_eq!((homes.take_replaced(), homes.take_replaced()), (vec![SourceId(0)], vec![]), "another one");
        homes.invalidate(&HashSet::from([scratch.path().join("other")]));
        assert!(homes.take_replaced().is_empty());
        homes.invalidate(&HashSet::from([scratch.path().join("home")]));
        assert_eq!(homes.take_replaced(), [SourceId(0)], "its parent was gone for a moment");
        homes.invalidate_all();
        assert_eq!(homes.take_replaced(), [SourceId(0)]);
    }

    #[test]
    fn case_284_a_home_that_is_told_by_its_content_becomes_another_agents() {
        let scratch = tempfile::tempdir().unwrap();
        let mut homes = Homes::new(&[Source::at(scratch.path())], Time(0));
        assert_eq!((homes.take_replaced(), homes.take_retold(SourceId(0))), (vec![SourceId(0)], false), "it is empty");
        fs::create_dir(scratch.path().join("projects")).unwrap();
        assert_eq!((homes.take_replaced(), homes.take_retold(SourceId(0))), (vec![SourceId(0)], true));
        assert!(homes.root(SourceId(0)).ends_with("projects"));
        assert_eq!((homes.take_replaced(), homes.take_retold(SourceId(0))), (vec![], false));
    }

    #[test]
    fn a_home_that_is_followed_again_keeps_its_number_and_is_checked_again() {
        let scratch = tempfile::tempdir().unwrap();
        let (a, b) = (scratch.path().join("a/session-state"), scratch.path().join("b/session-state"));
        let mut homes = homes(&[&a]);
        assert_eq!((homes.follow(source(&b)), homes.follow(source(&b))), (Some(SourceId(1)), None));
        assert_eq!(homes.take_replaced(), [SourceId(0), SourceId(1)]);
        homes.unfollow(SourceId(0));
        assert!(!homes.is_followed(SourceId(0)) && homes.is_followed(SourceId(1)) && !homes.is_followed(SourceId(2)));
        homes.invalidate_all();
        assert_eq!(
            (homes.take_replaced(), homes.numbers(), homes.sources()),
            (vec![SourceId(1)], vec![SourceId(1)], vec![&source(&b)])
        );
        assert_eq!(homes.follow(source(&a)), Some(SourceId(0)));
        assert_eq!((homes.take_replaced(), homes.number(&a)), (vec![SourceId(0)], Some(SourceId(0))));
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
