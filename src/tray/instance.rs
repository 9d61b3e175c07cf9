//! One tray per user: a second start reports where the first one is.
//!
//! The first one holds a lock on a file. The system releases it however the process ends, so there is never a stale
//! lock to clean up. A note next to it names the holder. Both are in the [runtime folder](pilotlight_system::runtime),
//! which is checked before either is opened.

use anyhow::Context;
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::note::Note;
use pilotlight_system::runtime::Runtime;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The claim of the running tray. However it ends, the next one can start.
#[derive(Debug)]
pub(crate) struct Instance {
    _lock: File,
    runtime: Runtime,
    folder: PathBuf,
}

/// The result of [`Instance::claim`].
#[derive(Debug)]
pub(crate) enum Claim {
    /// No other tray was running; this one is now.
    Ours(Instance),
    /// Another tray is running, with this note: "process 4711, its icon is in the panel".
    Theirs(String),
}

impl Instance {
    /// Tries to become the running tray. `folder` must belong to the user alone; it is created if it does not exist.
    ///
    /// # Errors
    /// Where the folder is not ours alone or not writable, so that this cannot be determined. Worded for the user.
    pub(crate) fn claim(folder: &Path) -> anyhow::Result<Claim> {
        let failed = || format!("cannot find out whether Pilotlight is already running: {}", folder.display());
        let runtime = match Runtime::make(folder) {
            Ok(runtime) => runtime,
            // The message already names the folder and what to do.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied && error.get_ref().is_some() => {
                return Err(error.into());
            }
            Err(error) => return Err(error).with_context(failed),
        };
        let mut lock = runtime.lock_file().with_context(failed)?;
        let mut locked = lock.try_lock();
        if matches!(locked, Err(TryLockError::WouldBlock)) && is_held_by_another_user(&lock) {
            // Anybody who could once open the file can hold its lock for ever. A new file is ours.
            runtime.remove_lock_file();
            lock = runtime.lock_file().with_context(failed)?;
            locked = lock.try_lock();
        }
        match locked {
            Ok(()) => {
                let instance = Self { _lock: lock, runtime, folder: folder.to_owned() };
                instance.write_note("its icon is on its way");
                Ok(Claim::Ours(instance))
            }
            Err(TryLockError::WouldBlock) => {
                let note = runtime.note();
                Ok(Claim::Theirs(note.map_or_else(|| "in another process".into(), |note| note.to_string())))
            }
            Err(TryLockError::Error(error)) => Err(error).with_context(failed),
        }
    }

    /// Writes where the tray can be seen into the note.
    pub(crate) fn write_note(&self, place: &str) {
        if let Err(error) = self.runtime.write_note(&Note::of_this_process(place)) {
            log::debug!(path = private(&self.folder.display()), "the note cannot be written: {}", cause(&error));
        }
    }

    /// The runtime folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.runtime.remove_note(); // without the lock it means nothing, and the next tray overwrites it
    }
}

/// Whether the lock's holder is known to be another user's process.
#[cfg(target_os = "linux")]
fn is_held_by_another_user(lock: &File) -> bool {
    use pilotlight_system::identity::Identity;
    use pilotlight_system::process::{is_of_our_user, lock_holder};
    let Ok(meta) = lock.metadata() else { return false };
    let holder = lock_holder(Identity::of(&meta), false).ok().flatten().flatten();
    let is_shown = |pid: &u32| Path::new("/proc").join(pid.to_string()).join("status").exists();
    holder.filter(is_shown).is_some_and(|pid| !is_of_our_user(pid))
}

/// Other systems do not report who holds a lock.
#[cfg(not(target_os = "linux"))]
fn is_held_by_another_user(_lock: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn case_107_the_second_tray_learns_where_the_first_is_and_a_third_may_start_when_it_is_gone() {
        pilotlight_system::process::testing::alone!();
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("made").join("when needed");
        let Ok(Claim::Ours(first)) = Instance::claim(&folder) else { panic!("nobody runs") };
        first.write_note("its icon is in the panel");
        let Ok(Claim::Theirs(note)) = Instance::claim(&folder) else { panic!("one runs") };
        assert_eq!(note, format!("process {}, its icon is in the panel", std::process::id()));
        drop(first);
        assert!(matches!(Instance::claim(&folder), Ok(Claim::Ours(_))), "the first is gone");
    }

    #[test]
    fn a_folder_that_cannot_be_created_is_an_error() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Instance::claim(&file.join("below")).is_err());
    }

    /// Having once opened the file, even only for reading, is enough to hold its lock.
    #[cfg(target_os = "linux")]
    #[test]
    fn case_143_a_lock_held_by_another_user_does_not_keep_the_tray_from_starting() {
        use std::io::{BufRead, BufReader};
        use std::os::unix::fs::PermissionsExt;
        use std::process::{Command, Stdio};
        if !rustix::process::geteuid().is_root() {
            return; // only root can start another user's process
        }
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("folder");
        drop(Instance::claim(&folder).unwrap());
        let path = folder.join(pilotlight_system::runtime::LOCK);
        for (path, mode) in [(scratch.path(), 0o755), (&*folder, 0o755), (&*path, 0o644)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "perl", "-MFcntl=:flock", "-e"]);
        command.arg("$| = 1; open F, '<', $ARGV[0] or die; flock F, LOCK_EX or die; print qq(held\\n); <STDIN>");
        let mut holder = command.arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        let claimed = Instance::claim(&folder).unwrap();
        let second = Instance::claim(&folder).unwrap();
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(matches!(claimed, Claim::Ours(_)), "{claimed:?}");
        assert!(matches!(second, Claim::Theirs(_)), "our own hold counts: {second:?}");
    }
}
