//! What Pilotlight's processes must know about each other: one page per session in the state folder, and the lock that
//! lets only one of them at a time act on that session.
//!
//! A page is a small file, named by a hash of home and id. It has sections, each with a name and a type of its own, and
//! is always replaced as a whole. Any process may read it; only the holder of the session's lock writes it. A page that
//! is broken, or of another version, counts as empty and is replaced by the next write: its contents only limit what we
//! do, and forgetting them once does no harm.
//!
//! The lock is the system's (`flock`), so it is released when its holder exits, for whatever reason; the contents of
//! the lock file have no effect. If the file cannot be opened and locked (a symlink, a FIFO, another user's file, a full
//! disk), nothing is done with the session, and the user is told which file is in the way: acting on it twice at once
//! would be worse.

#![allow(clippy::disallowed_methods, reason = "passes options to the one place")]

use pilotlight_agents::home::Home;
use pilotlight_core::hash::hash;
use pilotlight_core::time::Time;
#[cfg(unix)]
use pilotlight_system::identity::Identity;
use pilotlight_system::mounts::Mounts;
use pilotlight_system::note::{NOTE_MAX, Note};
use pilotlight_system::paths;
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::state_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;

/// The folder of the pages, in the state folder.
pub(crate) const FOLDER: &str = "sessions";
/// The version of a page's format. A page of another version counts as empty.
const VERSION: u32 = 1;
/// If there are more files than this, those that were not written for [`UNUSED_AFTER`] are removed.
#[cfg(unix)]
const FILES_MAX: usize = 512;
/// The age after which nobody needs a file any more: 30 days.
#[cfg(unix)]
const UNUSED_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);
/// How often to open a lock file again that was removed between being opened and being locked.
const LOCK_ATTEMPTS: usize = 5;

/// One section of a page.
pub(crate) trait Section: Serialize + DeserializeOwned {
    /// Its name on the page.
    const NAME: &'static str;
}

/// The pages of all sessions.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    folder: Option<PathBuf>,
}

/// The page of one session.
#[derive(Clone, Debug)]
pub struct Page {
    id: Box<str>,
    /// The page's path without its extension; `None` if nothing can be kept.
    stem: Option<PathBuf>,
    key: String,
}

/// The session's lock: the right to act on the session, as long as this value lives.
#[derive(Debug)]
pub(crate) struct LockGuard {
    page: Page,
    _file: File,
}

/// Why a session's lock cannot be taken.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process holds it. Contains its note, whose `doing` is the name of an action; `None` if there is none.
    Taken(Option<Note>),
    /// It cannot be taken: the lock file, unless no folder for it is known, and why.
    Unknown(Option<PathBuf>, io::Error),
}

/// A page as it is written to disk.
#[derive(Default, Serialize, Deserialize)]
struct Contents {
    version: u32,
    id: Box<str>,
    #[serde(flatten)]
    sections: Map<String, Value>,
}

impl Ledger {
    /// The pages in this state folder. Without one, nothing is kept, and no session can be locked.
    pub fn new(state_folder: Option<&Path>) -> Self {
        Self { folder: state_folder.map(|folder| folder.join(FOLDER)) }
    }

    pub fn page(&self, home: &Home, id: &str) -> Page {
        // A session has the same page under all names of its home.
        let canonical = Mounts::read().real(home.folder());
        let key = key(&canonical, id);
        let stem = self.folder.as_ref().map(|folder| folder.join(&key));
        Page { id: id.into(), stem, key }
    }

    /// Reads this section of every page that was written since `since`, by the wall clock. Returns the page's key, the
    /// session's id, and the section.
    pub(crate) fn written_since<S: Section>(&self, since: Time) -> Vec<(Box<str>, Box<str>, S)> {
        let Some(entries) = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok()) else {
            return Vec::new();
        };
        let is_new = |entry: &fs::DirEntry| {
            let written = entry.metadata().ok()?.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some(i128::try_from(written.as_millis()).ok()? >= i128::from(since.0))
        };
        let page = |entry: fs::DirEntry| {
            let path = entry.path();
            let key = path.file_name()?.to_str()?.strip_suffix(".json")?;
            is_new(&entry).filter(|new| *new)?;
            let mut contents: Contents = serde_json::from_str(&state_file::read(&path)).ok()?;
            let section = contents.sections.remove(S::NAME).filter(|_| contents.version == VERSION)?;
            Some((key.into(), contents.id, serde_json::from_value(section).ok()?))
        };
        entries.flatten().filter_map(page).collect()
    }
}

impl Page {
    /// Reads a section, if it exists and is understood.
    pub(crate) fn read<S: Section>(&self) -> Option<S> {
        serde_json::from_value(self.contents().sections.remove(S::NAME)?).ok()
    }

    /// The session's short name, made of home and id.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Takes the session's lock if it is free. `doing` is a note for other processes, such as "reconnect".
    ///
    /// # Errors
    /// If another process holds it, or it cannot be taken.
    pub(crate) fn try_lock(&self, doing: &str) -> Result<LockGuard, LockError> {
        let Some(stem) = &self.stem else {
            return Err(LockError::Unknown(None, io::Error::other("there is no state folder: set HOME")));
        };
        let path = stem.with_extension("lock");
        let mut file = lock_file(&path).map_err(|error| match error {
            TryLockError::WouldBlock => LockError::Taken(self.holder()),
            TryLockError::Error(error) => LockError::Unknown(Some(path), error),
        })?;
        // Only a note for other processes: failing to write it does no harm.
        let _ = file.set_len(0).and_then(|()| file.write_all(Note::of_this_process(doing).text().as_bytes()));
        Ok(LockGuard { page: self.clone(), _file: file })
    }

