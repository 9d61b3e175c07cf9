//! Reduces file events to hints about what must be read again.
//!
//! An event is only a hint: the files are read to find what has changed. Irrelevant events (a file was opened or read)
//! are not requested where the system allows that, and dropped here otherwise. The others are collected in sets, so
//! that a storm of them needs memory only in proportion to the number of sessions.
//!
//! On Linux each session folder has a watch of its own: a recursive watch would include the three subfolders of each,
//! and misses files created right after their folder. `linux` says what else it avoids. macOS and Windows watch a tree
//! at no extra cost.

mod filter;
mod hints;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod mounts;
mod plan;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(target_os = "linux")]
mod route;
mod throttle;

use crate::log::{self, private};
use crate::mounts::Mounts;
use crate::timer::Alarm;
use filter::{Filter, Home};
use hints::Refusal;
#[cfg(target_os = "linux")]
use linux::Source;
use pilotlight_core::session::{HomeId, Key, NoFileEvents};
#[cfg(not(target_os = "linux"))]
use portable::Source;
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use throttle::Throttle;

pub use hints::Hints;
pub use plan::{Layout, Locks, Logs, WatchPlan};

/// Watches session folders.
pub struct Watcher {
    source: Option<Source>,
    /// Folders that stay watched even if they are on the route to a home.
    kept: BTreeSet<PathBuf>,
    throttle: Throttle,
    alarm: Alarm,
    /// Why not everything is watched, in words for the user, who is shown it once.
    pub trouble: Option<String>,
}

/// Whether a watch on a folder includes everything below it.
pub const WATCHES_TREES: bool = !cfg!(target_os = "linux");

/// The most entries of a folder in which folders that sessions share are looked for.
const FOLDERS_MAX: usize = 10_000;

/// What is done without file events, in words for the user.
pub const POLLING: &str = "live sessions are looked at every 5 s, the rest once a minute";

