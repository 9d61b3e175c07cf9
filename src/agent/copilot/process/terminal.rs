//! The terminal that a process runs in.
//!
//! Linux tells the device by its number, in `/proc/<pid>/stat`; the number of a pseudo-terminal is also its name. macOS has
//! no file for it, and what it would tell a program takes its own library: `ps`, which is part of the system, is asked.
//! Windows has consoles instead, which have no names.

use std::path::PathBuf;

/// The controlling terminal of the process, as a path: `/dev/pts/3`, `/dev/tty2`, on macOS `/dev/ttys003`. `None` where it
/// has none (a server, a tool of a session), where it is not to be found under that name here (a container's), where that
/// cannot be read, and on Windows.
pub fn terminal_of(pid: u32) -> Option<PathBuf> {
    platform(pid)
}

#[cfg(target_os = "linux")]
fn platform(pid: u32) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let (major, minor) = numbers(super::platform::terminal(pid)?);
    let path = name(major, minor)?;
    let device = std::fs::metadata(&path).ok()?.rdev();
    let same = (rustix::fs::major(device), rustix::fs::minor(device)) == (major, minor);
    same.then_some(path)
}

/// Major and minor number of a device, from the number that `stat` tells; proc_pid_stat(5), field 7.
#[cfg(target_os = "linux")]
const fn numbers(device: u32) -> (u32, u32) {
    ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00))
}

/// Where a terminal with these numbers is, by the kernel's list of devices (devices.txt): 136 to 143 are pseudo-terminals,
/// 4 the consoles and, from 64 on, the serial lines.
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_name() {
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
    fn what_does_not_exist_has_no_terminal() {
        assert_eq!(terminal_of(0), None);
        assert_eq!(terminal_of(u32::MAX), None);
    }
}
