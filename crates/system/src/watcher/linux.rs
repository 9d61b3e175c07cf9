//! File events on Linux: inotify, read on the thread that handles them.
//!
//! The `notify` crate has a thread of its own and requests events for every file that is opened: each event would wake
//! two threads, and each program that reads a session's folder, including ourselves, would cause one event per file.
//! Here only changes are requested, so readers cause no wakeups, and a change wakes only the thread that handles it. Of the
//! few files that are agents' programs, the first time that one is opened is (`programs`).

mod place;
mod programs;
mod sessions;
#[cfg(test)]
mod tests;

use super::filter::Filter;
use super::hints::{Hints, Refusal};
use super::mounts::Mounts;
use super::plan::WatchPlan;
use super::route::{Routes, Scope};
use crate::log::{self, cause};
use crate::readiness::wait_for;
use pilotlight_core::session::Key;
use place::{Place, Places, Watches};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::future::pending;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Changes of a file, a folder, or its entries. Each write is an event, so the event for closing the file adds nothing.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
/// [`Scope::Itself`].
const ITSELF: WatchFlags = WatchFlags::DELETE_SELF.union(WatchFlags::MOVE_SELF).union(WatchFlags::ONLYDIR);
/// [`Scope::Replaced`].
const REPLACED: WatchFlags = ITSELF.union(WatchFlags::MOVED_TO);
/// [`Scope::Entries`].
const ENTRIES: WatchFlags = ITSELF.union(WatchFlags::CREATE).union(WatchFlags::DELETE).union(WatchFlags::MOVE);
/// A path's former file is gone or was replaced.
const WENT: ReadFlags = ReadFlags::DELETE
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO)
    .union(ReadFlags::DELETE_SELF)
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::UNMOUNT);
/// The most events that are read before their hints are handed over: a storm must not block the loop.
const AT_ONCE: usize = 4096;

/// An inotify instance and its watches.
pub(super) struct Source {
    filter: Filter,
    inotify: Arc<OwnedFd>,
    /// Its registration with the runtime, made on the first wait.
    ready: Option<AsyncFd<Arc<OwnedFd>>>,
    /// Whether all events were read, so that none are left until the descriptor becomes ready.
    drained: bool,
    mounts: Mounts,
    watches_mounts: bool,
    /// What each watch is on.
    places: Watches,
    /// The watched folders other than sessions', by path.
    folders: BTreeMap<Arc<Path>, (i32, Scope)>,
    /// Folders of logs and of locks that do not exist yet.
    missing: Vec<PathBuf>,
    /// Whether there was an event in a folder that is not a session's.
    home_touched: bool,
    /// The watches of current sessions, and which file system each is on if its changes may cause no event. Old sessions
    /// are found only by their watch, in `places`.
    held: HashMap<Key, (i32, Option<&'static str>)>,
    /// Further folders of current sessions, where sessions share folders.
    beside: HashMap<Key, Vec<PathBuf>>,
    /// The watches of programs' files that were not opened since.
    programs: HashSet<i32>,
    hints: Hints,
}

impl Source {
    pub(super) fn new(filter: Filter) -> io::Result<Self> {
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
        let mounts = Mounts::list();
        Ok(Self {
            filter,
            inotify,
            ready: None,
            drained: false,
            watches_mounts: mounts.are_reported(),
            mounts,
            places: Watches::default(),
            folders: BTreeMap::new(),
            missing: Vec::new(),
            home_touched: false,
            held: HashMap::new(),
            beside: HashMap::new(),
            programs: HashSet::new(),
            hints: Hints::default(),
        })
    }

