//! Finds the sessions of a home that are files in shared folders: those of a [`Layout::Files`].
//!
//! [`Layout::Files`]: pilotlight_system::watcher::Layout::Files

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The id of the session whose file has this name.
type SessionOf = fn(&str) -> Option<&str>;

/// Visits the files of sessions `depth` folders below this one, until `visit` returns `false`. Calls `enter` for each
/// folder before it is read. What vanishes meanwhile, or is no folder, has none.
///
/// # Errors
/// Where the folder itself cannot be listed.
pub(super) fn files(
    folder: &Path,
    depth: usize,
    session_of: SessionOf,
    enter: &mut impl FnMut(&Path),
    visit: &mut impl FnMut(&str, PathBuf) -> bool,
) -> io::Result<bool> {
    enter(folder);
    for entry in fs::read_dir(folder)?.flatten() {
        if depth > 0 {
            if let Ok(false) = files(&entry.path(), depth - 1, session_of, enter, visit) {
                return Ok(false);
            }
        } else if let Some(id) = entry.file_name().to_str().and_then(session_of)
            && !visit(id, entry.path())
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The file of one session, if it is there.
pub(super) fn find(folder: &Path, depth: usize, session_of: SessionOf, id: &str) -> Option<PathBuf> {
    let mut found = None;
    let mut visit = |of: &str, path: PathBuf| {
        found = (of == id).then_some(path);
        found.is_none()
    };
    let _ = files(folder, depth, session_of, &mut |_| (), &mut visit); // what cannot be listed has none
    found
}
