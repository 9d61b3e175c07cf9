//! One light at a time: a second start says where the first is.
//!
//! The first one holds a lock on a file, which the system lets go of however the process ends, so nothing is ever left
//! behind that would have to be cleaned up. Beside it lies a note that says who holds it.

use anyhow::Context;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

const LOCK: &str = "pilotlight.lock";
/// Says who holds the lock, and where its light is.
pub const NOTE: &str = "pilotlight.pid";

/// The one that runs. Its end, in whatever way, lets the next one start.
#[derive(Debug)]
pub struct Instance {
    _lock: File,
    note: PathBuf,
}

/// What a start finds.
#[derive(Debug)]
pub enum Claim {
    /// Nobody runs yet; now we do.
    Ours(Instance),
    /// Somebody does: its note, "process 4711, its light is in the panel".
    Theirs(String),
}

impl Instance {
    /// Tries to be the one that runs. `folder` is the user's own, and is made if it does not exist.
    ///
    /// # Errors
    /// Where the folder cannot be written, so that nobody can know.
    pub fn claim(folder: &Path) -> anyhow::Result<Claim> {
        let path = folder.join(LOCK);
        let failed = || format!("cannot find out whether Pilotlight runs already: {}", path.display());
        crate::paths::make_folder(folder).with_context(failed)?;
        let lock = File::options().create(true).truncate(false).write(true).open(&path).with_context(failed)?;
        let note = folder.join(NOTE);
        match lock.try_lock() {
            Ok(()) => {
                let instance = Self { _lock: lock, note };
                instance.tell("its light is on its way");
                Ok(Claim::Ours(instance))
            }
            Err(TryLockError::WouldBlock) => {
                let note = fs::read_to_string(&note).unwrap_or_default();
                let note = crate::core::text::plain(&note, 200);
                Ok(Claim::Theirs(if note.is_empty() { "in another process".into() } else { note.into() }))
            }
            Err(TryLockError::Error(error)) => Err(error).with_context(failed),
        }
    }

    /// Says where the light is now.
    pub fn tell(&self, place: &str) {
        let note = format!("process {}, {place}\n", std::process::id());
        if let Err(error) = fs::write(&self.note, note) {
            tracing::debug!(path = %self.note.display(), %error, "where the light is cannot be noted");
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.note); // a note without a lock says nothing, and the next one overwrites it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CASES.md 107.
    #[test]
    fn case_107_the_second_is_told_where_the_first_is_and_the_third_may_start_when_it_is_gone() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("made").join("when needed");
        let Ok(Claim::Ours(first)) = Instance::claim(&folder) else { panic!("nobody runs") };
        first.tell("its light is in the panel");
        let Ok(Claim::Theirs(note)) = Instance::claim(&folder) else { panic!("one runs") };
        assert_eq!(note, format!("process {}, its light is in the panel", std::process::id()));
        drop(first);
        assert!(matches!(Instance::claim(&folder), Ok(Claim::Ours(_))));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Instance::claim(&file.join("below")).is_err());
    }
}