    pub(super) async fn changed(&mut self) -> Hints {
        let mut at_once = true;
        loop {
            if !self.drained {
                self.drained = self.read();
                self.look_for_missing();
            }
            if self.hints.any() {
                return Hints { at_once, ..std::mem::take(&mut self.hints) };
            }
            at_once = false;
            if !self.drained {
                tokio::task::yield_now().await;
                continue;
            }
            let ready = match &mut self.ready {
                Some(ready) => ready,
                none => match wait_for(Arc::clone(&self.inotify), Interest::READABLE) {
                    Ok(ready) => none.insert(ready),
                    Err(error) => return unable(&error).await,
                },
            };
            tokio::select! {
                biased;
                ready = ready.readable() => match ready {
                    // Cleared before reading, so that an event during the read makes the descriptor ready again.
                    Ok(mut ready) => {
                        ready.clear_ready();
                        self.drained = false;
                    }
                    Err(error) => return unable(&error).await,
                },
                is_supported = self.mounts.changed(), if self.watches_mounts => {
                    (self.watches_mounts, self.hints.routes) = (is_supported, true);
                }
            }
        }
    }

    /// Looks for new folders of logs and of locks, after other events in a home: whoever creates that of the logs soon causes
    /// some, so its creation is not watched, unless its files name sessions.
    fn look_for_missing(&mut self) {
        if std::mem::take(&mut self.home_touched) && self.missing.iter().any(|folder| folder.is_dir()) {
            self.hints.routes = true;
        }
    }

    /// Notes which folders are still missing. The files in one that is there by now are as good as just written: those that
    /// were before it was watched caused no event.
    fn still_missing(&mut self, missing: Vec<PathBuf>) {
        let former = std::mem::replace(&mut self.missing, missing);
        for folder in former.iter().filter(|folder| !self.missing.contains(folder)) {
            for file in fs::read_dir(folder).into_iter().flatten().flatten().take(AT_ONCE) {
                self.filter.add(&file.path(), false, &mut self.hints);
            }
        }
    }

    /// Stops events from waking the thread until `changed` is called again, which then reads them.
    pub(super) fn pause(&mut self) {
        self.ready = None;
        self.drained = false;
    }

    /// Whether the replacement of a home by another folder causes a hint.
    pub(super) const fn detects_replaced_homes(&self) -> bool {
        self.watches_mounts
    }

    pub(super) fn update_filter(&mut self, change: impl FnOnce(&mut Filter)) {
        change(&mut self.filter);
    }

    /// Renews all watches except those of sessions, and drops those that cannot be renewed.
    pub(super) fn renew(&mut self) {
        self.held.clear();
        for (folder, (watch, scope)) in std::mem::take(&mut self.folders) {
            self.leave(watch, |place| *place == Place::Folder(Arc::clone(&folder)));
            let _ = self.watch_for(&folder, scope); // a folder that is gone is no longer watched
        }
    }

    /// Removes the watches on all routes, except those on `kept` folders.
    pub(super) fn unwatch_routes(&mut self, kept: &BTreeSet<PathBuf>) {
        let is_on_route = |path: &&Arc<Path>| self.filter.points.contains(&***path) && !kept.contains(&***path);
        let left: Vec<_> = self.folders.keys().filter(|path| is_on_route(path)).cloned().collect();
        for path in left {
            self.unwatch(&path);
        }
    }

    /// Watches the routes to these roots, and removes watches on former routes, except those on `kept` folders. Returns
    /// the folders that could not be watched. If the routes keep changing, it hints that they must be looked at again.
    pub(super) fn watch_routes(
        &mut self,
        roots: &[(&WatchPlan, &Path)],
        awaited: &[PathBuf],
        kept: &BTreeSet<PathBuf>,
    ) -> Vec<(PathBuf, Refusal)> {
        let find = || Routes::to(roots.iter().copied()).and_to(awaited);
        let (mut routes, mut refused) = (find(), Vec::new());
        // Repeated until stable, to find what was created before its watch was added.
        for round in 0..8 {
            refused = self.follow(&routes, kept, round > 0);
            let now = find();
            // A folder may be gone for a moment, and back before the routes are compared.
            if now == routes && !refused.iter().any(|(_, refusal)| matches!(refusal, Refusal::Gone)) {
                self.filter.points = routes.points;
                self.still_missing(routes.missing);
                return refused;
            }
            routes = now;
        }
        self.hints.routes = true;
        refused
    }

