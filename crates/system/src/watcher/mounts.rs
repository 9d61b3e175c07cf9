//! Detects mounts and unmounts, which cause no file events.

use crate::readiness::wait_for;
use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

/// Waits for changes of the list of mounts. The kernel signals a change as priority data (`POLLPRI`) on the list's
/// file.
#[derive(Default)]
pub(super) struct Mounts(Option<AsyncFd<Arc<OwnedFd>>>);

impl Mounts {
    /// Waits for a change. Returns `false` where the system does not report changes.
    pub(super) async fn changed(&mut self) -> bool {
        let mounts = match &mut self.0 {
            Some(mounts) => mounts,
            none => match open() {
                Some(mounts) => none.insert(mounts),
                None => return false,
            },
        };
        match mounts.ready(Interest::PRIORITY).await {
            Ok(mut ready) => {
                ready.clear_ready_matching(Ready::ALL);
                true
            }
            Err(_) => false,
        }
    }
}

/// Whether the system reports changes.
pub(super) fn are_supported() -> bool {
    rustix::fs::access("/proc/self/mountinfo", rustix::fs::Access::READ_OK).is_ok()
}

fn open() -> Option<AsyncFd<Arc<OwnedFd>>> {
    let file = rustix::fs::open("/proc/self/mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    wait_for(Arc::new(file), Interest::PRIORITY).ok()
}
