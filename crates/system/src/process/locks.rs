//! The locks on files (`flock`), each with the process that holds it, from `/proc/locks`. Nothing is opened or locked to
//! list them.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use std::fs;
use std::io;

use super::files::open_files;
use crate::identity::Identity;

/// A lock that a process holds on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileLock {
    /// The file's device and inode.
    file: (u64, u64),
    /// `None` if the process is not visible here: one of a container.
    pid: Option<u32>,
}

/// The process that holds the lock of the file with this identity: `Some(None)` for one that is not visible here, or cannot
/// be looked into and may hold it, `None` if nobody holds it. `may_differ`: whether the file is on a file system whose locks
/// may be listed with another device than the file shows. Takes some 20 us for each hundred locks on the machine.
///
/// # Errors
/// If the locks cannot be read.
pub fn lock_holder(file: Identity, may_differ: bool) -> io::Result<Option<Option<u32>>> {
    find(file, may_differ, || fs::read_to_string("/proc/locks"))
}

/// The kernel hands out a list that is longer than a page in pieces, and goes on after each by counting: of a lock before
/// that place that is released meanwhile, another is passed over. Observed with 170 locks of which 20 come and go: one in
/// forty readings misses one that is held all the time. So what is not in a long list is looked for again.
fn find(
    file: Identity,
    may_differ: bool,
    mut read: impl FnMut() -> io::Result<String>,
) -> io::Result<Option<Option<u32>>> {
    const PAGE: usize = 4096;
    const LINE_MAX: usize = 128;
    for _ in 0..3 {
        let locks = read()?;
        let holder = holder_in(&locks, file, may_differ);
        if holder.is_some() || locks.len() < PAGE - LINE_MAX {
            return Ok(holder);
        }
    }
    Ok(None)
}

fn holder_in(locks: &str, file: Identity, may_differ: bool) -> Option<Option<u32>> {
    let (device, inode) = file.parts();
    let of_inode: Vec<_> = locks.lines().filter_map(parse).filter(|lock| lock.file.1 == inode).collect();
    if let Some(held) = of_inode.iter().find(|lock| lock.file.0 == device) {
        return Some(held.pid);
    }
    let mut may_be_held = false;
    for lock in of_inode {
        match lock.pid.map(open_files) {
            Some(Ok(mut open)) => {
                if open.any(|open| open.identity() == Some(file)) {
                    return Some(lock.pid);
                }
            }
            // It has ended, and its lock with it.
            Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
            // What it has open is not shown. The file systems in question have no device of the hardware.
            Some(Err(_)) | None => may_be_held |= rustix::fs::major(lock.file.0) == 0,
        }
    }
    (may_be_held && may_differ).then_some(None)
}

/// Parses `1: FLOCK  ADVISORY  WRITE 12110 fe:00:10011470 0 EOF`. One that a process only waits for has an arrow after
/// the number.
fn parse(line: &str) -> Option<FileLock> {
    let mut words = line.split_whitespace().skip(1);
    if words.next() != Some("FLOCK") {
        return None;
    }
    let mut words = words.skip(2);
    let pid: i64 = words.next()?.parse().ok()?;
    let mut file = words.next()?.split(':');
    let [major, minor] = [file.next()?, file.next()?].map(|part| u32::from_str_radix(part, 16).ok());
    let device = rustix::fs::makedev(major?, minor?);
    let inode = file.next()?.parse().ok()?;
    Some(FileLock { file: (device, inode), pid: u32::try_from(pid).ok().filter(|pid| *pid > 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_read_and_one_that_is_waited_for_is_not() {
        let held = FileLock { file: (rustix::fs::makedev(0xfe, 0), 10_011_470), pid: Some(12110) };
        assert_eq!(parse("1: FLOCK  ADVISORY  WRITE 12110 fe:00:10011470 0 EOF"), Some(held));
        assert_eq!(parse("1: FLOCK  ADVISORY  WRITE 0 fe:00:10011470 0 EOF"), Some(FileLock { pid: None, ..held }));
        for other in [
            "1: -> FLOCK  ADVISORY  WRITE 12110 fe:00:10011470 0 EOF",
            "2: POSIX  ADVISORY  READ 13436 fe:00:10027243 128 128",
            "1: FLOCK  ADVISORY  WRITE 12110 fe:00",
            "1: FLOCK  ADVISORY  WRITE x fe:00:1 0 EOF",
            "",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn case_505_a_lock_that_a_long_list_passed_over_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let identity = Identity::of(&file.as_file().metadata().unwrap());
        let (device, inode) = identity.parts();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let other = "1: FLOCK  ADVISORY  WRITE 7 fe:00:1 0 EOF\n".repeat(100);
        let whole = format!("{other}2: FLOCK  ADVISORY  WRITE 4711 {major:02x}:{minor:02x}:{inode} 0 EOF\n");
        let found = |readings: &[&str]| {
            let mut readings = readings.iter();
            find(identity, false, || Ok((*readings.next().expect("it is not read again")).to_owned())).unwrap()
        };
        assert_eq!(found(&[&other, &whole]), Some(Some(4711)));
        assert_eq!(found(&[&other, &other, &other]), None);
        assert_eq!(found(&["1: FLOCK  ADVISORY  WRITE 7 fe:00:1 0 EOF\n"]), None, "a short list is read at once");
    }

    /// As on btrfs: a subvolume has a device of its own, and locks are listed with that of the whole file system.
    #[test]
    fn case_714_a_lock_of_another_device_that_nobody_can_look_into_may_be_the_files() {
        crate::process::testing::alone!();
        let file = tempfile::NamedTempFile::new().unwrap();
        let identity = Identity::of(&file.as_file().metadata().unwrap());
        let (_, inode) = identity.parts();
        let me = std::process::id();
        let listed =
            |pid: u32, device: &str, inode: u64| format!("1: FLOCK  ADVISORY  WRITE {pid} {device}:{inode} 0 EOF\n");
        // One that is not visible here has the id 0.
        for (pid, device, inode, may_differ, holder) in [
            (0, "00:fffe", inode, true, Some(None)),
            (0, "00:fffe", inode, false, None),
            (0, "00:fffe", inode + 1, true, None),
            (0, "fe:07", inode, true, None),
            (me, "00:fffe", inode, true, Some(Some(me))),
            (crate::process::testing::ended(), "00:fffe", inode, true, None),
        ] {
            let found = find(identity, may_differ, || Ok(listed(pid, device, inode))).unwrap();
            assert_eq!(found, holder, "{pid} {device} {may_differ}");
        }
    }

    #[test]
    fn the_holder_of_a_lock_is_found_and_of_a_lock_that_nobody_holds_none() {
        crate::process::testing::alone!();
        let file = tempfile::NamedTempFile::new().unwrap();
        let identity = Identity::of(&file.as_file().metadata().unwrap());
        assert_eq!(lock_holder(identity, false).unwrap(), None);
        file.as_file().lock().unwrap();
        assert_eq!(lock_holder(identity, false).unwrap(), Some(Some(std::process::id())));
        file.as_file().unlock().unwrap();
        assert_eq!(lock_holder(identity, false).unwrap(), None);
    }
}
