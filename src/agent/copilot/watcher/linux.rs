//! File events on Linux: inotify, read on the thread that waits for them.
//!
//! The usual crate has a thread of its own for it, and asks to be told of every file that is opened: each event then wakes two
//! threads, each program that reads a session's folder wakes one for every file, and so does our own look at a home. Here
//! nothing is asked for but changes, nobody is woken by a reader, and a change wakes the one thread that follows it up.

mod place;
#[cfg(test)]
mod tests;

use super::mounts::{self, Mounts};
use super::way::{Ways, What};
use super::{Hints, Key, Refusal, Sieve};
use place::{Place, Places, Watches};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::future::pending;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::unix::AsyncFd;

/// What changes a file, a folder, or what stands in it. A file that is written tells so with each write: that it was closed
/// adds nothing.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
/// That a folder was moved or removed.
const ITSELF: WatchFlags = WatchFlags::DELETE_SELF.union(WatchFlags::MOVE_SELF).union(WatchFlags::ONLYDIR);
/// The same, and what is put in place of a file in it.
const REPLACED: WatchFlags = ITSELF.union(WatchFlags::MOVED_TO);
/// The same, and what comes and goes in it.
const ENTRIES: WatchFlags = ITSELF.union(WatchFlags::CREATE).union(WatchFlags::DELETE).union(WatchFlags::MOVE);
/// What stood there does not any more, or what stands there now is another.
const WENT: ReadFlags = ReadFlags::DELETE
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO)
    .union(ReadFlags::DELETE_SELF)
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::UNMOUNT);
/// So many events are read before what they hint at is looked at: a storm of them must not keep the loop from anything else.
const AT_ONCE: usize = 4096;

/// Where the events come from.
pub(super) struct Source {
    sieve: Sieve,
    inotify: Arc<OwnedFd>,
    /// The same, known to the runtime that waits for it: made when it is first waited for.
    ready: Option<AsyncFd<Arc<OwnedFd>>>,
    /// All was read: there is nothing more before the system says so.
    drained: bool,
    mounts: Mounts,
    tells_of_mounts: bool,
    /// What each watch is on.
    places: Watches,
    /// The folders that are watched, but for those of sessions; in the order of their paths.
    folders: BTreeMap<Arc<Path>, (i32, What)>,
    /// The folders of logs that are not there yet.
    missing: Vec<PathBuf>,
    /// Something happened in a folder that is not a session's.
    stirred: bool,
    /// The sessions that are held. Those that are not are only known by their watch.
    held: HashMap<Key, i32>,
    hints: Hints,
}

impl Source {
    pub(super) fn new(sieve: Sieve) -> io::Result<Self> {
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
        Ok(Self {
            sieve,
            inotify,
            ready: None,
            drained: false,
            mounts: Mounts::default(),
            tells_of_mounts: mounts::are_told(),
            places: Watches::default(),
            folders: BTreeMap::new(),
            missing: Vec::new(),
            stirred: false,
            held: HashMap::new(),
            hints: Hints::default(),
        })
    }

    pub(super) async fn changed(&mut self) -> Hints {
        let mut at_once = true;
        loop {
            if !self.drained {
                self.drained = self.read();
                self.look_for_logs();
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
                none => match wait_on(Arc::clone(&self.inotify)) {
                    Ok(ready) => none.insert(ready),
                    Err(error) => return unable(&error).await,
                },
            };
            tokio::select! {
                biased;
                ready = ready.readable() => match ready {
                    // What comes from now on is told anew, and what came before is read at the top.
                    Ok(mut ready) => {
                        ready.clear_ready();
                        self.drained = false;
                    }
                    Err(error) => return unable(&error).await,
                },
                told = self.mounts.changed(), if self.tells_of_mounts => {
                    (self.tells_of_mounts, self.hints.ways) = (told, true);
                }
            }
        }
    }

    /// A folder of logs is made by a process that does more in its home soon: nobody is woken for it alone.
    fn look_for_logs(&mut self) {
        if std::mem::take(&mut self.stirred) && self.missing.iter().any(|logs| logs.is_dir()) {
            self.hints.ways = true;
        }
    }

    /// Nobody waits for a while: what happens meanwhile wakes nobody, and is read when it is waited for again.
    pub(super) fn rest(&mut self) {
        self.ready = None;
        self.drained = false;
    }

    /// Whether it is told when another folder stands in the place of a home.
    pub(super) const fn tells_of_homes(&self) -> bool {
        self.tells_of_mounts
    }

    /// Changes what is worth a look.
    pub(super) fn sift(&mut self, change: impl FnOnce(&mut Sieve)) {
        change(&mut self.sieve);
    }

