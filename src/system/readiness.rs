//! Descriptors of ours among what the runtime waits for.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Has the runtime that this is called in wait for a descriptor as well.
#[expect(deprecated, reason = "what replaces it is unsafe, for types whose descriptor may change: this one cannot")]
pub(crate) fn wait_for(file: Arc<OwnedFd>, interest: Interest) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
    AsyncFd::with_interest(file, interest)
}
