//! The files that a process has open, by the links in `/proc/<pid>/fd`. Nothing is opened to list them.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::identity::Identity;

/// What the kernel appends to the path of a file that was removed.
const DELETED: &[u8] = b" (deleted)";

/// A file, socket or pipe that a process has open.
pub struct OpenFile {
    pid: u32,
    descriptor: OsString,
    /// The path by which it was opened, kept current when the file is moved; `socket:[<inode>]` for a socket.
    pub path: PathBuf,
    /// Whether the file was removed from that path.
    pub is_deleted: bool,
}

/// The files that `pid` has open. Those that it closes during the listing are left out.
///
/// # Errors
/// `PermissionDenied` if the process is another user's, `NotFound` if it has ended.
pub fn open_files(pid: u32) -> io::Result<impl Iterator<Item = OpenFile>> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    Ok(entries.flatten().filter_map(move |entry| {
        let (path, is_deleted) = without_deleted(fs::read_link(entry.path()).ok()?);
        Some(OpenFile { pid, descriptor: entry.file_name(), path, is_deleted })
    }))
}

/// The inodes of all sockets that the process has open.
///
/// # Errors
/// As for [`open_files`].
pub(super) fn socket_inodes(pid: u32) -> io::Result<HashSet<u64>> {
    let inode = |path: &Path| path.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    Ok(open_files(pid)?.filter_map(|file| inode(&file.path)).collect())
}

impl OpenFile {
    /// A path to the file that works even if the file was removed, for as long as the process has it open.
    pub fn entry(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd", self.pid)).join(&self.descriptor)
    }

    /// The file's identity. `None` if the process has closed it since.
    pub fn identity(&self) -> Option<Identity> {
        fs::metadata(self.entry()).ok().map(|meta| Identity::of(&meta))
    }

    /// Whether the process holds a lock on it (flock), by a line in its `fdinfo`:
    /// `lock: 1: FLOCK  ADVISORY  WRITE 12110 fe:00:10011470 0 EOF`.
    pub fn is_locked(&self) -> bool {
        self.has_lock(|_| true)
    }

    /// Whether the process itself took that lock, and not another one from which it has the descriptor.
    pub(crate) fn is_locked_by_it(&self) -> bool {
        let own = self.pid.to_string();
        self.has_lock(|line| line.split_whitespace().nth(5) == Some(&own))
    }

    fn has_lock(&self, fits: impl Fn(&str) -> bool) -> bool {
        let info = PathBuf::from(format!("/proc/{}/fdinfo", self.pid)).join(&self.descriptor);
        fs::read_to_string(info).is_ok_and(|info| info.lines().any(|line| line.starts_with("lock:") && fits(line)))
    }
}

/// The path without the kernel's note that the file was removed, and whether it had one.
pub(super) fn without_deleted(link: PathBuf) -> (PathBuf, bool) {
    match link.as_os_str().as_bytes().strip_suffix(DELETED) {
        Some(path) => (OsString::from_vec(path.to_vec()).into(), true),
        None => (link, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_kernels_note_is_removed_from_a_path() {
        for (link, path, is_deleted) in [
            ("/a/copilot (deleted)", "/a/copilot", true),
            ("/a/copilot", "/a/copilot", false),
            ("/a (deleted)/b", "/a (deleted)/b", false),
        ] {
            assert_eq!(without_deleted(link.into()), (path.into(), is_deleted));
        }
    }
}
