//! What Pilotlight's processes must know of each other's doings: one page a session in the state folder, and the lock that lets
//! one of them at a time act on that session.
//!
//! A page is a small file, named by a hash of home and id. It holds sections, each with a name and a type of its own, and is
//! replaced whole. Anybody may read it; only who holds the session's lock writes it. A page that is broken, or of another
//! version, counts as empty and is replaced by the next write: what it says bounds what we do, and forgetting it once is no harm.
//!
//! The lock is the system's (`flock`), so it goes with its holder, however that ends, and what stands in the lock file decides
//! nothing. Where the file cannot be opened (a link, a FIFO, another user's, a full disk), the session may neither be refused
//! for ever nor be acted on twice at once: so the session's own folder is locked as well, which writes nothing there, and either
//! lock is enough. Systems that lock no folders (Windows) have the file alone.

use crate::agent::copilot::store::SESSIONS;
use crate::core::text::plain;
use crate::core::time::Time;
use crate::system::paths;
use crate::system::state_file;
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
/// The form of a page. Another one counts as empty.
const VERSION: u32 = 1;
/// With more files than this, those that nobody wrote to for [`FORGOTTEN`] are removed.
#[cfg(unix)]
const FILES_MAX: usize = 512;
/// So old is what nobody asks for any more: 30 days.
#[cfg(unix)]
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 3600);
/// A note in a lock file is at most so long, in bytes.
const NOTE_MAX: u64 = 100;
/// A lock file may be removed between its opening and its locking; so often it is opened anew.
const TRIES: usize = 5;

/// One subject of a page.
pub(crate) trait Section: Serialize + DeserializeOwned {
    /// Its name on the page.
    const NAME: &'static str;
}

/// The pages of all sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    folder: Option<PathBuf>,
}

/// The page of one session.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    id: Box<str>,
    /// The session's own folder.
    session: PathBuf,
    /// The page's path, without its ending; `None` where nothing can be kept.
    stem: Option<PathBuf>,
    key: String,
}

/// The right to act on a session, as long as this is held.
#[derive(Debug)]
pub(crate) struct Hold {
    page: Page,
    _file: Option<File>,
    _folder: Option<File>,
}

/// Why a session cannot be acted on now.
#[derive(Debug)]
pub(crate) enum Locked {
    /// Another process acts on it: what that says of itself, "reconnect by process 4711"; empty where it says nothing.
    ByAnother(String),
    /// It cannot be known: which lock could not be had, and why.
    Unknown(PathBuf, io::Error),
}

/// A page as it is written.
#[derive(Default, Serialize, Deserialize)]
struct Contents {
    version: u32,
    id: Box<str>,
    #[serde(flatten)]
    sections: Map<String, Value>,
}

impl Ledger {
    /// The pages in this state folder; without one, nothing is kept, and only a session's own folder is locked.
    pub(crate) fn new(state_folder: Option<&Path>) -> Self {
        Self { folder: state_folder.map(|folder| folder.join(FOLDER)) }
    }

    /// The page of a session. `home` is the Copilot home that has it.
    pub(crate) fn page(&self, home: &Path, id: &str) -> Page {
        // One home has one page, by whichever of its names it is watched.
        let canonical = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let key = key(&canonical, id);
        let stem = self.folder.as_ref().map(|folder| folder.join(&key));
        let session = home.join(SESSIONS).join(id);
        Page { id: id.into(), session, stem, key }
    }

    /// This section of every page that has it and was written since `since`, by the wall clock: the page's key, the session's id,
    /// and what it says.
    pub(crate) fn lately<S: Section>(&self, since: Time) -> Vec<(Box<str>, Box<str>, S)> {
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
    /// A section of it, if it is there and is understood.
    pub(crate) fn read<S: Section>(&self) -> Option<S> {
        serde_json::from_value(self.contents().sections.remove(S::NAME)?).ok()
    }

    /// What names the session, by home and id, wherever a short name is needed.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Takes the session's lock, if nobody has it. `doing` is what others are told meanwhile: "reconnect".
    ///
    /// # Errors
    /// Where another process has it, and where neither lock can be had.
    pub(crate) fn try_lock(&self, doing: &str) -> Result<Hold, Locked> {
        let had = |lock: Result<File, TryLockError>| match lock {
            Ok(lock) => Ok(Ok(lock)),
            Err(TryLockError::WouldBlock) => Err(Locked::ByAnother(self.holder())),
            Err(TryLockError::Error(error)) => Ok(Err(error)),
        };
        let path = self.stem.as_ref().map(|stem| stem.with_extension("lock"));
        let folder = had(lock_folder(&self.session))?;
        let unkept = || Err(TryLockError::Error(io::ErrorKind::Unsupported.into()));
        let file = had(path.as_deref().map_or_else(unkept, lock_file))?;
        if let Ok(mut file) = file.as_ref() {
            // Words for others: what cannot be written is not said.
            let _ = file.set_len(0).and_then(|()| write!(file, "{doing} by process {}", std::process::id()));
        }
        match (file, folder) {
            (Err(error), Err(_)) => Err(Locked::Unknown(path.unwrap_or_else(|| self.session.clone()), error)),
            (file, folder) => Ok(Hold { page: self.clone(), _file: file.ok(), _folder: folder.ok() }),
        }
    }

    /// What the holder of the lock says of itself.
    fn holder(&self) -> String {
        let mut note = String::new();
        if let Some(stem) = &self.stem
            && let Ok(file) = open(&stem.with_extension("lock"), false)
        {
            let _ = file.take(NOTE_MAX).read_to_string(&mut note); // what is no text says nothing
        }
        plain(&note, NOTE_MAX as usize).into()
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
        state_file::replace_at_once(&stem.with_extension("json"), &serde_json::to_vec(&contents)?)?;
        if let Some(folder) = stem.parent() {
            sweep(folder);
        }
        Ok(())
    }
}

impl Hold {
    /// The page that it is for.
    pub(crate) const fn page(&self) -> &Page {
        &self.page
    }

