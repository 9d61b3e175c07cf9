//! The locks in a session's folder, however many files are there.
//!
//! A real folder has one lock, or a few that a kill left behind. One with thousands is looked through all the same, but only
//! the locks of processes that exist are looked at closely: the others can own nothing.

use super::super::owner::Lock;
use super::{lock_pid, modified};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

/// So many locks are looked at, whoever made them.
const LOCKS_MAX: usize = 64;
/// So many files are looked through for locks, which takes some 20 ms in all; a real folder has about ten.
const FILES_MAX: usize = 50_000;
/// So many are looked through before it is looked at the time.
const FILES_AT_ONCE: usize = 64;

/// What a listing of a folder found.
pub(super) struct Listed {
    pub(super) locks: Vec<Lock>,
    /// There are more files than were looked through.
    pub(super) cut: bool,
}

/// A folder that is being listed.
#[derive(Debug)]
pub(super) struct Listing {
    entries: fs::ReadDir,
    files: usize,
    /// Locks whose process exists, and others: no more of each than are looked at.
    there: Vec<u32>,
    gone: Vec<u32>,
    cut: bool,
}

impl Listing {
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        Ok(Self { entries: fs::read_dir(folder)?, files: 0, there: Vec::new(), gone: Vec::new(), cut: false })
    }

    /// Goes on until then, a few files at the least. Whether that was all.
    pub(super) fn go_on(&mut self, until: Option<Instant>) -> bool {
        loop {
            if self.files == FILES_MAX {
                self.cut = true;
                return true;
            }
            let Some(entry) = self.entries.next() else { return true };
            self.files += 1;
            if let Some(pid) = entry.ok().and_then(|entry| entry.file_name().to_str().and_then(lock_pid)) {
                let pids = if exists(pid) { &mut self.there } else { &mut self.gone };
                if pids.len() < LOCKS_MAX {
                    pids.push(pid);
                }
            }
            if self.files.is_multiple_of(FILES_AT_ONCE) && until.is_some_and(|until| until <= Instant::now()) {
                return false;
            }
        }
    }

    /// What was found.
    pub(super) fn end(self, folder: &Path) -> Listed {
        let pids = self.there.into_iter().chain(self.gone).take(LOCKS_MAX);
        let lock = |pid| {
            let meta = fs::symlink_metadata(folder.join(format!("inuse.{pid}.lock"))).ok()?;
            meta.is_file().then(|| Lock { pid, made: modified(&meta) })
        };
        Listed { locks: pids.filter_map(lock).collect(), cut: self.cut }
    }
}

/// The processes that the locks in this folder name, where the system has one of that number, be it another program's or the rest of
/// one that has ended and was not waited for. Only Unix tells.
#[cfg(unix)]
pub(crate) fn numbers_in_use(folder: &Path) -> Vec<u32> {
    let Ok(mut listing) = Listing::of(folder) else { return Vec::new() };
    listing.go_on(None);
    listing.there
}

/// The same, where nobody tells.
#[cfg(not(unix))]
pub(crate) const fn numbers_in_use(_: &Path) -> Vec<u32> {
    Vec::new()
}

/// Whether there may be a process of this number.
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

    /// Case 136: the one lock that matters is found among twenty thousand, and that takes no time to speak of.
    #[test]
    fn case_136_a_lock_is_found_among_twenty_thousand() {
        let scratch = tempfile::tempdir().unwrap();
        // No process has a number like these: Linux gives none above four million.
        for pid in 2_000_000_000..2_000_020_000_u32 {
            fs::File::create(scratch.path().join(format!("inuse.{pid}.lock"))).unwrap();
        }
        let own = std::process::id();
        fs::File::create(scratch.path().join(format!("inuse.{own}.lock"))).unwrap();
        let begun = Instant::now();
        let (mut listing, mut slices) = (Listing::of(scratch.path()).unwrap(), 1);
        // Whatever is left of the time, it gets on.
        while !listing.go_on(Some(begun)) {
            slices += 1;
        }
        assert_eq!(slices, 1 + 20_001 / FILES_AT_ONCE, "no slice is longer than it must be");
        let listed = listing.end(scratch.path());
        println!("20,000 locks in {:.1?}", begun.elapsed());
        assert!(!listed.cut && listed.locks.len() == LOCKS_MAX);
        assert!(listed.locks.iter().any(|lock| lock.pid == own));
    }
}
