//! File events on Linux: inotify, read on the thread that waits for them.
//!
//! The usual crate has a thread of its own for it, and asks to be told of every file that is opened: each event then wakes two
//! threads, each program that reads a session's folder wakes one for every file, and so does our own look at a home. Here
//! nothing is asked for but changes, nobody is woken by a reader, and a change wakes the one thread that follows it up.

use super::{Hints, Refusal, Sieve};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
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
/// What is put in place of a file.
const REPLACED: WatchFlags = WatchFlags::MOVED_TO.union(WatchFlags::ONLYDIR);
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
    /// In the order of the paths: a folder, then all that is below it.
    watches: BTreeMap<Arc<Path>, i32>,
    /// The names of what each watch is on: usually one, but a folder may have several.
    names: HashMap<i32, Vec<Arc<Path>>>,
    hints: Hints,
}

impl Source {
    pub(super) fn new(sieve: Sieve) -> io::Result<Self> {
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
        let (watches, names) = (BTreeMap::new(), HashMap::new());
        Ok(Self { sieve, inotify, ready: None, watches, names, hints: Hints::default() })
    }

    pub(super) async fn changed(&mut self) -> Hints {
        loop {
            let all_was_read = self.read();
            if self.hints.any() {
                return std::mem::take(&mut self.hints);
            }
            if !all_was_read {
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
            match ready.readable().await {
                // What comes from now on is told anew, and what came before is read at the top.
                Ok(mut ready) => ready.clear_ready(),
                Err(error) => return unable(&error).await,
            }
        }
    }

    pub(super) fn watches(&self, path: &Path) -> bool {
        self.watches.contains_key(path)
    }

    /// Changes what is worth a look.
    pub(super) fn sift(&mut self, change: impl FnOnce(&mut Sieve)) {
        change(&mut self.sieve);
    }

    pub(super) fn at_and_below(&self, path: &Path) -> Vec<PathBuf> {
        let row = self.watches.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        row.map(|(folder, _)| folder.to_path_buf()).take_while(|folder| folder.starts_with(path)).collect()
    }

    /// Asks for every watch anew. What cannot be watched any more is forgotten.
    pub(super) fn renew(&mut self) {
        let folders: Vec<_> = std::mem::take(&mut self.watches).into_keys().collect();
        let old: Vec<_> = std::mem::take(&mut self.names).into_keys().collect();
        for folder in folders {
            let _ = self.watch(&folder); // a folder that is gone says so by not being watched
        }
        for watch in old.into_iter().filter(|watch| !self.names.contains_key(watch)) {
            let _ = inotify::remove_watch(&self.inotify, watch);
        }
    }

    pub(super) fn watch(&mut self, path: &Path) -> Result<(), Refusal> {
        match inotify::add_watch(&self.inotify, path, CHANGES) {
            Ok(watch) => {
                let path: Arc<Path> = path.into();
                self.names.entry(watch).or_default().push(Arc::clone(&path));
                self.watches.insert(path, watch);
                Ok(())
            }
            Err(Errno::NOSPC) => Err(Refusal::Full),
            Err(error) => Err(Refusal::Other(error.to_string())),
        }
    }

    /// Watches only for what is put in place in a folder, unless that is watched for everything.
    pub(super) fn watch_replaced(&mut self, folder: &Path) {
        if self.watches.contains_key(folder) {
            return;
        }
        match inotify::add_watch(&self.inotify, folder, REPLACED) {
            Ok(watch) => {
                let names = self.names.entry(watch).or_default();
                if !names.iter().any(|name| **name == *folder) {
                    names.push(folder.into());
                }
            }
            Err(error) => tracing::debug!(path = %folder.display(), %error, "not watched"),
        }
    }

    pub(super) fn unwatch(&mut self, path: &Path) {
        let Some(watch) = self.watches.remove(path) else { return };
        let Some(names) = self.names.get_mut(&watch) else { return };
        names.retain(|name| **name != *path);
        if names.is_empty() {
            self.names.remove(&watch);
            let _ = inotify::remove_watch(&self.inotify, watch); // of a folder that is gone the system did it already
        }
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
        } else if what.contains(ReadFlags::IGNORED) {
            for path in self.names.remove(&watch).into_iter().flatten() {
                // What was made anew there meanwhile has a watch of its own.
                if self.watches.get(&path) == Some(&watch) {
                    self.watches.remove(&path);
                }
            }
        } else {
            for path in self.names.get(&watch).into_iter().flatten() {
                let went = what.intersects(WENT);
                match name {
                    Some(name) => self.sieve.take(&path.join(name), went, &mut self.hints),
                    None => self.sieve.take(path, went, &mut self.hints),
                };
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A home with one session, watched as the engine does it.
    fn watched() -> (tempfile::TempDir, PathBuf, Source) {
        let scratch = tempfile::tempdir().unwrap();
        let (root, seen) = (scratch.path().join("sessions"), scratch.path().join("state/seen.json"));
        let session = root.join("one");
        fs::create_dir_all(&session).unwrap();
        fs::create_dir(seen.parent().unwrap()).unwrap();
        fs::write(session.join("events.jsonl"), "{}\n").unwrap();
        let mut source =
            Source::new(Sieve { roots: vec![vec![root.clone()]], seen: Some(seen.clone()), config: Vec::new() })
                .unwrap();
        for path in [&*root, &session, seen.parent().unwrap()] {
            assert!(source.watch(path).is_ok() && source.watches(path));
        }
        (scratch, session, source)
    }

    fn hints(source: &mut Source) -> Hints {
        assert!(source.read());
        std::mem::take(&mut source.hints)
    }

    #[test]
    fn whoever_reads_tells_nothing() {
        let (scratch, session, mut source) = watched();
        for _ in 0..100 {
            assert_eq!(fs::read_dir(scratch.path().join("sessions")).unwrap().count(), 1);
            assert_eq!(fs::read_dir(&session).unwrap().count(), 1);
            assert_eq!(fs::read(session.join("events.jsonl")).unwrap(), b"{}\n");
        }
        let mut events = [MaybeUninit::uninit(); 512];
        let mut events = Reader::new(&*source.inotify, &mut events);
        assert_eq!(events.next().err(), Some(Errno::AGAIN), "not even an event to drop");
        assert!(!hints(&mut source).any());
    }

    #[test]
    fn what_is_written_made_and_removed_is_told() {
        let (scratch, session, mut source) = watched();
        let root = session.parent().unwrap().to_owned();
        let key = |id: &str| [(0, id.into())].into();
        let log = session.join("events.jsonl");
        io::Write::write_all(&mut fs::File::options().append(true).open(&log).unwrap(), b"{}\n").unwrap();
        let told = hints(&mut source);
        assert!(told.folders == key("one") && told.homes.is_empty() && !told.all, "{told:?}");
        for (name, is_told) in [("inuse.17.lock", true), ("workspace.yaml", true), ("inuse.17.hold", false)] {
            fs::write(session.join(name), "x").unwrap();
            assert_eq!(hints(&mut source).any(), is_told, "{name}");
        }
        fs::create_dir(root.join("two")).unwrap();
        let told = hints(&mut source);
        assert!(told.folders == key("two") && told.homes == [0].into() && told.gone.is_empty(), "{told:?}");
        fs::write(scratch.path().join("state/other"), "x").unwrap();
        assert!(!hints(&mut source).any());
        fs::rename(scratch.path().join("state/other"), scratch.path().join("state/seen.json")).unwrap();
        assert!(hints(&mut source).seen);
        fs::remove_dir_all(&session).unwrap();
        let told = hints(&mut source);
        assert!(told.gone.contains(&session) && told.homes == [0].into(), "{told:?}");
        assert!(!source.watches(&session), "its watch went with it");
        fs::create_dir(&session).unwrap();
        assert!(source.watch(&session).is_ok());
        hints(&mut source);
        fs::write(&log, "{}\n").unwrap();
        assert_eq!(hints(&mut source).folders, key("one"));
    }

    #[test]
    fn watches_asked_for_anew_are_on_what_stands_there_now() {
        let (scratch, session, mut source) = watched();
        fs::rename(&session, scratch.path().join("away")).unwrap();
        fs::create_dir(&session).unwrap();
        hints(&mut source); // as if they had been lost
        source.renew();
        assert_eq!((source.watches.len(), source.names.len()), (3, 3));
        fs::write(session.join("events.jsonl"), "{}\n").unwrap();
        assert!(hints(&mut source).any());
        fs::write(scratch.path().join("away/events.jsonl"), "{}\n").unwrap();
        assert!(!hints(&mut source).any());
        assert_eq!(source.at_and_below(session.parent().unwrap()).len(), 2);
    }

    #[test]
    fn a_folder_with_two_names_is_watched_by_both() {
        let (scratch, session, mut source) = watched();
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&session, &link).unwrap();
        assert!(source.watch(&link).is_ok());
        assert_eq!(source.names.len(), 3);
        source.unwatch(&link);
        fs::write(session.join("events.jsonl"), "{}\n").unwrap();
        assert!(hints(&mut source).any(), "the other name's watch is left");
        source.unwatch(&session);
        fs::write(session.join("events.jsonl"), "{}\n").unwrap();
        assert!(!hints(&mut source).any());
        assert!(!source.watches(&session) && source.watches.len() == 2);
    }
}