    /// Asks for all watches anew but those of sessions. What cannot be watched any more is forgotten.
    pub(super) fn renew(&mut self) {
        self.held.clear();
        for (folder, (watch, what)) in std::mem::take(&mut self.folders) {
            self.leave(watch, |place| *place == Place::Folder(Arc::clone(&folder)));
            let _ = self.watch_for(&folder, what); // a folder that is gone says so by not being watched
        }
    }

    /// Watches no way any more.
    pub(super) fn leave_ways(&mut self, kept: &BTreeSet<PathBuf>) {
        let on_way = |path: &&Arc<Path>| self.sieve.points.contains(&***path) && !kept.contains(&***path);
        let left: Vec<_> = self.folders.keys().filter(|path| on_way(path)).cloned().collect();
        for path in left {
            self.unwatch(&path);
        }
    }

    /// Watches what leads to these folders, and nothing else but those and what is in them. What could not be watched.
    pub(super) fn watch_ways(&mut self, roots: &[&Path], kept: &BTreeSet<PathBuf>) -> Option<(PathBuf, Refusal)> {
        let mut refused = None;
        let mut ways = Ways::to(roots.iter().copied());
        // What is made while it is not watched yet is found by looking again.
        for _ in 0..8 {
            refused = None;
            for (folder, what) in &ways.folders {
                if let Err(refusal) = self.watch_for(folder, *what) {
                    refused = Some((folder.clone(), refusal));
                }
            }
            let now = Ways::to(roots.iter().copied());
            if now == ways {
                break;
            }
            ways = now;
        }
        let is_on_way = |path: &Path| self.sieve.points.contains(path) || ways.points.contains(path);
        let watched = self.folders.iter().filter(|(path, _)| is_on_way(path) && !kept.contains(&***path));
        let unwanted: Vec<_> = watched
            .filter(|(path, (_, what))| ways.folders.get(&***path) != Some(what))
            .map(|(path, _)| (Arc::clone(path), ways.folders.get(&**path).copied()))
            .collect();
        for (path, what) in unwanted {
            self.unwatch(&path);
            if let Some(what) = what
                && let Err(refusal) = self.watch_for(&path, what)
            {
                refused = Some((path.to_path_buf(), refusal));
            }
        }
        (self.sieve.points, self.missing) = (ways.points, ways.missing);
        refused
    }

    pub(super) fn watch(&mut self, path: &Path) -> Result<(), Refusal> {
        self.watch_for(path, What::Changes)
    }

    fn watch_for(&mut self, path: &Path, what: What) -> Result<(), Refusal> {
        if self.folders.get(path).is_some_and(|(_, watched)| *watched >= what) {
            return Ok(());
        }
        let flags = match what {
            What::Itself => ITSELF,
            What::Replaced => REPLACED,
            What::Entries => ENTRIES,
            What::Changes => CHANGES,
        };
        let watch = self.ask_for(path, flags)?;
        let path: Arc<Path> = path.into();
        self.places.add(watch, Place::Folder(Arc::clone(&path)));
        self.folders.insert(path, (watch, what));
        Ok(())
    }

    /// Whether it was not watched.
    pub(super) fn watch_session(&mut self, key: &Key, path: &Path) -> Result<bool, Refusal> {
        if self.held.contains_key(key) {
            return Ok(false);
        }
        let watch = self.ask_for(path, CHANGES)?;
        self.places.add(watch, Place::of(key));
        self.held.insert(key.clone(), watch);
        Ok(true)
    }

    pub(super) fn watch_old_session(&mut self, key: &Key, path: &Path) -> Result<(), Refusal> {
        let watch = self.ask_for(path, CHANGES)?;
        self.places.add_old(watch, key);
        Ok(())
    }

    pub(super) fn is_old(&mut self, key: &Key) {
        if let Some(watch) = self.held.remove(key) {
            self.places.leave(watch, |place| *place == Place::of(key));
            self.places.add_old(watch, key);
        }
    }

    /// Asks the system; a folder that is watched by another name already is watched for both.
    fn ask_for(&self, path: &Path, flags: WatchFlags) -> Result<i32, Refusal> {
        inotify::add_watch(&self.inotify, path, flags | WatchFlags::MASK_ADD).map_err(|error| match error {
            Errno::NOSPC => Refusal::Full,
            error => Refusal::Other(error.to_string()),
        })
    }

    /// Takes places from a watch, which ends with its last.
    fn leave(&mut self, watch: i32, goes: impl Fn(&Place) -> bool) {
        if self.places.leave(watch, goes) {
            let _ = inotify::remove_watch(&self.inotify, watch); // of a folder that is gone the system did it already
        }
    }