    /// Watches these routes, and removes watches on former ones. `renew` replaces all watches: each is then on what is
    /// below the folders that are watched above it.
    fn follow(&mut self, routes: &Routes, kept: &BTreeSet<PathBuf>, renew: bool) -> Vec<(PathBuf, Refusal)> {
        self.filter.points.extend(routes.points.iter().cloned());
        // The unread events of a watch are lost with it.
        self.drained = self.read();
        let is_on_route = |path: &Path| self.filter.points.contains(path) && !kept.contains(path);
        let wanted = |path: &Path| routes.folders.get(path).copied();
        let watched: Vec<_> = self.folders.iter().filter(|(path, _)| is_on_route(path)).collect();
        // A watch becomes narrower only by another one. Folders below could be replaced between the two.
        let renew =
            renew || watched.iter().any(|(path, (_, scope))| wanted(path).is_some_and(|wanted| *scope > wanted));
        let left = watched.iter().filter(|(path, _)| renew || wanted(path).is_none());
        let left: Vec<_> = left.map(|(path, _)| Arc::clone(path)).collect();
        for path in left {
            self.unwatch(&path);
        }
        // The folder at the end of a route last, which a path through links may lead to.
        let (ends, ways): (Vec<_>, Vec<_>) = routes.folders.iter().partition(|(_, scope)| **scope == Scope::Changes);
        let watch = |(folder, scope): (&PathBuf, &Scope)| Some((folder.clone(), self.watch_for(folder, *scope).err()?));
        ways.into_iter().chain(ends).filter_map(watch).collect()
    }

    pub(super) fn watch(&mut self, path: &Path) -> Result<(), Refusal> {
        self.watch_for(path, Scope::Changes)
    }

    /// Watches which entries appear and disappear in a folder.
    pub(super) fn watch_entries(&mut self, path: &Path) -> Result<(), Refusal> {
        self.watch_for(path, Scope::Entries)
    }

    fn watch_for(&mut self, path: &Path, scope: Scope) -> Result<(), Refusal> {
        if self.folders.get(path).is_some_and(|(_, watched)| *watched >= scope) {
            return Ok(());
        }
        let flags = match scope {
            Scope::Itself => ITSELF,
            Scope::Replaced => REPLACED,
            Scope::Entries => ENTRIES,
            Scope::Changes => CHANGES,
        };
        let watch = self.add_watch(path, flags)?;
        let path: Arc<Path> = path.into();
        self.places.add(watch, Place::Folder(Arc::clone(&path)));
        self.folders.insert(path, (watch, scope));
        Ok(())
    }

    /// Adds a watch. A folder that is already watched under another name keeps one watch, for both names' flags.
    fn add_watch(&self, path: &Path, flags: WatchFlags) -> Result<i32, Refusal> {
        inotify::add_watch(&self.inotify, path, flags | WatchFlags::MASK_ADD).map_err(|error| match error {
            Errno::NOSPC => Refusal::Full,
            Errno::NOENT | Errno::NOTDIR => Refusal::Gone,
            error => Refusal::Other(error.to_string()),
        })
    }

    /// Removes places from a watch, and the watch with its last place.
    fn leave(&mut self, watch: i32, goes: impl Fn(&Place) -> bool) {
        if self.places.leave(watch, goes) {
            let _ = inotify::remove_watch(&self.inotify, watch); // the kernel has removed it if the folder is gone
        }
    }

    fn unwatch(&mut self, path: &Path) {
        if let Some((watch, _)) = self.folders.remove(path) {
            self.forget_sharers(watch);
            self.leave(watch, |place| matches!(place, Place::Folder(folder) if **folder == *path));
        }
    }