    /// Writes a section, in place of what it said before.
    ///
    /// # Errors
    /// Where it cannot be kept; what was kept before may be still there then.
    pub(crate) fn write<S: Section>(&self, section: &S) -> anyhow::Result<()> {
        let value = serde_json::to_value(section)?;
        self.page.write(|sections| drop(sections.insert(S::NAME.into(), value)))
    }

    /// Removes a section.
    ///
    /// # Errors
    /// Where that cannot be kept.
    pub(crate) fn remove<S: Section>(&self) -> anyhow::Result<()> {
        if self.page.contents().sections.contains_key(S::NAME) {
            self.page.write(|sections| drop(sections.remove(S::NAME)))?;
        }
        Ok(())
    }
}

/// The short name of a session: FNV-1a over home and id, 64 bits in hexadecimal digits.
fn key(home: &Path, id: &str) -> String {
    let bytes = home.as_os_str().as_encoded_bytes().iter().chain(&[0]).chain(id.as_bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

/// The file at `path`, opened without waiting for anybody and without following a link; only a plain file of that name counts.
fn open(path: &Path, make: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(make).create(make).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}

/// Opens the lock file, and locks it. The lock counts only if its file still stands there: a sweep may have removed it meanwhile.
fn lock_file(path: &Path) -> Result<File, TryLockError> {
    if let Some(folder) = path.parent() {
        paths::make_folder(folder).map_err(TryLockError::Error)?;
    }
    for _ in 0..TRIES {
        let mut file = open(path, true).map_err(TryLockError::Error)?;
        file.try_lock()?;
        if stands(&file, path).map_err(TryLockError::Error)? {
            file.rewind().map_err(TryLockError::Error)?;
            return Ok(file);
        }
    }
    Err(TryLockError::WouldBlock)
}

#[cfg(unix)]
fn stands(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    Ok(fs::symlink_metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

#[cfg(not(unix))]
fn stands(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true) // nothing is swept here
}

/// Locks a folder as it is.
#[cfg(unix)]
fn lock_folder(folder: &Path) -> Result<File, TryLockError> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let folder = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(folder)
        .map_err(TryLockError::Error)?;
    folder.try_lock()?;
    Ok(folder)
}

#[cfg(not(unix))]
fn lock_folder(_: &Path) -> Result<File, TryLockError> {
    Err(TryLockError::Error(io::ErrorKind::Unsupported.into()))
}

/// Removes what nobody asks for any more, where there is much of it. A lock file goes only while it is locked by us.
#[cfg(unix)]
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let entries: Vec<_> = entries.flatten().collect();
    if entries.len() <= FILES_MAX {
        return;
    }
    let changed = |entry: &fs::DirEntry| entry.metadata().and_then(|meta| meta.modified()).ok();
    // The page that was just written tells the time.
    let Some(now) = entries.iter().filter_map(changed).max() else { return };
    let is_old = |entry: &fs::DirEntry| {
        changed(entry).is_some_and(|changed| now.duration_since(changed).is_ok_and(|age| age > FORGOTTEN))
    };
    for path in entries.iter().filter(|entry| is_old(entry)).map(fs::DirEntry::path) {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => drop(fs::remove_file(path)), // what stays does no harm
            Some("lock") => {
                let locked = open(&path, true).ok().filter(|file| file.try_lock().is_ok());
                if locked.is_some_and(|file| stands(&file, &path).unwrap_or(false)) {
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