    fn unwatch(&mut self, path: &Path) {
        if let Some((watch, _)) = self.folders.remove(path) {
            self.leave(watch, |place| matches!(place, Place::Folder(folder) if **folder == *path));
        }
    }

    /// Forgets what is at a path and below it.
    pub(super) fn forget(&mut self, path: &Path) {
        let row = self.folders.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        let below: Vec<_> =
            row.map(|(folder, _)| Arc::clone(folder)).take_while(|folder| folder.starts_with(path)).collect();
        for folder in below {
            self.unwatch(&folder);
        }
        for (home, id) in self.sieve.sessions_below(path) {
            match id {
                // Where it is not held, its watch says by itself that its folder went, and is left then.
                Some(id) => {
                    if let Some(watch) = self.held.remove(&(home, Arc::clone(&id))) {
                        self.leave(watch, |place| *place == Place::of(&(home, Arc::clone(&id))));
                    }
                }
                None => self.forget_sessions(home),
            }
        }
    }

    fn forget_sessions(&mut self, home: usize) {
        self.held.retain(|key, _| key.0 != home);
        let goes = |place: &Place| matches!(place, Place::Session(of, _) if *of as usize == home);
        // The last first: what follows a place in the row need not be moved then.
        for watch in self.places.of_home(home).into_iter().rev() {
            self.leave(watch, goes);
        }
        self.places.shrink();
    }

    /// Takes in what happened. Whether that was all of it.
    fn read(&mut self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let inotify = Arc::clone(&self.inotify);
        let mut events = Reader::new(&*inotify, &mut buffer);
        for _ in 0..AT_ONCE {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    self.take(event.wd(), event.events(), name);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(error) => {
                    tracing::warn!(%error, "file events cannot be read; looking at everything");
                    self.hints.all = true;
                    return true;
                }
            }
        }
        // What was fetched is taken in: it would not be told again.
        while !events.is_buffer_empty() {
            if let Ok(event) = events.next() {
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                self.take(event.wd(), event.events(), name);
            }
        }
        false
    }

    fn take(&mut self, watch: i32, what: ReadFlags, name: Option<&OsStr>) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.hints.all = true;
            return;
        }
        if what.contains(ReadFlags::IGNORED) {
            let places = self.places.remove(watch);
            for place in places.iter().flat_map(Places::all) {
                match place {
                    // What was made anew there meanwhile has a watch of its own.
                    Place::Folder(path) if self.folders.get(path).is_some_and(|(now, _)| *now == watch) => {
                        self.folders.remove(path);
                    }
                    Place::Session(home, id) => {
                        let key = (*home as usize, Arc::clone(id));
                        if self.held.get(&key) == Some(&watch) {
                            self.held.remove(&key);
                        }
                    }
                    Place::Folder(_) => {}
                }
            }
            return;
        }
        let Some(places) = self.places.get(watch) else { return };
        let went = what.intersects(WENT);
        for place in places.all() {
            self.stirred |= matches!(place, Place::Folder(_));
            match (place, name) {
                (Place::Folder(path), Some(name)) => drop(self.sieve.take(&path.join(name), went, &mut self.hints)),
                (Place::Folder(path), None) => drop(self.sieve.take(path, went, &mut self.hints)),
                (Place::Session(home, id), name) => {
                    let key = (*home as usize, Arc::clone(id));
                    match name {
                        Some(name) => name.to_str().into_iter().for_each(|name| {
                            self.sieve.take_file(&key, Some(name), &mut self.hints);
                        }),
                        None => self.sieve.take_file(&key, None, &mut self.hints),
                    }
                }
            }
        }
        // It follows its folder wherever that went.
        if name.is_none() && what.intersects(ReadFlags::MOVE_SELF) {
            let sessions: Vec<_> = places
                .all()
                .iter()
                .filter_map(|place| match place {
                    Place::Session(home, id) => Some((*home as usize, Arc::clone(id))),
                    Place::Folder(_) => None,
                })
                .collect();
            for key in sessions {
                if self.held.get(&key) == Some(&watch) {
                    self.held.remove(&key);
                }
            }
            self.leave(watch, |place| matches!(place, Place::Session(..)));
        }
    }
}

#[expect(deprecated, reason = "what replaces it is unsafe, for types whose descriptor may change: this one cannot")]
fn wait_on(inotify: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::new(inotify)
}

/// Where the runtime refuses to wait. The slow rescan finds out what happens.
async fn unable(error: &io::Error) -> Hints {
    tracing::error!(%error, "file events cannot be waited for; looking once a minute instead");
    pending().await
}
