//! The watches of sessions: each on a folder of its own, or on one that sessions share.

use super::place::Place;
use super::{CHANGES, Source};
use crate::file_system::without_file_events;
use crate::watcher::hints::Refusal;
use crate::watcher::route::Scope;
use pilotlight_core::session::{HomeId, Key, NoFileEvents};
use std::path::{Path, PathBuf};

impl Source {
    /// Returns whether a new watch was added.
    pub(in crate::watcher) fn watch_session(&mut self, key: &Key, path: &Path) -> Result<bool, Refusal> {
        if self.held.contains_key(key) {
            return Ok(false);
        }
        self.rewatch_session(key, path)
    }

    /// Watches what a session's path leads to now: a mount may have covered the folder that is watched. Returns whether
    /// a new watch was added.
    pub(in crate::watcher) fn rewatch_session(&mut self, key: &Key, path: &Path) -> Result<bool, Refusal> {
        if let Some(folder) = self.shared_folder(key, path) {
            self.watch(folder)?;
            let Some((watch, _)) = self.folders.get(folder) else { return Ok(false) };
            let held = (*watch, without_file_events(folder));
            return Ok(self.held.insert(key.clone(), held).is_none_or(|(former, _)| former != held.0));
        }
        let watch = self.add_watch(path, CHANGES)?;
        let former = self.held.insert(key.clone(), (watch, without_file_events(path)));
        if former.is_some_and(|(former, _)| former == watch) {
            return Ok(false);
        }
        if let Some((former, _)) = former {
            self.leave(former, |place| *place == Place::of(key));
        }
        self.places.add(watch, Place::of(key));
        Ok(true)
    }

    /// Watches further folders of a current session, in which what is changed is read with it. Those that are not there
    /// cause an event in the one above when they appear. Returns whether a new watch was added.
    pub(in crate::watcher) fn watch_beside(&mut self, key: &Key, folders: &[PathBuf]) -> bool {
        let mut is_new = false;
        for folder in folders {
            let is_known = self.folders.contains_key(&**folder);
            if !is_known && self.watch(folder).is_ok() {
                let beside = self.beside.entry(key.clone()).or_default();
                if !beside.contains(folder) {
                    beside.push(folder.clone());
                }
                is_new = true;
            }
        }
        is_new
    }

    /// Stops watching the further folders of a session.
    pub(in crate::watcher) fn unwatch_beside(&mut self, key: &Key) {
        for folder in self.beside.remove(key).into_iter().flatten() {
            self.unwatch(&folder);
        }
    }

    /// Stops watching a further folder of a session that was moved: another may take its place.
    pub(super) fn forget_moved(&mut self, folder: &Path) {
        if self.beside.values().flatten().any(|beside| beside == folder) {
            self.unwatch(folder);
        }
    }

    /// Why changes of a current session may cause no event, if they may not.
    pub(in crate::watcher) fn no_file_events(&self, key: &Key, path: &Path) -> Option<NoFileEvents> {
        let file_system = match self.held.get(key) {
            Some((_, file_system)) => *file_system,
            // Its folder appears with its first file.
            None => match self.watched_above(key, path) {
                Some(above) => without_file_events(above),
                None => return Some(NoFileEvents::Refused),
            },
        };
        file_system.map(|kind| NoFileEvents::FileSystem(kind.into()))
    }

    /// Whether a current session has no watch.
    pub(in crate::watcher) fn lacks_watch(&self, key: &Key) -> bool {
        !self.held.contains_key(key)
    }

    /// Where the folder that a session is to share is not there yet: the one above it that is, if what appears in that causes an event.
    fn watched_above<'a>(&self, key: &Key, path: &'a Path) -> Option<&'a Path> {
        let folder = self.shared_folder(key, path).filter(|folder| !folder.exists())?;
        let above = folder.ancestors().find(|above| above.exists())?;
        let is_watched = |above: &Path| self.folders.get(above).is_some_and(|(_, scope)| *scope >= Scope::Entries);
        (is_watched(above) || above.canonicalize().is_ok_and(|real| is_watched(&real))).then_some(above)
    }

    pub(in crate::watcher) fn watch_old_session(&mut self, key: &Key, path: &Path) -> Result<(), Refusal> {
        if let Some(folder) = self.shared_folder(key, path) {
            return self.watch(folder);
        }
        let watch = self.add_watch(path, CHANGES)?;
        self.places.add(watch, Place::of(key));
        Ok(())
    }

    pub(in crate::watcher) fn mark_old(&mut self, key: &Key) {
        self.unwatch_beside(key);
        self.held.remove(key);
    }

    /// A folder that sessions share is no longer watched, so none of them is.
    pub(super) fn forget_sharers(&mut self, watch: i32) {
        let filter = &self.filter;
        self.held.retain(|key, (of, _)| *of != watch || !filter.has_shared_folders(key.home));
    }

    /// The folder that a session shares with others, where its home has such. It is watched for all of them.
    fn shared_folder<'a>(&self, key: &Key, path: &'a Path) -> Option<&'a Path> {
        self.filter.has_shared_folders(key.home).then(|| path.parent().unwrap_or(path))
    }

    /// A watch no longer is a session's, unless the session has another by now.
    pub(super) fn release(&mut self, key: &Key, watch: i32) {
        if self.held.get(key).is_some_and(|(held, _)| *held == watch) {
            self.held.remove(key);
        }
    }

    pub(super) fn forget_sessions(&mut self, home: HomeId) {
        self.held.retain(|key, _| key.home != home);
        let goes = |place: &Place| matches!(place, Place::Session(of, _) if *of as usize == home.0);
        for watch in self.places.of_home(home) {
            self.leave(watch, goes);
        }
        self.places.shrink();
    }
}
