//! What is mounted: no file event tells that a file system was put over a folder, or taken away.

use crate::system::readiness::wait_for;
use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

/// Tells when the list of mounts changes. The system says so by an urgent word on its file.
#[derive(Default)]
pub(super) struct Mounts(Option<AsyncFd<Arc<OwnedFd>>>);

impl Mounts {
    /// Waits for a change. Whether there was one: `false` where the system does not tell.
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

/// Whether the system tells.
pub(super) fn are_told() -> bool {
    rustix::fs::access("/proc/self/mountinfo", rustix::fs::Access::READ_OK).is_ok()
}

fn open() -> Option<AsyncFd<Arc<OwnedFd>>> {
    let file = rustix::fs::open("/proc/self/mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    wait_for(Arc::new(file), Interest::PRIORITY).ok()
}
