//! What was needed once goes back to the system.
//!
//! The allocator keeps what a start or a storm needed, for the next one, which may be days away. It is asked to let go of it when
//! much was looked at, and with the rescan: that takes it some 100 us, and wakes nobody.
//!
//! Of the program file, the start reads the relocations whole, and with each piece of code that runs what stands around it is mapped
//! as well. So the file is let go of at the same time, and the C library's with it: what runs on is mapped again as soon as it runs,
//! for some 100 us in all, and the rest is the system's.
#![cfg_attr(target_os = "linux", allow(unsafe_code))]

/// Gives back what nothing stands on, where that can be done.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
    #[cfg(target_os = "linux")]
    program::let_go();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    unsafe extern "C" {
        /// malloc_trim(3).
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: it takes any number, may be called by any thread, and touches nothing that is in use.
    unsafe { malloc_trim(0) };
}

#[cfg(target_os = "linux")]
mod program {
    use std::ffi::{c_int, c_void};
    use std::sync::OnceLock;

    /// Lets go of what was read of the program file and of the C library, which stay mapped until the process ends.
    pub(super) fn let_go() {
        const DONT_NEED: c_int = 4;
        unsafe extern "C" {
            /// madvise(2).
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        static PLACES: OnceLock<Vec<(usize, usize)>> = OnceLock::new();
        // Where it cannot be read, everything stays.
        let find = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
            as_in_file(&maps, &[let_go as fn() as usize, madvise as *const () as usize])
        };
        for (from, to) in PLACES.get_or_init(find) {
            // SAFETY: these are pages of those two files, and stay so until the process ends. None of them was ever written, and none
            // can be: whoever reads one next, at whatever time, finds in it what stood there before.
            unsafe { madvise(std::ptr::without_provenance_mut(*from), to - from, DONT_NEED) };
        }
    }

    /// Where the files that have code at these addresses are mapped so that nobody can write them, and nobody ever did: by smaps
    /// of proc(5).
    pub(super) fn as_in_file(maps: &str, code: &[usize]) -> Vec<(usize, usize)> {
        let (mut found, mut last, mut files) = (Vec::new(), None, Vec::new());
        for line in maps.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(first) = words.next() else { continue };
            if let Some((from, to)) = first.split_once('-') {
                let (mode, _, device, inode) = (words.next(), words.next(), words.next(), words.next());
                let number = |hex| usize::from_str_radix(hex, 16).unwrap_or_default();
                let (place, file) = ((number(from), number(to)), (device, inode));
                if code.iter().any(|code| (place.0..place.1).contains(code)) {
                    files.push(file);
                }
                last = matches!(mode, Some("r--p" | "r-xp")).then_some((file, place));
            } else if first == "Anonymous:" && words.next() == Some("0") {
                found.extend(last.take());
            }
        }
        found.into_iter().filter(|(file, _)| files.contains(file)).map(|(_, place)| place).collect()
    }
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
            map("8000-9000 r-xp 00000000 fe:00 79     /lib/a library", 0),
        ];
        let program = [(0x1000, 0x2000), (0x2000, 0x4000)];
        assert_eq!(program::as_in_file(&maps.concat(), &[0x2345]), program);
        assert_eq!(
            program::as_in_file(&maps.concat(), &[0x2345, 0x8000]),
            [&program[..], &[(0x8000, 0x9000)]].concat()
        );
        assert_eq!(program::as_in_file(&maps.concat(), &[0x9999]), []);
        // Its own code goes on.
        let own = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let here = only_what_is_as_in_its_file_is_let_go_of as fn() as usize;
        assert!(program::as_in_file(&own, &[here]).iter().any(|(from, to)| (*from..*to).contains(&here)), "{own}");
        give_back();
    }
}