impl Watcher {
    /// Creates a watcher without watches, for homes with these plans and folders that hold their sessions. `seen` is the
    /// file that records which sessions the user has seen.
    pub fn new<'a>(homes: impl Iterator<Item = (&'static WatchPlan, &'a Path)>, seen: Option<PathBuf>) -> Self {
        let filter = Filter {
            homes: homes.map(|(plan, root)| Home { plan, names: names_of(root) }).collect(),
            seen,
            ..Filter::default()
        };
        let (source, trouble) = match Source::new(filter) {
            Ok(source) => (Some(source), None),
            Err(error) => (None, Some(format!("file changes cannot be watched ({error}); {POLLING} instead"))),
        };
        Self { source, kept: BTreeSet::new(), throttle: Throttle::default(), alarm: Alarm::default(), trouble }
    }

    /// A watcher that never watches anything, for whoever looks only once.
    pub fn idle() -> Self {
        Self {
            source: None,
            kept: BTreeSet::new(),
            throttle: Throttle::default(),
            alarm: Alarm::default(),
            trouble: None,
        }
    }

    /// Sets the folder that holds the sessions of a home, which is one of those that are known or the next. `None` stops
    /// following the home.
    pub fn set_followed(&mut self, number: HomeId, plan: &'static WatchPlan, root: Option<&Path>) {
        let Some(source) = &mut self.source else { return };
        let home = Home { plan, names: root.map(names_of).unwrap_or_default() };
        source.update_filter(|filter| match filter.homes.get_mut(number.0) {
            Some(known) => *known = home,
            None => filter.homes.push(home),
        });
    }

    /// Watches the settings file through its folder; if the file is a link, also through the folder of the real file.
    pub fn watch_config(&mut self, path: &Path) {
        let names = names_of(path);
        let folders: Vec<_> = names.iter().filter_map(|name| name.parent().map(Path::to_owned)).collect();
        let Some(source) = &mut self.source else { return };
        source.update_filter(|filter| filter.config = names);
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            self.watch(&folder);
            self.kept.insert(folder);
        }
    }

    /// Watches these sockets, in place of all others: that one is removed or replaced causes a hint.
    pub fn watch_sockets(&mut self, sockets: &[PathBuf]) {
        let folders: BTreeSet<_> = sockets.iter().filter_map(|socket| socket.parent().map(Path::to_owned)).collect();
        let names = sockets.iter().flat_map(|socket| names_of(socket)).collect();
        if let Some(source) = &mut self.source {
            source.update_filter(|filter| filter.sockets = names);
        }
        for folder in folders {
            let Some(source) = &mut self.source else { return };
            let watched = source.watch_entries(&folder);
            self.record(&folder, watched);
            self.kept.insert(folder);
        }
    }

    /// Waits for hints. Cancel-safe. `awake` says that the caller has other work, so that throttling would save no
    /// wakeup.
    pub async fn changed(&mut self, awake: bool) -> Hints {
        let Some(source) = &mut self.source else { return std::future::pending().await };
        let paused_until = self.throttle.paused_until(Instant::now()).filter(|_| !awake);
        if let Some(until) = paused_until {
            source.pause();
            self.alarm.until(until).await;
        }
        let hints = source.changed().await;
        self.throttle.record_wake(Instant::now());
        // During a pause the loop polls everything else, so this is no storm.
        Hints { at_once: hints.at_once && paused_until.is_none(), ..hints }
    }

    /// Watches a folder, unless it is watched already. Returns whether it is watched now.
    pub fn watch(&mut self, path: &Path) -> bool {
        let Some(source) = &mut self.source else { return false };
        let watched = source.watch(path);
        self.record(path, watched)
    }

    /// Watches a session's folder. Returns whether a new watch was added.
    pub fn watch_session(&mut self, key: &Key, path: &Path) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(source) = &mut self.source else { return false };
        match source.watch_session(key, path) {
            Ok(is_new) => is_new,
            refused => self.record(path, refused.map(drop)),
        }
    }

    /// Watches further folders of a session that is watched, where sessions share folders. Returns whether a new watch was
    /// added.
    pub fn watch_beside(&mut self, key: &Key, folders: &[PathBuf]) -> bool {
        let has_room = self.has_room();
        self.source.as_mut().is_some_and(|source| has_room && source.watch_beside(key, folders))
    }

    /// Stops watching the further folders of a session that is gone.
    pub fn unwatch_beside(&mut self, key: &Key) {
        if let Some(source) = &mut self.source {
            source.unwatch_beside(key);
        }
    }

    /// Watches what the path of a session leads to now, if the session is watched: a mount may have covered its folder.
    /// Returns whether a new watch was added.
    pub fn rewatch_session(&mut self, key: &Key, path: &Path) -> bool {
        let Some(source) = &mut self.source else { return false };
        if source.no_file_events(key, path) == Some(NoFileEvents::Refused) {
            return false;
        }
        match source.rewatch_session(key, path) {
            Ok(is_new) => is_new,
            refused => self.record(path, refused.map(drop)),
        }
    }

    /// Why changes of a session that is held may cause no event, if they may not.
    pub fn no_file_events(&self, key: &Key, path: &Path) -> Option<NoFileEvents> {
        match &self.source {
            Some(source) => source.no_file_events(key, path),
            None => self.trouble.is_some().then_some(NoFileEvents::Refused),
        }
    }

    /// Whether a session that is held has no watch: its folder is not there yet, or the system has no more to give.
    pub fn lacks_watch(&self, key: &Key) -> bool {
        self.source.as_ref().is_some_and(|source| source.lacks_watch(key))
    }

    /// Watches the folder of an old session, which will most likely never change again, with less memory. Returns
    /// whether it is watched now.
    pub fn watch_old_session(&mut self, key: &Key, path: &Path) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(source) = &mut self.source else { return false };
        let watched = source.watch_old_session(key, path);
        self.record(path, watched)
    }

    /// Marks a session as old: its folder stays watched, with less memory.
    pub fn mark_old(&mut self, key: &Key) {
        if let Some(source) = &mut self.source {
            source.mark_old(key);
        }
    }

    /// Records why a folder could not be watched. Returns whether it is watched.
    fn record(&mut self, path: &Path, watched: Result<(), Refusal>) -> bool {
        match watched {
            Ok(()) => true,
            Err(Refusal::Full) => {
                self.trouble.get_or_insert_with(|| {
                    format!(
                        "the system's limit of file watches is reached; beyond it, {POLLING} (raise \
                         fs.inotify.max_user_watches to watch them all)"
                    )
                });
                false
            }
            Err(Refusal::Gone) => false,
            Err(Refusal::Other(error)) => {
                log::debug!(path = private(&path.display()), "not watched: {}", private(&error));
                false
            }
        }
    }

    /// Watches the files of these programs in place of all others: when one is opened, as by whoever starts it, that causes
    /// one hint, and no other until this is called again. Returns whether any of them was not watched until now, so that it
    /// may have been started unseen.
    pub fn watch_programs(&mut self, programs: &[PathBuf]) -> bool {
        self.source.as_mut().is_some_and(|source| source.watch_programs(programs))
    }

    /// Watches these roots, and the folders that show when a root is replaced by another folder. Of homes that are `awaited`,
    /// the folder in which they will be made: whatever else happens in that causes no hint. `renew` replaces all
    /// these watches, because a path may no longer lead to the folder that is watched for it. Returns the folders that
    /// vanished before they could be watched: nothing reports what takes their place.
    pub fn watch_routes(
        &mut self,
        roots: &[(&WatchPlan, &Path)],
        awaited: &[PathBuf],
        renew: bool,
    ) -> HashSet<PathBuf> {
        let Some(source) = &mut self.source else { return HashSet::new() };
        if renew {
            source.unwatch_routes(&self.kept);
        }
        let mut vanished = HashSet::new();
        for (path, refusal) in source.watch_routes(roots, awaited, &self.kept) {
            if matches!(refusal, Refusal::Gone) {
                vanished.insert(path);
            } else {
                self.record(&path, Err(refusal));
            }
        }
        vanished
    }

    /// Watches the folders below a root that is watched, if sessions share some.
    pub fn watch_shared_folders(&mut self, plan: &WatchPlan, root: &Path) {
        if let (Layout::Files { depth, .. }, false) = (plan.layout, WATCHES_TREES) {
            self.watch_below(root, depth);
        }
    }

    /// Watches the folders in this one, and those in them. What appears in one after it was listed causes an event, as it
    /// is watched by then: so each is listed once. Those with the sessions are not listed at all.
    fn watch_below(&mut self, folder: &Path, depth: usize) {
        if depth == 0 {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(FOLDERS_MAX) {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() || kind.is_symlink() && path.is_dir() {
                self.watch(&path);
                self.watch_below(&path, depth - 1);
            }
        }
    }

    /// Whether the replacement of a home by another folder causes a hint.
    pub fn detects_replaced_homes(&self) -> bool {
        self.has_room() && self.source.as_ref().is_some_and(Source::detects_replaced_homes)
    }

    /// Removes the watches on a folder that is gone and on everything below it, so that a new folder of its name can be
    /// watched.
    pub fn forget(&mut self, path: &Path) {
        if let Some(source) = &mut self.source {
            source.forget(path);
        }
    }

    /// Renews all watches except those of sessions, which the caller must watch again. Needed after lost events: they
    /// may have included the end of a watch whose folder was then recreated.
    pub fn renew(&mut self) {
        if let (Some(source), false) = (&mut self.source, WATCHES_TREES) {
            source.renew();
        }
    }

    /// Whether more watches can be added.
    pub const fn has_room(&self) -> bool {
        self.trouble.is_none() && self.source.is_some()
    }
}

/// A path and its real path, which some systems report for a path given through a link.
fn names_of(path: &Path) -> Vec<PathBuf> {
    Some(Mounts::read().real(path)).into_iter().filter(|real| real != path).chain([path.to_owned()]).collect()
}
