//! Registers descriptors of ours with the async runtime.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the current runtime.
#[expect(deprecated, reason = "the replacement is unsafe, for types whose descriptor may change; this one cannot")]
pub(crate) fn wait_for(file: Arc<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(file, interest)
}
