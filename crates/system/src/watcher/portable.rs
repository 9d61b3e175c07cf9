//! File events on macOS and Windows, from the `notify` crate and its thread.

use super::filter::Filter;
use super::hints::{Hints, Refusal};
use super::names_of;
use super::plan::WatchPlan;
use crate::file_system::without_file_events;
use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use pilotlight_core::session::{Key, NoFileEvents};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// A `notify` watcher and its watches.
pub(super) struct Source {
    notify: RecommendedWatcher,
    /// The watched folders, and which file system each is on if its changes may cause no event.
    watched: BTreeMap<PathBuf, Option<&'static str>>,
    /// Those of them that are watched without what is below them.
    flat: BTreeSet<PathBuf>,
    shared: Arc<Shared>,
}

struct Shared {
    hints: Mutex<Hints>,
    filter: Mutex<Filter>,
    changed: Notify,
}

impl Source {
    pub(super) fn new(filter: Filter) -> notify::Result<Self> {
        let shared = Arc::new(Shared { filter: Mutex::new(filter), hints: Mutex::default(), changed: Notify::new() });
        let for_handler = Arc::clone(&shared);
        let handler = move |event: notify::Result<Event>| {
            let mut hints = for_handler.hints.lock().unwrap_or_else(PoisonError::into_inner);
            let filter = for_handler.filter.lock().unwrap_or_else(PoisonError::into_inner);
            if handle(event, &filter, &mut hints) {
                drop((hints, filter));
                for_handler.changed.notify_one();
            }
        };
        Ok(Self {
            notify: notify::recommended_watcher(handler)?,
            watched: BTreeMap::new(),
            flat: BTreeSet::new(),
            shared,
        })
    }

    pub(super) async fn changed(&mut self) -> Hints {
        loop {
            let hints = std::mem::take(&mut *self.shared.hints.lock().unwrap_or_else(PoisonError::into_inner));
            if hints.any() {
                return hints;
            }
            self.shared.changed.notified().await;
        }
    }

    /// Does nothing: events are collected on the other thread.
    pub(super) const fn pause(&self) {}

