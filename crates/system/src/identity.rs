//! The identity of a file, to detect that it was replaced; and of this machine with its user, to know it again under another
//! name.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use std::fs::Metadata;
#[cfg(not(unix))]
use std::time::UNIX_EPOCH;

/// Distinguishes a file or folder from another one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

impl Identity {
    /// The device and the inode.
    #[cfg(unix)]
    pub fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(meta.dev(), meta.ino())
    }

    /// The device and the inode.
    #[cfg(target_os = "linux")]
    pub(super) const fn parts(self) -> (u64, u64) {
        (self.0, self.1)
    }

    /// The time of creation, as there is no inode.
    #[cfg(not(unix))]
    pub fn of(meta: &Metadata) -> Self {
        let created = meta.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Self(created.map_or(0, |age| age.as_secs()), created.map_or(0, |age| u64::from(age.subsec_nanos())))
    }
}

/// By which this machine and its user are known again under another name: the same home, of the same processes, since the
/// same start of the system. A home that two machines share, and a container, are told apart. `None` if the system does not
/// tell. Nothing can be learnt from it, and nothing depends on its being true.
#[cfg(target_os = "linux")]
pub fn own_machine() -> Option<Box<str>> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let processes = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let (device, inode) = Identity::of(&std::fs::metadata(super::paths::user_home()?).ok()?).parts();
    let told = format!("{boot} {} {device} {inode} {}", processes.display(), rustix::process::geteuid().as_raw());
    Some(format!("{:016x}", pilotlight_core::hash::hash(told.as_bytes())).into())
}

/// Elsewhere, nothing is known that tells two machines apart for certain.
#[cfg(not(target_os = "linux"))]
pub const fn own_machine() -> Option<Box<str>> {
    None
}
