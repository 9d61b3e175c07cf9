//! Session folders: where a home keeps them, which there are, and a session's state, read from its folder.

mod folder;
mod locks;
mod quick_scan;

pub use folder::Folder;
pub(crate) use folder::owner::owner_now;
pub(crate) use locks::lock_pids_in_use;
pub(crate) use quick_scan::Root;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The folder of a home that holds the session folders.
pub const SESSIONS: &str = "session-state";
/// A session's log.
pub const LOG: &str = "events.jsonl";
/// A session's description.
pub(crate) const WORKSPACE: &str = "workspace.yaml";

/// Lists the session folders in `sessions`. Folders whose names begin with a dot, links and files are not sessions.
///
/// # Errors
/// Where the folder cannot be listed.
pub(crate) fn session_ids(sessions: &Path) -> io::Result<SessionIds> {
    fs::read_dir(sessions).map(SessionIds)
}

/// Iterates over the names of session folders.
#[derive(Debug)]
pub struct SessionIds(fs::ReadDir);

impl Iterator for SessionIds {
    type Item = Arc<str>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Ok(entry) = self.0.next()? else { continue };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let Ok(name) = entry.file_name().into_string()
                && is_folder
                && !name.starts_with('.')
            {
                return Some(name.into());
            }
        }
    }
}

/// Parses the process id from `inuse.<pid>.lock`.
pub fn lock_pid(file_name: &str) -> Option<u32> {
    let digits = file_name.strip_prefix("inuse.")?.strip_suffix(".lock")?;
    (digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}