    pub(super) fn update_filter(&mut self, change: impl FnOnce(&mut Filter)) {
        change(&mut self.shared.filter.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Removes the watches at a path and below it.
    pub(super) fn forget(&mut self, path: &Path) {
        let below: Vec<_> = self
            .watched
            .range(path.to_owned()..)
            .map(|(folder, _)| folder.clone())
            .take_while(|it| it.starts_with(path))
            .collect();
        for folder in below {
            self.unwatch(&folder);
        }
    }

    /// Whether the replacement of a home by another folder causes a hint: not for every folder on its path.
    pub(super) const fn detects_replaced_homes(&self) -> bool {
        false
    }

    /// Does nothing: a session is watched with its home.
    pub(super) const fn watch_session(&mut self, _: &Key, _: &Path) -> Result<bool, Refusal> {
        Ok(false)
    }

    /// Does nothing: a tree is watched by its name, whatever it is.
    pub(super) const fn rewatch_session(&self, _: &Key, _: &Path) -> Result<bool, Refusal> {
        Ok(false)
    }

    /// Does nothing: they are watched with its home.
    pub(super) const fn watch_beside(&self, _: &Key, _: &[PathBuf]) -> bool {
        false
    }

    /// Does nothing: they are watched with its home.
    pub(super) const fn unwatch_beside(&self, _: &Key) {}

    /// Does nothing: these systems report who opens a file to privileged programs alone.
    pub(super) const fn watch_programs(&self, _: &[PathBuf]) -> bool {
        false
    }

    /// A session is watched with its home.
    pub(super) const fn lacks_watch(&self, _: &Key) -> bool {
        false
    }

    /// Why changes of a session in this folder may cause no event, if they may not.
    pub(super) fn no_file_events(&self, _: &Key, path: &Path) -> Option<NoFileEvents> {
        let Some(file_system) = path.ancestors().find_map(|folder| self.watched.get(folder)) else {
            return Some(NoFileEvents::Refused);
        };
        file_system.map(|kind| NoFileEvents::FileSystem(kind.into()))
    }

    /// Does nothing: a session is watched with its home.
    pub(super) const fn watch_old_session(&mut self, _: &Key, _: &Path) -> Result<(), Refusal> {
        Ok(())
    }

    /// Does nothing: a session is watched with its home.
    pub(super) const fn mark_old(&self, _: &Key) {}

    /// Does nothing: a tree is watched by its name, whatever it is.
    pub(super) const fn unwatch_routes(&self, _: &BTreeSet<PathBuf>) {}

    /// Watches these roots; for one that does not exist, the nearest existing folder above it. And the folders beside them
    /// that exist and whose files may change without a change of a session. Returns the folders that could not be watched.
    pub(super) fn watch_routes(
        &mut self,
        roots: &[(&WatchPlan, &Path)],
        awaited: &[PathBuf],
        kept: &BTreeSet<PathBuf>,
    ) -> Vec<(PathBuf, Refusal)> {
        self.shared.filter.lock().unwrap_or_else(PoisonError::into_inner).points =
            awaited.iter().flat_map(|home| names_of(home)).collect();
        let mut refused = Vec::new();
        // Repeated until stable, to find what was created before its watch was added.
        for _ in 0..8 {
            refused.clear();
            let wanted = existing(roots, awaited);
            for (folder, mode) in &wanted {
                if let Err(refusal) = self.watch_for(folder, *mode) {
                    refused.push((folder.clone(), refusal));
                }
            }
            self.unwatch_all_but(&wanted, kept);
            if wanted == existing(roots, awaited) {
                break;
            }
        }
        refused
    }

    /// Removes every watch but those on these folders and on that of the seen marks.
    fn unwatch_all_but(&mut self, wanted: &BTreeMap<PathBuf, RecursiveMode>, kept: &BTreeSet<PathBuf>) {
        let seen = self.shared.filter.lock().unwrap_or_else(PoisonError::into_inner).seen.clone();
        let is_wanted = |folder: &PathBuf| {
            let has_marks = seen.as_deref().and_then(Path::parent) == Some(folder);
            wanted.contains_key(folder) || kept.contains(folder) || has_marks
        };
        let left: Vec<_> = self.watched.keys().filter(|folder| !is_wanted(folder)).cloned().collect();
        for folder in left {
            self.unwatch(&folder);
        }
    }

    /// Does nothing: a tree is watched as a whole.
    pub(super) const fn renew(&self) {}

    pub(super) fn watch(&mut self, path: &Path) -> Result<(), Refusal> {
        self.watch_for(path, RecursiveMode::Recursive)
    }

    /// Watches which entries appear and disappear in a folder.
    pub(super) fn watch_entries(&mut self, path: &Path) -> Result<(), Refusal> {
        self.watch_for(path, RecursiveMode::NonRecursive)
    }

    fn watch_for(&mut self, path: &Path, mode: RecursiveMode) -> Result<(), Refusal> {
        let is_tree = mode == RecursiveMode::Recursive;
        match self.flat.contains(path) {
            // A folder alone is not enough any more.
            true if is_tree => self.unwatch(path),
            false if !self.watched.contains_key(path) => {}
            _ => return Ok(()),
        }
        match self.notify.watch(path, mode) {
            Ok(()) => {
                self.watched.insert(path.to_owned(), without_file_events(path));
                if !is_tree {
                    self.flat.insert(path.to_owned());
                }
                Ok(())
            }
            Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => Err(Refusal::Full),
            Err(error) => Err(Refusal::Other(error.to_string())),
        }
    }

    fn unwatch(&mut self, path: &Path) {
        self.watched.remove(path);
        self.flat.remove(path);
        // The system has usually removed the watch already. A leftover one only costs irrelevant events.
        let _ = self.notify.unwatch(path);
    }
}

/// The folders beside a root whose files say who runs a session.
fn beside<'a>((plan, root): &'a (&'a WatchPlan, &'a Path)) -> impl Iterator<Item = PathBuf> + 'a {
    let home = root.parent();
    let folders = plan.folders().filter(|(_, may_come_last)| *may_come_last);
    folders.filter_map(move |(folder, _)| Some(home?.join(folder)))
}

