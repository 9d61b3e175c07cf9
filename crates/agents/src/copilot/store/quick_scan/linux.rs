//! A quick scan on Linux: lists the folder, and reads one file's time.

use crate::copilot::store::LOG;
use crate::reading::PastSession;
use pilotlight_core::time::Time;
use pilotlight_system::file_times::at;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use std::mem::MaybeUninit;
use std::path::Path;

/// The most files that are listed; a real folder has fewer. Larger ones are listed in slices by `locks`.
const FILES_MAX: usize = 64;
/// The beginning of every lock's name.
const LOCK: &[u8] = b"inuse.";

pub(super) fn open_root(path: &Path) -> Option<OwnedFd> {
    openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Takes a quick scan of a folder. `None` where it has a lock or is unusual in any way, so that it must be read in
/// full.
pub(super) fn scan(root: impl AsFd, path: &Path) -> Option<PastSession> {
    let folder = openat(root, path, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&folder, &mut buffer);
    let (mut files, mut has_log) = (0, false);
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        files += 1;
        if name.starts_with(LOCK) || files > FILES_MAX {
            return None;
        }
        has_log |= name == LOG.as_bytes();
    }
    let meta = if has_log { statat(&folder, LOG, AtFlags::SYMLINK_NOFOLLOW) } else { fstat(&folder) };
    Some(PastSession { touched: written(&meta.ok()?), has_log })
}

#[allow(clippy::unnecessary_cast, reason = "the width of these fields depends on the platform")]
fn written(meta: &Stat) -> Time {
    at(meta.st_mtime as i64, meta.st_mtime_nsec as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_system::file_times::modified;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, UNIX_EPOCH};

    /// Takes a quick scan by the whole path and relative to the parent, which must agree.
    fn scan(path: &Path) -> Option<PastSession> {
        let seen = super::scan(CWD, path);
        let root = open_root(path.parent().unwrap()).unwrap();
        assert_eq!(super::scan(root, Path::new(path.file_name().unwrap())), seen);
        seen
    }

    #[test]
    fn a_glimpse_shows_a_folder_without_locks() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, log) = (scratch.path().join("one"), scratch.path().join("one").join(LOG));
        assert_eq!(scan(&folder), None, "the folder does not exist");
        fs::create_dir_all(folder.join("files")).unwrap();
        let meta = fs::metadata(&folder).unwrap();
        assert_eq!(scan(&folder), Some(PastSession { touched: modified(&meta), has_log: false }));
        fs::write(&log, "{}\n").unwrap();
        for since_1970 in [Duration::ZERO, Duration::from_micros(1_700_000_000_123_456)] {
            fs::File::options().write(true).open(&log).unwrap().set_modified(UNIX_EPOCH + since_1970).unwrap();
            let touched = Time(i64::try_from(since_1970.as_millis()).unwrap());
            assert_eq!(scan(&folder), Some(PastSession { touched, has_log: true }));
            assert_eq!(modified(&fs::metadata(&log).unwrap()), touched);
        }
        symlink(&folder, scratch.path().join("link")).unwrap();
        assert_eq!(scan(&scratch.path().join("link")), None);
    }

    #[test]
    fn a_folder_with_a_lock_or_many_files_must_be_read_in_full() {
        for names in [vec!["inuse.17.lock".to_owned()], (0..FILES_MAX).map(|n| n.to_string()).collect()] {
            let scratch = tempfile::tempdir().unwrap();
            for name in &names {
                fs::write(scratch.path().join(name), "").unwrap();
            }
            assert_eq!(scan(scratch.path()), None, "{names:?}");
            fs::remove_file(scratch.path().join(&names[0])).unwrap();
            // The listing includes `.` and `..`.
            fs::remove_file(scratch.path().join(names.get(1).unwrap_or(&names[0]))).ok();
            assert!(scan(scratch.path()).is_some(), "{names:?}");
        }
    }
}