    /// Checks that recoveries of the session can be counted for all our processes. That takes no lock, so that it is in
    /// nobody's way.
    ///
    /// # Errors
    /// Why not, for the user.
    pub fn check_countable(&self) -> Result<(), String> {
        let Some(stem) = &self.stem else { return Err("there is no state folder".into()) };
        state_file::check_replaceable(&stem.with_extension("json")).map_err(|error| format!("{error:#}"))
    }

    /// Whether the session's lock can be taken, now or once its holder lets go. That takes no lock either.
    pub fn is_lockable(&self) -> bool {
        self.stem.as_ref().is_some_and(|stem| open_lock(&stem.with_extension("lock")).is_ok())
    }

    /// The note of the lock's holder.
    fn holder(&self) -> Option<Note> {
        let mut text = Vec::new();
        let file = open(&self.stem.as_ref()?.with_extension("lock"), false).ok()?;
        file.take(NOTE_MAX).read_to_end(&mut text).ok()?;
        Note::parse(&text)
    }

    fn contents(&self) -> Contents {
        let text = self.stem.as_ref().map(|stem| state_file::read(&stem.with_extension("json"))).unwrap_or_default();
        let contents: Contents = serde_json::from_str(&text).unwrap_or_default();
        if contents.version == VERSION && contents.id == self.id { contents } else { Contents::default() }
    }

    fn write(&self, change: impl FnOnce(&mut Map<String, Value>)) -> anyhow::Result<()> {
        let Some(stem) = &self.stem else { return Ok(()) };
        let mut contents = Contents { version: VERSION, id: self.id.clone(), ..self.contents() };
        change(&mut contents.sections);
        state_file::replace_without_sync(&stem.with_extension("json"), &serde_json::to_vec(&contents)?)?;
        if let Some(folder) = stem.parent() {
            sweep(folder);
        }
        Ok(())
    }
}

impl LockGuard {
    /// The locked session's page.
    pub(crate) const fn page(&self) -> &Page {
        &self.page
    }

    /// Writes a section, replacing its previous contents.
    ///
    /// # Errors
    /// If it cannot be saved. The previous contents may then remain.
    pub(crate) fn write<S: Section>(&self, section: &S) -> anyhow::Result<()> {
        let value = serde_json::to_value(section)?;
        self.page.write(|sections| drop(sections.insert(S::NAME.into(), value)))
    }

    /// Removes a section.
    ///
    /// # Errors
    /// If that cannot be saved.
    pub(crate) fn remove<S: Section>(&self) -> anyhow::Result<()> {
        if self.page.contents().sections.contains_key(S::NAME) {
            self.page.write(|sections| drop(sections.remove(S::NAME)))?;
        }
        Ok(())
    }
}

/// The short name of a session: the hash of its home and id, in hexadecimal digits.
fn key(home: &Path, id: &str) -> String {
    let bytes = home.as_os_str().as_encoded_bytes().iter().chain(&[0]).chain(id.as_bytes());
    format!("{:016x}", hash(bytes))
}

/// Opens the file at `path` without blocking and without following a symlink. Only a regular file is accepted.
fn open(path: &Path, make: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(make).create(make).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(plain_file::open_with(&mut options, path, Links::Refused)?.0)
}

/// Opens a lock file, and makes it and its folder if they are not there.
fn open_lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        paths::make_folder(folder)?;
    }
    open(path, true)
}

/// Opens and locks the lock file. The lock counts only if the file is still at its path: a sweep may have removed it in
/// the meantime.
fn lock_file(path: &Path) -> Result<File, TryLockError> {
    for _ in 0..LOCK_ATTEMPTS {
        let mut file = open_lock(path).map_err(TryLockError::Error)?;
        file.try_lock()?;
        if is_still_at(&file, path).map_err(TryLockError::Error)? {
            file.rewind().map_err(TryLockError::Error)?;
            return Ok(file);
        }
    }
    Err(TryLockError::WouldBlock)
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = Identity::of(&file.metadata()?);
    Ok(fs::symlink_metadata(path).is_ok_and(|there| Identity::of(&there) == ours))
}

#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true) // nothing is swept on this system
}

/// Removes files that nobody needs any more, if there are many. A lock file is removed only while we hold its lock.
#[cfg(unix)]
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let entries: Vec<_> = entries.flatten().collect();
    if entries.len() <= FILES_MAX {
        return;
    }
    let changed = |entry: &fs::DirEntry| entry.metadata().and_then(|meta| meta.modified()).ok();
    // The page that was just written has the current time.
    let Some(now) = entries.iter().filter_map(changed).max() else { return };
    let is_old = |entry: &fs::DirEntry| {
        changed(entry).is_some_and(|changed| now.duration_since(changed).is_ok_and(|age| age > UNUSED_AFTER))
    };
    for path in entries.iter().filter(|entry| is_old(entry)).map(fs::DirEntry::path) {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => drop(fs::remove_file(path)), // a file that remains does no harm
            Some("lock") => {
                let locked = open(&path, true).ok().filter(|file| file.try_lock().is_ok());
                if locked.is_some_and(|file| is_still_at(&file, &path).unwrap_or(false)) {
                    drop(fs::remove_file(path));
                }
            }
            _ => {}
        }
    }
}

#[cfg(not(unix))]
fn sweep(_: &Path) {}

#[cfg(test)]
#[cfg(unix)]
mod tests;
