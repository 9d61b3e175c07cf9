//! Finds the sessions of a home by its [`Layout`]: files in shared folders, or folders of their own.

use super::listing::Listing;
use super::listing_cache::ListingCache;
use pilotlight_system::watcher::Layout;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Lists the sessions of a home, with where their files are.
///
/// # Errors
/// Where the folder of the sessions cannot be listed.
pub(super) fn list(root: &Path, layout: &Layout, mut cache: ListingCache) -> io::Result<Listing> {
    let Layout::Files { depth, session_of, .. } = *layout else {
        cache.note(root);
        let folders = fs::read_dir(root)?.flatten().filter(|entry| entry.path().is_dir());
        let ids =
            folders.filter_map(|folder| Some(folder.file_name().to_str().filter(|id| !id.starts_with('.'))?.into()));
        return Ok(Listing::of(ids.collect::<Vec<Arc<str>>>()).with(Arc::default(), cache));
    };
    let mut found = HashMap::<Arc<str>, PathBuf>::new();
    files(root, depth, session_of, &mut |folder| cache.note(folder), &mut |id, path| {
        found.insert(id.into(), path);
        true
    })?;
    Ok(Listing::of(found.keys().cloned().collect::<Vec<_>>()).with(found.into(), cache))
}

/// Where a session is, or would be.
pub(super) fn path(root: &Path, layout: &Layout, id: &str) -> PathBuf {
    let found = match *layout {
        Layout::Files { depth, session_of, .. } => find(root, depth, session_of, id),
        Layout::Folders { .. } => None,
    };
    found.unwrap_or_else(|| root.join(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_are_folders_are_listed_too() {
        let home = tempfile::tempdir().unwrap();
        for folder in ["one", ".one"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        fs::write(home.path().join("notes"), "").unwrap();
        let layout = Layout::Folders { is_session_file: |_| true };
        let listed = list(home.path(), &layout, ListingCache::default()).unwrap();
        assert_eq!(listed.map(|id| id.to_string()).collect::<Vec<_>>(), ["one"]);
        assert_eq!(path(home.path(), &layout, "one"), home.path().join("one"));
    }
}
