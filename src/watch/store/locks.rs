//! The locks in a session's folder, however many files are there.
//!
//! A real folder has one lock, or a few that a kill left behind. One with thousands is looked through all the same, but only
//! the locks of processes that exist are looked at closely: the others can own nothing.

use super::super::process::Lock;
use super::{lock_pid, modified};
use std::fs;
use std::io;
use std::path::Path;

/// So many locks are looked at, whoever made them.
const LOCKS_MAX: usize = 64;
/// So many files are looked through for locks, which takes some 20 ms; a real folder has about ten.
const FILES_MAX: usize = 50_000;

/// What a listing of a folder found.
pub(super) struct Listed {
    pub(super) locks: Vec<Lock>,
    /// There are more files than were looked through.
    pub(super) cut: bool,
}

pub(super) fn list(folder: &Path) -> io::Result<Listed> {
    let (mut pids, mut cut) = (Vec::new(), false);
    for (n, entry) in fs::read_dir(folder)?.enumerate() {
        if n == FILES_MAX {
            cut = true;
            break;
        }
        let Ok(entry) = entry else { continue };
        pids.extend(entry.file_name().to_str().and_then(lock_pid));
    }
    if pids.len() > LOCKS_MAX {
        let (there, gone): (Vec<_>, Vec<_>) = pids.into_iter().partition(|pid| exists(*pid));
        pids = there.into_iter().chain(gone).take(LOCKS_MAX).collect();
    }
    let lock = |pid| {
        let meta = fs::symlink_metadata(folder.join(format!("inuse.{pid}.lock"))).ok()?;
        meta.is_file().then(|| Lock { pid, made: modified(&meta) })
    };
    Ok(Listed { locks: pids.into_iter().filter_map(lock).collect(), cut })
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
    use std::time::Instant;

    /// CASES.md 136: the one lock that matters is found among twenty thousand, and that takes no time to speak of.
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
        let listed = list(scratch.path()).unwrap();
        println!("20,000 locks in {:.1?}", begun.elapsed());
        assert!(!listed.cut && listed.locks.len() == LOCKS_MAX);
        assert!(listed.locks.iter().any(|lock| lock.pid == own));
    }
}