/// What of all this can be watched now, and how: where a home is awaited, the nearest folder alone.
fn existing(roots: &[(&WatchPlan, &Path)], awaited: &[PathBuf]) -> BTreeMap<PathBuf, RecursiveMode> {
    let nearest = |path: &Path| path.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned);
    let beside = roots.iter().flat_map(beside).filter(|folder| folder.is_dir());
    let trees = roots.iter().filter_map(|(_, root)| nearest(root)).chain(beside);
    let flat = awaited.iter().filter_map(|home| nearest(home));
    // Of both, the tree stays.
    let flat = flat.map(|folder| (folder, RecursiveMode::NonRecursive));
    flat.chain(trees.map(|folder| (folder, RecursiveMode::Recursive))).collect()
}

/// Handles an event. Returns whether it was relevant.
fn handle(event: notify::Result<Event>, filter: &Filter, hints: &mut Hints) -> bool {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        Ok(_) | Err(_) => {
            hints.all = true;
            return true;
        }
    };
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let went = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    event.paths.iter().fold(false, |is_relevant, path| filter.add(path, went, hints) | is_relevant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watcher::filter::Home;
    use crate::watcher::plan::{TEST_FILES, TEST_NAMES};
    use pilotlight_core::session::HomeId;
    use std::fs;
    use std::time::Duration;

    /// Waits until these hints have come.
    fn wait_for(source: &mut Source, are_there: impl Fn(&Hints) -> bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let seen = async { while !are_there(&source.changed().await) {} };
            tokio::time::timeout(Duration::from_secs(30), seen).await.expect("the event is seen");
        });
    }

    #[test]
    fn case_498_who_runs_a_session_is_seen_beside_the_sessions() {
        for (plan, folder, files) in
            [(&TEST_NAMES, "logs", ["x-1.log", "x-2.log"]), (&TEST_FILES, "locks", ["1.lock", "2.lock"])]
        {
            let scratch = tempfile::tempdir().unwrap();
            let home = scratch.path().canonicalize().unwrap();
            let (root, beside) = (home.join("sessions"), home.join(folder));
            fs::create_dir(&root).unwrap();
            let of = Home { plan, names: vec![root.clone()] };
            let mut source = Source::new(Filter { homes: vec![of], ..Filter::default() }).unwrap();
            let follow = |source: &mut Source| source.watch_routes(&[(plan, &root)], &[], &BTreeSet::new());
            // The folder comes later, goes, and comes again. Windows removes a watched folder only later, so not there.
            let times = if cfg!(windows) { 1 } else { 2 };
            for (number, file) in (1..).zip(files).take(times) {
                assert!(follow(&mut source).is_empty() && !source.watched.contains_key(&beside));
                fs::create_dir(&beside).unwrap();
                assert!(follow(&mut source).is_empty());
                fs::write(beside.join(file), "").unwrap();
                wait_for(&mut source, |hints| {
                    let id = number.to_string();
                    hints.named.contains(&(HomeId(0), number)) || hints.folders.contains(&Key::new(HomeId(0), id))
                });
                fs::remove_dir_all(&beside).unwrap();
            }
        }
    }

    #[test]
    fn case_499_what_no_home_needs_is_no_longer_watched_but_settings_and_seen_marks_are() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().canonicalize().unwrap();
        let [state, settings, first, other] =
            ["state", "settings", "state/first", "other"].map(|name| folder.join(name));
        let roots = [&first, &other].map(|home| home.join("sessions"));
        for made in roots.iter().chain([&settings, &other.join("locks")]) {
            fs::create_dir_all(made).unwrap();
        }
        let mut source = Source::new(Filter { seen: Some(state.join("seen.json")), ..Filter::default() }).unwrap();
        let kept = BTreeSet::from([settings.clone()]);
        for own in [&state, &settings] {
            assert!(source.watch(own).is_ok());
        }
        let mut follow = |roots: &[&Path]| {
            let roots: Vec<_> = roots.iter().map(|root| (&TEST_FILES, *root)).collect();
            assert!(source.watch_routes(&roots, &kept).is_empty());
            source.watched.keys().cloned().collect::<Vec<_>>()
        };
        let all = [&other.join("locks"), &roots[1], &settings, &state, &roots[0]].map(Clone::clone);
        assert_eq!(follow(&[&roots[0], &roots[1]]), all);
        assert_eq!(follow(&[&roots[0]]), all[2..]);
        if cfg!(windows) {
            return; // it removes a watched folder only later
        }
        fs::remove_dir(&roots[0]).unwrap();
        assert_eq!(follow(&[&roots[0]]), [settings, state, first], "the nearest folder that is there");
    }
}
