//! The terminal that a process runs in.
//!
//! Linux reports the device's number in `/proc/<pid>/stat`; the number of a pseudo-terminal is also its name. macOS has
//! no such file, and its library call needs unsafe code, so `ps`, which is part of the system, is run. Windows has
//! consoles instead, which have no names.

use pilotlight_core::time::Time;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The path of the process's controlling terminal: `/dev/pts/3`, `/dev/tty2`, on macOS `/dev/ttys003`. `None` if it has
/// none (a server), if no such terminal exists here under that name (a container's), if it cannot be read, and on
/// Windows.
pub fn terminal_of(pid: u32) -> Option<PathBuf> {
    platform(pid)
}

/// When something was last read from a terminal that was typed there, or reported by it. Linux notes only the first read in
/// each eight seconds, as a protection against guessing what is typed by its rhythm.
pub fn last_read(terminal: &Path) -> Option<Time> {
    let since = std::fs::metadata(terminal).ok()?.accessed().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Time(i64::try_from(since.as_millis()).ok()?))
}

#[cfg(target_os = "linux")]
fn platform(pid: u32) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let (major, minor) = numbers(super::linux::terminal(pid)?);
    let path = name(major, minor)?;
    let device = std::fs::metadata(&path).ok()?.rdev();
    let same = (rustix::fs::major(device), rustix::fs::minor(device)) == (major, minor);
    same.then_some(path)
}

/// Major and minor number of the device in field 7 of `stat`; proc_pid_stat(5).
#[cfg(target_os = "linux")]
const fn numbers(device: u32) -> (u32, u32) {
    ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00))
}

/// The path of a terminal with these numbers, by the kernel's list of devices (devices.txt): 136 to 143 are
/// pseudo-terminals, 4 the consoles and, from 64 on, the serial lines.
#[cfg(target_os = "linux")]
fn name(major: u32, minor: u32) -> Option<PathBuf> {
    let name = match (major, minor) {
        (136..=143, _) => format!("/dev/pts/{}", ((major - 136) << 8) + minor),
        (4, 0..64) => format!("/dev/tty{minor}"),
        (4, _) => format!("/dev/ttyS{}", minor - 64),
        _ => return None,
    };
    Some(name.into())
}

#[cfg(target_os = "macos")]
fn platform(pid: u32) -> Option<PathBuf> {
    let output = std::process::Command::new("/bin/ps").args(["-o", "tty=", "-p"]).arg(pid.to_string()).output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?;
    let name = name.trim();
    // `??` for none.
    let known = name.starts_with("tty") && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    known.then(|| PathBuf::from("/dev").join(name))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
const fn platform(_pid: u32) -> Option<PathBuf> {
    None
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_named_by_its_device_numbers() {
        let named = |device| {
            let (major, minor) = numbers(device);
            name(major, minor).map(|path| path.to_string_lossy().into_owned())
        };
        assert_eq!(named(0x8803).as_deref(), Some("/dev/pts/3"));
        assert_eq!(named(0x10_8803).as_deref(), Some("/dev/pts/259"), "the minor number's upper bits");
        assert_eq!(named(0x8903).as_deref(), Some("/dev/pts/259"), "the next major number");
        assert_eq!(named(0x0402).as_deref(), Some("/dev/tty2"));
        assert_eq!(named(0x0441).as_deref(), Some("/dev/ttyS1"));
        assert_eq!(named(0xe401).as_deref(), None);
    }

    #[test]
    fn a_missing_process_has_no_terminal() {
        assert_eq!(terminal_of(0), None);
        assert_eq!(terminal_of(u32::MAX), None);
    }
}
