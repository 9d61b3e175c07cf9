//! What was needed once goes back to the system.
//!
//! The allocator keeps what a start or a storm needed, for the next one, which may be days away. It is asked to let go of it when
//! much was looked at, and with the rescan: that takes it some 100 us, and wakes nobody.
//!
//! Of the program file, the start reads the relocations whole, and with each piece of code that it runs what stands around that.
//! Little of it is ever run again, and so it is let go of once. What is needed is there again as soon as it is run.
#![cfg_attr(target_os = "linux", allow(unsafe_code))]

/// Gives whole pages that nothing stands on back to the system, where the allocator can be asked to.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back() {
    unsafe extern "C" {
        /// malloc_trim(3).
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: it takes any number, may be called by any thread, and touches nothing that is in use.
    unsafe { malloc_trim(0) };
}

/// There is no asking.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) const fn give_back() {}

/// Lets go of what was read of the program file and of libraries.
#[cfg(target_os = "linux")]
pub(crate) fn forget_start() {
    use std::ffi::{c_int, c_void};
    const DONT_NEED: c_int = 4;
    unsafe extern "C" {
        /// madvise(2).
        fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    // Where it cannot be read, everything stays.
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for (from, to) in as_in_file(&maps) {
        // SAFETY: these pages are the file's own, no page of them was ever written, and none can be: whoever reads one next, at
        // whatever time, finds in it what stood there before.
        unsafe { madvise(std::ptr::without_provenance_mut(from), to - from, DONT_NEED) };
    }
}

/// The system does so by itself.
#[cfg(not(target_os = "linux"))]
pub(crate) const fn forget_start() {}

/// Where files are mapped that nobody can write, and of which no page was ever written: by smaps of proc(5).
#[cfg(target_os = "linux")]
fn as_in_file(maps: &str) -> Vec<(usize, usize)> {
    let (mut found, mut last) = (Vec::new(), None);
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if let Some((from, to)) = first.split_once('-') {
            let (mode, inode) = (words.next().unwrap_or_default(), words.nth(2).unwrap_or("0"));
            let place = || Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?));
            last = (matches!(mode, "r--p" | "r-xp") && inode != "0").then(place).flatten();
        } else if first == "Anonymous:" && words.next() == Some("0") {
            found.extend(last.take());
        }
    }
    found
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_as_in_its_file_is_let_go_of() {
        let map =
            |head: &str, own: u32| format!("{head}\nSize: 8 kB\nRss: 8 kB\nAnonymous:        {own} kB\nVmFlags: rd\n");
        let maps = [
            map("1000-2000 r--p 00000000 fe:00 77     /usr/bin/pilotlight", 0),
            map("2000-4000 r-xp 00001000 fe:00 77     /usr/bin/pilotlight", 0),
            map("4000-5000 r--p 00003000 fe:00 77     /usr/bin/pilotlight", 4),
            map("5000-6000 rw-p 00004000 fe:00 77     /usr/bin/pilotlight", 0),
            map("6000-7000 r--p 00000000 00:00 0      [vvar]", 0),
            map("7000-8000 r--s 00000000 fe:00 78     /var/cache/shared", 0),
            map("8000-9000 r-xp 00000000 fe:00 79     /lib/a library", 0),
        ];
        assert_eq!(as_in_file(&maps.concat()), [(0x1000, 0x2000), (0x2000, 0x4000), (0x8000, 0x9000)]);
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let here = only_what_is_as_in_its_file_is_let_go_of as fn() as usize;
        assert!(as_in_file(&maps).iter().any(|(from, to)| (*from..*to).contains(&here)), "{maps}");
        forget_start();
    }
}
