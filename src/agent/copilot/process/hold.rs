//! Whether a process really has the session open whose lock names it.
//!
//! A lock is a file that anybody can make or copy. What nobody can make for another process is an open file: Copilot keeps
//! `inuse.<pid>.hold` beside its lock open for as long as it owns the session, and locked (flock). On Linux the system shows both:
//! an entry of `/proc/<pid>/fd` that is the same file by device and inode, and `lock:` in its `fdinfo`. Nothing is opened or
//! locked for this, and Copilot is not disturbed.
//!
//! Older releases (1.0.86 and before) write no such file. What they keep open all the time is their home's `session-store.db`, and
//! the lock of its `logs`: that tells a copied home and a program that merely has Copilot's name from the real one, but not
//! one session of that home from another.
//!
//! macOS and Windows tell nothing of this without code that calls the system by itself; docs/owners.md says what there is.

use std::path::Path;

/// What the system shows of a process and a session's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux tells"))]
pub(super) enum Hold {
    /// It has this folder's own file open, and locked.
    Held,
    /// It would hold that file if it owned the session, and does not; or it is a Copilot of another home.
    Elsewhere,
    /// A Copilot of this home that makes no such files.
    Home,
    /// It has nothing open that every Copilot has.
    Nothing,
    /// The system does not show it to us: another user's.
    Hidden,
    /// The system does not tell.
    Untold,
}

#[cfg(not(target_os = "linux"))]
pub(super) const fn of(_pid: u32, _folder: &Path) -> Hold {
    Hold::Untold
}

#[cfg(target_os = "linux")]
pub(super) fn of(pid: u32, folder: &Path) -> Hold {
    use std::fs;
    let open = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(open) => open,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Hold::Hidden,
        Err(_) => return Hold::Untold, // it has just ended, or we have no descriptor left
    };
    let name = format!("inuse.{pid}.hold");
    let hold = folder.join(&name);
    let ours = fs::symlink_metadata(&hold).ok().filter(fs::Metadata::is_file).map(|meta| linux::identity(&meta));
    let home = folder.parent().and_then(Path::parent).and_then(|home| fs::metadata(home).ok());
    let home = home.map(|home| linux::identity(&home));
    let (mut holds_others, mut of_home, mut of_another) = (false, false, false);
    for entry in open.flatten() {
        let Ok(link) = fs::read_link(entry.path()) else { continue };
        let (link, deleted) = linux::without_deleted(&link);
        if link.file_name().is_some_and(|file| file == &*name) {
            let same = || fs::metadata(entry.path()).ok().map(|meta| linux::identity(&meta)) == ours;
            if ours.is_some() && same() && linux::is_locked(pid, &entry.file_name()) {
                match linux::is_another_name(&hold, &link, deleted) {
                    false => return Hold::Held,
                    true => return Hold::Elsewhere,
                }
            }
            // A moment ago it was: the hold is removed before the lock is.
            let lets_go = deleted && folder.canonicalize().is_ok_and(|folder| link == folder.join(&name));
            (holds_others, of_home) = (holds_others || !lets_go, of_home || lets_go);
        } else if let Some(kept) = linux::home_of(&link) {
            let is_ours = home.is_some() && fs::metadata(kept).ok().map(|meta| linux::identity(&meta)) == home;
            (of_home, of_another) = (of_home || is_ours, of_another || !is_ours);
        }
    }
    if holds_others || ours.is_some() {
        Hold::Elsewhere
    } else if of_home {
        Hold::Home
    } else if of_another {
        Hold::Elsewhere
    } else {
        Hold::Nothing
    }
}

#[cfg(target_os = "linux")]
pub(super) mod linux {
    use std::ffi::OsStr;
    use std::fs::{self, Metadata};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    pub(super) fn identity(meta: &Metadata) -> (u64, u64) {
        (meta.dev(), meta.ino())
    }

    /// Whether an entry of the process's `fd` is locked, by its `fdinfo`: a line
    /// `lock: 1: FLOCK  ADVISORY  WRITE 12110 fe:00:10011470 0 EOF`.
    pub(super) fn is_locked(pid: u32, entry: &OsStr) -> bool {
        let info = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(entry);
        fs::read(info).is_ok_and(|info| info.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"lock:")))
    }

    /// Whether the file at `hold` was provably opened by another name than that, `opened`: by one in another folder here, or by one
    /// that is gone. A hard link makes such a name. By which path a folder is seen (a link, a mount) does not matter.
    pub(super) fn is_another_name(hold: &Path, opened: &Path, deleted: bool) -> bool {
        let identity_of = |path: &Path| fs::metadata(path).ok().map(|meta| identity(&meta));
        let [ours, theirs] = [hold, opened].map(|path| path.parent().and_then(identity_of));
        // What it was opened by may not be seen from here, as a container's: then the file alone tells.
        let is_seen = || identity_of(opened).is_some_and(|there| Some(there) == identity_of(hold));
        deleted || is_seen() && ours.is_some() && theirs.is_some() && ours != theirs
    }

    /// The home whose file this is, if it is one that a Copilot keeps open all the time.
    pub(in super::super) fn home_of(link: &Path) -> Option<&Path> {
        let (file, folder) = (link.file_name()?, link.parent()?);
        match file.as_bytes() {
            b"session-store.db" => Some(folder),
            b".copilot-log.lock" => folder.parent(),
            _ => None,
        }
    }

    /// The path that a link of `fd` shows, and whether the file is gone from there.
    pub(in super::super) fn without_deleted(link: &Path) -> (PathBuf, bool) {
        const DELETED: &[u8] = b" (deleted)";
        match link.as_os_str().as_bytes().strip_suffix(DELETED) {
            Some(path) => (PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())), true),
            None => (link.to_owned(), false),
        }
    }
}
