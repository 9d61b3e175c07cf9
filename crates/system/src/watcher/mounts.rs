//! Detects mounts and unmounts, which cause no file events.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use crate::readiness::wait_for;
use rustix::fs::{Mode, OFlags};
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

const LIST: &str = "/proc/self/mountinfo";

/// Waits for changes of the list of mounts. The kernel signals a change as priority data (`POLLPRI`) on the list's
/// file.
pub(super) enum Mounts {
    /// Nobody has waited yet. The list as it was when it was first read; `None` where the system has none.
    Listed(Option<Vec<u8>>),
    Watched(AsyncFd<Arc<OwnedFd>>),
}

impl Mounts {
    /// Reports changes from now on.
    pub(super) fn list() -> Self {
        Self::Listed(fs::read(LIST).ok())
    }

    /// Whether the system reports changes, as far as is known.
    pub(super) const fn are_reported(&self) -> bool {
        !matches!(self, Self::Listed(None))
    }

    /// Waits for a change. Returns `false` where the system does not report changes.
    pub(super) async fn changed(&mut self) -> bool {
        if let Self::Listed(before) = self {
            let before = std::mem::take(before);
            let Some(watched) = before.as_ref().and_then(|_| open()) else { return false };
            *self = Self::Watched(watched);
            // A change from before now is not signalled: as epoll registers a file, it takes the signal.
            if fs::read(LIST).ok() != before {
                return true;
            }
        }
        let Self::Watched(watched) = self else { return false };
        match watched.ready(Interest::PRIORITY).await {
            Ok(mut ready) => {
                ready.clear_ready_matching(Ready::ALL);
                true
            }
            Err(_) => false,
        }
    }
}

fn open() -> Option<AsyncFd<Arc<OwnedFd>>> {
    let file = rustix::fs::open(LIST, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    wait_for(Arc::new(file), Interest::PRIORITY).ok()
}
