//! Lists the locks in a session's folder, however many files it has.
//!
//! A real folder has one lock, or a few left behind by killed processes. A folder with thousands of locks is listed all
//! the same, but locks of existing processes take precedence: the others cannot own anything.

use super::lock_pid;
use crate::copilot::owner::Lock;
use pilotlight_system::file_times::modified;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

/// The most locks that are returned.
const LOCKS_MAX: usize = 64;
/// The most files that are listed, which takes some 20 ms in total. A real folder has about ten.
const FILES_MAX: usize = 50_000;
/// How many files are listed between two checks of the deadline.
const FILES_AT_ONCE: usize = 64;

/// The result of a listing.
pub(super) struct Listed {
    pub(super) locks: Vec<Lock>,
    /// Whether the folder has more than [`FILES_MAX`] files.
    pub(super) cut: bool,
}

/// A listing in progress.
#[derive(Debug)]
pub(super) struct Listing {
    entries: fs::ReadDir,
    files: usize,
    /// The pids of locks whose process exists, at most [`LOCKS_MAX`].
    existing: Vec<u32>,
    /// The pids of other locks, at most [`LOCKS_MAX`].
    gone: Vec<u32>,
    cut: bool,
}

impl Listing {
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        Ok(Self { entries: fs::read_dir(folder)?, files: 0, existing: Vec::new(), gone: Vec::new(), cut: false })
    }

    /// Continues until the deadline `until`, but lists a few files in any case. Returns whether the listing is
    /// complete.
    pub(super) fn advance(&mut self, until: Option<Instant>) -> bool {
        loop {
            if self.files == FILES_MAX {
                self.cut = true;
                return true;
            }
            let Some(entry) = self.entries.next() else { return true };
            self.files += 1;
            if let Some(pid) = entry.ok().and_then(|entry| entry.file_name().to_str().and_then(lock_pid)) {
                let pids = if exists(pid) { &mut self.existing } else { &mut self.gone };
                if pids.len() < LOCKS_MAX {
                    pids.push(pid);
                }
            }
            if self.files.is_multiple_of(FILES_AT_ONCE) && until.is_some_and(|until| until <= Instant::now()) {
                return false;
            }
        }
    }

    /// Returns the result.
    pub(super) fn finish(self, folder: &Path) -> Listed {
        let pids = self.existing.into_iter().chain(self.gone).take(LOCKS_MAX);
        let lock = |pid| {
            let meta = fs::symlink_metadata(folder.join(format!("inuse.{pid}.lock"))).ok()?;
            meta.is_file().then(|| Lock { pid, made: modified(&meta) })
        };
        Listed { locks: pids.filter_map(lock).collect(), cut: self.cut }
    }
}

/// Returns the pids named by the locks in this folder that are in use, be it by another program or by a zombie. Only on
/// Unix.
#[cfg(unix)]
pub(crate) fn lock_pids_in_use(folder: &Path) -> Vec<u32> {
    let Ok(mut listing) = Listing::of(folder) else { return Vec::new() };
    listing.advance(None);
    listing.existing
}

/// Unknown on other systems.
#[cfg(not(unix))]
pub(crate) const fn lock_pids_in_use(_: &Path) -> Vec<u32> {
    Vec::new()
}

/// Whether there may be a process with this id.
#[cfg(unix)]
fn exists(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(not(unix))]
const fn exists(_: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_136_a_lock_is_found_among_twenty_thousand() {
        let scratch = tempfile::tempdir().unwrap();
        // No process has such an id: Linux assigns none above four million.
        for pid in 2_000_000_000..2_000_020_000_u32 {
            fs::File::create(scratch.path().join(format!("inuse.{pid}.lock"))).unwrap();
        }
        let own = std::process::id();
        fs::File::create(scratch.path().join(format!("inuse.{own}.lock"))).unwrap();
        let begun = Instant::now();
        let (mut listing, mut slices) = (Listing::of(scratch.path()).unwrap(), 1);
        // Each slice makes progress although the deadline has passed.
        while !listing.advance(Some(begun)) {
            slices += 1;
        }
        assert_eq!(slices, 1 + 20_001 / FILES_AT_ONCE, "no slice lists more files than it must");
        let listed = listing.finish(scratch.path());
        println!("20,000 locks in {:.1?}", begun.elapsed());
        assert!(!listed.cut && listed.locks.len() == LOCKS_MAX);
        assert!(listed.locks.iter().any(|lock| lock.pid == own));
    }
}
