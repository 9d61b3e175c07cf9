//! What is mounted: no file event tells that a file system was put over a folder, or taken away.

use rustix::fs::{Mode, OFlags};
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

/// Tells when the list of mounts changes. The system says so by an urgent word on its file.
#[derive(Default)]
pub(super) struct Mounts(Option<AsyncFd<OwnedFd>>);

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

#[expect(deprecated, reason = "what replaces it is unsafe, for types whose descriptor may change: this one cannot")]
fn open() -> Option<AsyncFd<OwnedFd>> {
    let file = rustix::fs::open("/proc/self/mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    AsyncFd::with_interest(file, Interest::PRIORITY).ok()
}
