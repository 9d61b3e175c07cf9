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

use std::io;

#[cfg(not(target_os = "linux"))]
pub(super) use platform::has_ended;

/// What is called with the id of a process that ended.
type Tell = Box<dyn Fn(u32) + Send + Sync>;

/// Tells when a process ends, once for each that is watched.
///
/// Holds one thread on Linux and macOS, waits of the system's thread pool on Windows. Dropping it stops the watching; what
/// is being told at that moment may still arrive.
pub(crate) struct Exits(platform::Waits);

impl Exits {
    /// Starts with nothing to watch. `tell` is called with the id of each watched process that ended, on a thread of its
    /// own: send a message and return. It may call [`watch`](Self::watch).
    ///
    /// # Errors
    /// Where the system has no such events: [`io::ErrorKind::Unsupported`] on Linux before 5.3 (no pidfd), `PermissionDenied`
    /// in a sandbox that forbids them. Owners' ends are then seen by the slow rescan only. Also where file descriptors
    /// or threads have run out.
    pub(crate) fn new(tell: impl Fn(u32) + Send + Sync + 'static) -> io::Result<Self> {
        platform::Waits::new(Box::new(tell)).map(Self)
    }

    /// Watches a process. `Ok(false)` if there is none of that id, or it ended already: nothing will be told of it.
    /// Watching one that is watched changes nothing.
    ///
    /// What is watched is the process that has the id now. To be sure whose end will be told, watch first, then read
    /// the owner: if it is alive then, it is the one watched.
    ///
    /// # Errors
    /// Where file descriptors or handles have run out, but for a reserve, and on Windows for a process that may not be opened.
    pub(crate) fn watch(&self, pid: u32) -> io::Result<bool> {
        if pid == 0 || i32::try_from(pid).is_err() {
            return Ok(false);
        }
        self.0.watch(pid)
    }
}
