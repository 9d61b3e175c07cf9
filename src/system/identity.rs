//! The identity of a file, to detect that it was replaced.

use std::fs::Metadata;
#[cfg(not(unix))]
use std::time::UNIX_EPOCH;

/// Distinguishes a file or folder from another one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    /// The device and the inode.
    #[cfg(unix)]
    pub(crate) fn of(meta: &Metadata) -> Self {
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
    pub(crate) fn of(meta: &Metadata) -> Self {
        let created = meta.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Self(created.map_or(0, |age| age.as_secs()), created.map_or(0, |age| u64::from(age.subsec_nanos())))
    }
}
