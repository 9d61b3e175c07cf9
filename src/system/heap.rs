//! Returns memory to the system.
//!
//! The allocator keeps freed memory for the next peak, such as a startup or a storm of events, which may be days away.
//! So it is asked to return it after much was read, and with each rescan. This takes some 100 us and wakes nobody.
//!
//! At startup, the dynamic linker reads all relocations of the program file, and each page fault also maps the
//! surrounding code. So the pages of the program file and of the C library are released at the same time. Code that is
//! still in use is mapped again when it runs, which takes some 100 us in total.
#![cfg_attr(target_os = "linux", allow(unsafe_code))]

/// Returns unused memory to the system, as far as the platform allows.
pub(crate) fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
    #[cfg(target_os = "linux")]
    program::release();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    unsafe extern "C" {
        /// malloc_trim(3).
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: it accepts any number, may be called on any thread, and leaves memory that is in use alone.
    unsafe { malloc_trim(0) };
}

#[cfg(target_os = "linux")]
mod program {
    use std::ffi::{c_int, c_void};
    use std::sync::OnceLock;

    /// Releases the pages of the program file and of the C library. Both stay mapped until the process ends.
    pub(super) fn release() {
        const DONT_NEED: c_int = 4;
        unsafe extern "C" {
            /// madvise(2).
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        static RANGES: OnceLock<Vec<(usize, usize)>> = OnceLock::new();
        // If the maps cannot be read, nothing is released.
        let find = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
            unmodified(&maps, &[release as fn() as usize, madvise as *const () as usize])
        };
        for (from, to) in RANGES.get_or_init(find) {
            // SAFETY: these are mappings of those two files until the process ends. No page of them was ever written or
            // is writable, so the next access reads the same bytes from the file.
            unsafe { madvise(std::ptr::without_provenance_mut(*from), to - from, DONT_NEED) };
        }
    }

    /// The address ranges of read-only mappings without modified pages, of the files that contain these code addresses.
    /// `maps` is `/proc/self/smaps`; proc(5).
    pub(super) fn unmodified(maps: &str, code: &[usize]) -> Vec<(usize, usize)> {
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
    fn only_unmodified_pages_of_the_files_are_released() {
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
        assert_eq!(program::unmodified(&maps.concat(), &[0x2345]), program);
        assert_eq!(
            program::unmodified(&maps.concat(), &[0x2345, 0x8000]),
            [&program[..], &[(0x8000, 0x9000)]].concat()
        );
        assert_eq!(program::unmodified(&maps.concat(), &[0x9999]), []);
        // The code of this process survives a release.
        let own = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let here = only_unmodified_pages_of_the_files_are_released as fn() as usize;
        assert!(program::unmodified(&own, &[here]).iter().any(|(from, to)| (*from..*to).contains(&here)), "{own}");
        release();
    }
}
