//! Tells when a process ends.
//!
//! An owner's end is what turns `working` into `crashed`, so it must be known at once, and without a look every second
//! at each of twenty processes. Every system has an event for it that works for processes that are not our children: a
//! pidfd on Linux, a kqueue's process filter on macOS, a wait on the process's handle on Windows. While nothing ends,
//! nothing here wakes.

#[cfg(target_os = "linux")]
#[path = "exits/linux.rs"]
mod platform;
#[cfg(target_os = "macos")]
#[path = "exits/macos.rs"]
mod platform;
#[cfg(windows)]
#[path = "exits/windows.rs"]
mod platform;

#[cfg(not(target_os = "linux"))]
#[path = "exits/told.rs"]
mod told;

use std::io;

#[cfg(not(target_os = "linux"))]
pub(super) use platform::has_ended;

#[cfg(target_os = "linux")]
use platform::Waits;
#[cfg(not(target_os = "linux"))]
use told::Waits;

/// What is called with the id of a process that ended.
#[cfg(not(target_os = "linux"))]
type Tell = Box<dyn Fn(u32) + Send + Sync>;

/// Tells when a process ends, once for each that is watched.
///
/// Holds one thread on macOS, waits of the system's thread pool on Windows, and on Linux none.
pub(crate) struct Exits(Waits);

impl Exits {
    /// Starts with nothing to watch.
    ///
    /// # Errors
    /// Where the system has no such events: [`io::ErrorKind::Unsupported`] on Linux before 5.3 (no pidfd), `PermissionDenied`
    /// in a sandbox that forbids them. Owners' ends are then seen by the slow rescan only. Also where file descriptors
    /// or threads have run out.
    pub(crate) fn new() -> io::Result<Self> {
        Waits::new().map(Self)
    }

    /// Watches a process. `Ok(false)` if there is none of that id, or it ended already: nothing will be told of it.
    /// Watching one that is watched changes nothing.
    ///
    /// What is watched is the process that has the id now. To be sure whose end will be told, watch first, then read
    /// the owner: if it is alive then, it is the one watched.
    ///
    /// # Errors
    /// Where file descriptors or handles have run out, but for a reserve, and on Windows for a process that may not be opened.
    pub(crate) fn watch(&mut self, pid: u32) -> io::Result<bool> {
        if pid == 0 || i32::try_from(pid).is_err() {
            return Ok(false);
        }
        self.0.watch(pid)
    }

    /// The next of the watched processes that ends. Nothing is lost where this is dropped. To be awaited in one runtime alone.
    ///
    /// # Errors
    /// Where the system refuses to wait: it will the next time, too.
    pub(crate) async fn ended(&mut self) -> io::Result<u32> {
        self.0.ended().await
    }
}
