//! The first look into a session's folder, in as few calls as tell that it is history.
//!
//! Of tens of thousands of folders, nearly all have no lock in them and a log that nobody has written for long. A look that reads
//! locks, their processes and a log need not begin there: listing the folder and asking for the log's time is enough.

use super::Reading;
use crate::core::time::Time;
use std::path::Path;

/// What was seen of a folder without a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Glimpse {
    /// When its log, or else the folder, was last written.
    pub touched: Time,
    /// There is a log, or something in its place.
    pub has_log: bool,
}

/// A folder of sessions.
#[derive(Debug)]
pub(crate) struct Root<'a> {
    path: &'a Path,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    folder: Option<rustix::fd::OwnedFd>,
}

impl<'a> Root<'a> {
    /// What is in it is found by its whole path.
    pub(crate) const fn at(path: &'a Path) -> Self {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return Self { path, folder: None };
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Self { path }
    }

    /// What is in it is found from it, for who looks at many: the system need not walk the whole way to each of them.
    pub(crate) fn open(path: &'a Path) -> Self {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return Self { path, folder: linux::open_root(path) };
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Self::at(path)
    }

    /// What a glimpse shows of a session, where that tells that nobody has it open, and that its log is too old to matter.
    pub(crate) fn past(&self, id: &str, reading: &Reading<'_>) -> Option<Glimpse> {
        if reading.all || reading.openings.of(self.path, id).is_some() {
            return None;
        }
        self.glimpse(id).filter(|glimpse| !glimpse.has_log || reading.is_past(glimpse.touched))
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn glimpse(&self, id: &str) -> Option<Glimpse> {
        match &self.folder {
            Some(folder) => linux::glimpse(folder, Path::new(id)),
            None => linux::glimpse(rustix::fs::CWD, &self.path.join(id)),
        }
    }

    /// Only a whole look tells.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const fn glimpse(&self, _: &str) -> Option<Glimpse> {
        None
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use super::Glimpse;
    use crate::agent::copilot::store::{LOG, at};
    use rustix::fd::{AsFd, OwnedFd};
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
    use std::mem::MaybeUninit;
    use std::path::Path;

    /// More files than in any real folder. One with thousands is listed in slices, elsewhere.
    const FILES_MAX: usize = 64;
    /// How the names of all locks begin.
    const LOCK: &[u8] = b"inuse.";

    pub(super) fn open_root(path: &Path) -> Option<OwnedFd> {
        openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
    }

    /// What stands in the folder. `None` where a lock does, or anything is not as it usually is: then only a whole look tells.
    pub(super) fn glimpse(root: impl AsFd, path: &Path) -> Option<Glimpse> {
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
        Some(Glimpse { touched: written(&meta.ok()?), has_log })
    }

    #[allow(clippy::unnecessary_cast, reason = "how wide these fields are differs between processors")]
    fn written(meta: &Stat) -> crate::core::time::Time {
        at(meta.st_mtime as i64, meta.st_mtime_nsec as i64)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::agent::copilot::store::modified;
        use crate::core::time::Time;
        use std::fs;
        use std::os::unix::fs::symlink;
        use std::time::{Duration, UNIX_EPOCH};

        /// By its whole path, and from the folder that it is in.
        fn glimpse(path: &Path) -> Option<Glimpse> {
            let seen = super::glimpse(CWD, path);
            let root = open_root(path.parent().unwrap()).unwrap();
            assert_eq!(super::glimpse(root, Path::new(path.file_name().unwrap())), seen);
            seen
        }

        #[test]
        fn a_folder_without_locks_is_known_by_a_glimpse() {
            let scratch = tempfile::tempdir().unwrap();
            let (folder, log) = (scratch.path().join("one"), scratch.path().join("one").join(LOG));
            assert_eq!(glimpse(&folder), None, "there is none");
            fs::create_dir_all(folder.join("files")).unwrap();
            let meta = fs::metadata(&folder).unwrap();
            assert_eq!(glimpse(&folder), Some(Glimpse { touched: modified(&meta), has_log: false }));
            fs::write(&log, "{}\n").unwrap();
            for since_1970 in [Duration::ZERO, Duration::from_micros(1_700_000_000_123_456)] {
                fs::File::options().write(true).open(&log).unwrap().set_modified(UNIX_EPOCH + since_1970).unwrap();
                let touched = Time(i64::try_from(since_1970.as_millis()).unwrap());
                assert_eq!(glimpse(&folder), Some(Glimpse { touched, has_log: true }));
                assert_eq!(modified(&fs::metadata(&log).unwrap()), touched);
            }
            symlink(&folder, scratch.path().join("link")).unwrap();
            assert_eq!(glimpse(&scratch.path().join("link")), None);
        }

        #[test]
        fn a_folder_with_a_lock_or_with_many_files_wants_a_whole_look() {
            for names in [vec!["inuse.17.lock".to_owned()], (0..FILES_MAX).map(|n| n.to_string()).collect()] {
                let scratch = tempfile::tempdir().unwrap();
                for name in &names {
                    fs::write(scratch.path().join(name), "").unwrap();
                }
                assert_eq!(glimpse(scratch.path()), None, "{names:?}");
                fs::remove_file(scratch.path().join(&names[0])).unwrap();
                // Two are the folder itself and the one above.
                fs::remove_file(scratch.path().join(names.get(1).unwrap_or(&names[0]))).ok();
                assert!(glimpse(scratch.path()).is_some(), "{names:?}");
            }
        }
    }
}