    /// Removes the watches at a path and below it.
    pub(super) fn forget(&mut self, path: &Path) {
        let row = self.folders.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        let below: Vec<_> =
            row.map(|(folder, _)| Arc::clone(folder)).take_while(|folder| folder.starts_with(path)).collect();
        for folder in below {
            self.unwatch(&folder);
        }
        for (home, id) in self.filter.sessions_below(path) {
            match id {
                // The watch of an old session is removed when its own event reports that the folder is gone.
                Some(id) => {
                    let key = Key::new(home, id);
                    if let Some((watch, _)) = self.held.remove(&key) {
                        self.leave(watch, |place| *place == Place::of(&key));
                    }
                }
                None => self.forget_sessions(home),
            }
        }
    }

    /// Reads events. Returns whether all were read.
    fn read(&mut self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let inotify = Arc::clone(&self.inotify);
        let mut events = Reader::new(&*inotify, &mut buffer);
        for _ in 0..AT_ONCE {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    self.handle(event.wd(), event.events(), name);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(error) => {
                    log::warn!("file events cannot be read; looking at everything: {}", cause(&error));
                    self.hints.all = true;
                    return true;
                }
            }
        }
        // Handle the rest of the buffer, which would be lost otherwise.
        while !events.is_buffer_empty() {
            if let Ok(event) = events.next() {
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                self.handle(event.wd(), event.events(), name);
            }
        }
        false
    }

    fn handle(&mut self, watch: i32, flags: ReadFlags, name: Option<&OsStr>) {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.hints.all = true;
            return;
        }
        if self.programs.contains(&watch) {
            return self.handle_program(watch, flags);
        }
        if flags.contains(ReadFlags::IGNORED) {
            let places = self.places.remove(watch);
            for place in places.iter().flat_map(Places::all) {
                match place {
                    // A folder recreated there meanwhile has a watch of its own.
                    Place::Folder(path) if self.folders.get(path).is_some_and(|(now, _)| *now == watch) => {
                        self.folders.remove(path);
                        self.forget_sharers(watch);
                    }
                    Place::Session(home, id) => {
                        let key = Place::key(*home, id);
                        self.release(&key, watch);
                    }
                    Place::Folder(_) => {}
                }
            }
            return;
        }
        let Some(places) = self.places.get(watch) else { return };
        let went = flags.intersects(WENT);
        for place in places.all() {
            self.home_touched |= matches!(place, Place::Folder(_));
            match (place, name) {
                (Place::Folder(path), Some(name)) => drop(self.filter.add(&path.join(name), went, &mut self.hints)),
                (Place::Folder(path), None) => drop(self.filter.add(path, went, &mut self.hints)),
                (Place::Session(home, id), name) => {
                    let key = Place::key(*home, id);
                    match name {
                        Some(name) => name.to_str().into_iter().for_each(|name| {
                            self.filter.add_session_file(&key, Some(name), &mut self.hints);
                        }),
                        None => self.filter.add_session_file(&key, None, &mut self.hints),
                    }
                }
            }
        }
        // The watch has moved with its folder.
        if name.is_none() && flags.intersects(ReadFlags::MOVE_SELF) {
            let sessions: Vec<_> = places
                .all()
                .iter()
                .filter_map(|place| match place {
                    Place::Session(home, id) => Some(Place::key(*home, id)),
                    Place::Folder(_) => None,
                })
                .collect();
            let folders: Vec<_> = places
                .all()
                .iter()
                .filter_map(|place| match place {
                    Place::Session(..) => None,
                    Place::Folder(path) => Some(Arc::clone(path)),
                })
                .collect();
            for key in sessions {
                self.release(&key, watch);
            }
            self.leave(watch, |place| matches!(place, Place::Session(..)));
            for folder in folders {
                self.forget_moved(&folder);
            }
        }
    }
}

/// Reports that the runtime cannot wait for events. Changes are then found by the slow rescan.
async fn unable(error: &io::Error) -> Hints {
    log::error!("file events cannot be waited for; looking once a minute instead: {}", cause(error));
    pending().await
}
