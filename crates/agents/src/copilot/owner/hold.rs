//! Whether a process really has the session open whose lock names it.
//!
//! Anybody can make or copy a lock file. What nobody can make for another process is an open file: Copilot keeps
//! `inuse.<pid>.hold`, next to its lock, open and locked (flock) as long as it owns the session. Linux shows both: an
//! entry of `/proc/<pid>/fd` that is the same file by device and inode, and `lock:` in its `fdinfo`. Nothing is opened
//! or locked to check this, and Copilot is not disturbed.
//!
//! Older releases (1.0.86 and before) have no such file. They keep open their home's `session-store.db` and the lock of
//! its `logs`: this distinguishes the real home from a copy, and Copilot from a program that only has its name, but not
//! one session of the home from another.
//!
//! macOS and Windows show none of this without unsafe system calls; see docs/owners.md.

#[cfg(target_os = "linux")]
use std::fs;
use std::path::Path;

#[cfg(target_os = "linux")]
use pilotlight_system::file_system::{has_devices_of_its_own, without_file_events};
#[cfg(target_os = "linux")]
use pilotlight_system::identity::Identity;
#[cfg(target_os = "linux")]
use pilotlight_system::process::{lock_holder, open_files, sees_all};

/// What the system shows of a process and a session's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux shows it"))]
pub(super) enum Hold {
    /// It has this folder's own hold file open and locked.
    Locked,
    /// It would hold that file if it owned the session, and does not; or it is a Copilot of another home.
    Elsewhere,
    /// A Copilot of this home that makes no hold files.
    Home,
    /// It has none of the files open that every Copilot has.
    Nothing,
    /// The system does not show us its files: it is another user's.
    Hidden,
    /// The system shows nothing.
    Unknown,
}

/// What the system shows of the process and the session's `folder`.
#[cfg(not(target_os = "linux"))]
pub(super) const fn of(_pid: u32, _folder: &Path) -> Hold {
    Hold::Unknown
}

/// What the system shows of the process and the session's `folder`.
#[cfg(target_os = "linux")]
pub(super) fn of(pid: u32, folder: &Path) -> Hold {
    let open = match open_files(pid) {
        Ok(open) => open,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Hold::Hidden,
        Err(_) => return Hold::Unknown, // it has just ended, or we have run out of descriptors
    };
    let name = format!("inuse.{pid}.hold");
    let hold = folder.join(&name);
    let ours = fs::symlink_metadata(&hold).ok().filter(fs::Metadata::is_file).map(|meta| Identity::of(&meta));
    let home = folder.parent().and_then(Path::parent).and_then(identity_of);
    let (mut holds_other, mut of_home, mut of_another) = (false, false, false);
    for file in open {
        if file.path.file_name().is_some_and(|file| file == &*name) {
            if ours.is_some() && file.identity() == ours && file.is_locked() {
                let is_other = was_opened_elsewhere(&hold, &file.path, file.is_deleted);
                return if is_other { Hold::Elsewhere } else { Hold::Locked };
            }
            // Copilot removes the hold before the lock, so it held the session until just now.
            let was_ours = file.is_deleted && folder.canonicalize().is_ok_and(|folder| file.path == folder.join(&name));
            (holds_other, of_home) = (holds_other || !was_ours, of_home || was_ours);
        } else if let Some(file_home) = home_with_open_file(&file.path) {
            let is_ours = home.is_some() && identity_of(file_home) == home;
            (of_home, of_another) = (of_home || is_ours, of_another || !is_ours);
        }
    }
    if holds_other || ours.is_some() {
        Hold::Elsewhere
    } else if of_home {
        Hold::Home
    } else if of_another {
        Hold::Elsewhere
    } else {
        Hold::Nothing
    }
}

/// Whether anybody holds the session's own hold file of this process. A lock is listed for all to see.
#[cfg(target_os = "linux")]
pub(super) fn is_locked(pid: u32, folder: &Path) -> bool {
    matches!(holder(pid, folder), Some(Ok(Some(_))))
}

/// Whether certainly nobody holds the session's own hold file of this process, which is still there: whoever made it is gone.
/// From inside of a container, and on a file system that others write to, no lock is proof of that.
#[cfg(target_os = "linux")]
pub(super) fn is_left(pid: u32, folder: &Path) -> bool {
    matches!(holder(pid, folder), Some(Ok(None))) && sees_all() && without_file_events(folder).is_none()
}

/// Who holds the session's own hold file of this process. `None` if there is none.
#[cfg(target_os = "linux")]
fn holder(pid: u32, folder: &Path) -> Option<std::io::Result<Option<Option<u32>>>> {
    let hold = folder.join(format!("inuse.{pid}.hold"));
    let meta = fs::symlink_metadata(&hold).ok().filter(fs::Metadata::is_file)?;
    Some(lock_holder(Identity::of(&meta), has_devices_of_its_own(&hold)))
}

/// Whether certainly nobody holds that file: the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(super) const fn is_left(_pid: u32, _folder: &Path) -> bool {
    false
}

/// Whether anybody holds the session's own hold file of this process: the system does not tell.
#[cfg(not(target_os = "linux"))]
pub(super) const fn is_locked(_pid: u32, _folder: &Path) -> bool {
    false
}

/// The home that an open file belongs to, if it is one that every Copilot keeps open.
#[cfg(target_os = "linux")]
pub(in crate::copilot) fn home_with_open_file(path: &Path) -> Option<&Path> {
    use std::os::unix::ffi::OsStrExt;
    let (file, folder) = (path.file_name()?, path.parent()?);
    match file.as_bytes() {
        b"session-store.db" => Some(folder),
        b".copilot-log.lock" => folder.parent(),
        _ => None,
    }
}

/// Whether the file at `hold` was provably opened by another name, `opened`: one in another folder that exists here, or
/// one that is gone. A hard link makes such a name. By which path its folder is reached (a symlink, a mount) does not
/// matter.
#[cfg(target_os = "linux")]
fn was_opened_elsewhere(hold: &Path, opened: &Path, is_deleted: bool) -> bool {
    let [ours, theirs] = [hold, opened].map(|path| path.parent().and_then(identity_of));
    // The other name may not exist here, as that of a container: then the identity of the file has to do.
    let is_visible = || identity_of(opened).is_some_and(|there| Some(there) == identity_of(hold));
    is_deleted || is_visible() && ours.is_some() && theirs.is_some() && ours != theirs
}

#[cfg(target_os = "linux")]
fn identity_of(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|meta| Identity::of(&meta))
}
