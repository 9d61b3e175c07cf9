//! Whether what stands somewhere is what stood there before.

use std::fs::Metadata;
#[cfg(not(unix))]
use std::time::UNIX_EPOCH;

/// What tells a file or a folder from another of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    /// Of what was looked at.
    #[cfg(unix)]
    pub(crate) fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(meta.dev(), meta.ino())
    }

    /// Without an inode, the time of creation tells.
    #[cfg(not(unix))]
    pub(crate) fn of(meta: &Metadata) -> Self {
        let created = meta.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Self(created.map_or(0, |age| age.as_secs()), created.map_or(0, |age| u64::from(age.subsec_nanos())))
    }
}
