//! A thread's lock, and who holds it.
//!
//! A process that has a thread loaded holds the `flock` of `thread-writer-locks/<id>.lock`. It deletes the file when it
//! unloads the thread; a process that is killed leaves it behind, held by nobody. The next process of Codex that starts
//! deletes it (seen), and whoever loads the thread truncates or replaces it: so the file's time is that of loading, and
//! without a file nobody has the thread loaded.
//!
//! Linux lists all locks with their processes in `/proc/locks`. The lock itself is never taken, not even to try: that
//! would keep Codex from it. macOS and Windows show no holders without unsafe system calls; there, the daemon is taken for
//! the holder while it lives, and a thread of any other process has an unknown owner.

use pilotlight_core::text::is_uuid;
use pilotlight_core::time::Time;
use pilotlight_system::file_system::has_devices_of_its_own;
use pilotlight_system::file_times::modified;
use pilotlight_system::identity::Identity;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The folder of a home that holds the locks.
pub(super) const LOCKS: &str = "thread-writer-locks";

/// The thread whose lock has this name.
pub(super) fn session_of_lock(file: &str) -> Option<&str> {
    file.strip_suffix(".lock").filter(|id| is_uuid(id))
}

/// The threads that have a lock in this home, held or not.
pub(super) fn ids(home: &Path) -> impl Iterator<Item = Arc<str>> {
    let files = fs::read_dir(home.join(LOCKS)).into_iter().flatten().flatten();
    files.filter_map(|file| file.file_name().to_str().and_then(session_of_lock).map(Arc::from))
}

/// The lock file of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lock {
    file: Identity,
    /// Whether the system may list it with another device than its file shows.
    may_differ: bool,
    /// When the thread was loaded: the file's modification time.
    pub(super) loaded: Time,
}

impl Lock {
    /// The lock of a thread, if it has one. Something else of its name is none.
    pub(super) fn of(home: &Path, id: &str) -> Option<Self> {
        let path = home.join(LOCKS).join(format!("{id}.lock"));
        let meta = fs::symlink_metadata(&path).ok()?;
        let may_differ = has_devices_of_its_own(&path);
        meta.is_file().then(|| Self { file: Identity::of(&meta), may_differ, loaded: modified(&meta) })
    }

    /// Who holds it now.
    #[cfg(target_os = "linux")]
    pub(super) fn holder(&self) -> Holder {
        match pilotlight_system::process::lock_holder(self.file, self.may_differ) {
            Ok(Some(Some(pid))) => Holder::Process(pid),
            Ok(Some(None)) => Holder::Hidden,
            Ok(None) => Holder::Nobody,
            Err(_) => Holder::Untold,
        }
    }

    /// Who holds it now: the system does not tell.
    #[cfg(not(target_os = "linux"))]
    pub(super) const fn holder(&self) -> Holder {
        let _ = (self.file, self.may_differ);
        Holder::Untold
    }
}

/// Who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux shows it"))]
pub(super) enum Holder {
    /// This process.
    Process(u32),
    /// A process that is not visible here, as one of a container, or of which it cannot be told.
    Hidden,
    /// Nobody.
    Nobody,
    /// The system does not tell.
    Untold,
}
