//! Reports the end of a process.
//!
//! An owner's end is what turns `working` into `crashed`, so it must be noticed at once, and without checking each of
//! twenty processes every second. Every system has an event for it that works for processes that are not our children:
//! a pidfd on Linux, a kqueue process filter on macOS, a wait on the process's handle on Windows. Nothing here wakes
//! while no process ends.

#[cfg(not(target_os = "linux"))]
mod channel;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

use std::io;

#[cfg(target_os = "macos")]
pub(super) use macos::has_ended;
#[cfg(windows)]
pub(super) use windows::has_ended;

#[cfg(not(target_os = "linux"))]
use channel::Waits;
#[cfg(target_os = "linux")]
use linux::Waits;

/// Reports the end of each watched process, once.
///
/// Holds one thread on macOS, waits of the system's thread pool on Windows, and no thread on Linux.
pub struct Exits(Waits);

impl Exits {
    /// Watches no process yet.
    ///
    /// # Errors
    /// The system has no such events: [`io::ErrorKind::Unsupported`] on Linux before 5.3 (no pidfd), `PermissionDenied`
    /// in a sandbox that forbids them. Or file descriptors or threads have run out.
    pub fn new() -> io::Result<Self> {
        Waits::new().map(Self)
    }

    /// Watches a process. `Ok(false)` if no process has the id or it has ended already: its end will not be reported.
    /// Watching a watched process again changes nothing.
    ///
    /// The process that has the id now is watched. To be sure which one that is, watch first and read the process
    /// afterwards: if it is alive then, it is the watched one.
    ///
    /// # Errors
    /// File descriptors or handles have run out, except for a reserve; or, on Windows, the process may not be opened.
    pub fn watch(&mut self, pid: u32) -> io::Result<bool> {
        if pid == 0 || i32::try_from(pid).is_err() {
            return Ok(false);
        }
        self.0.watch(pid)
    }

    /// Waits for the next watched process to end, and returns its id. Cancel safe. Always await it in the same runtime.
    ///
    /// # Errors
    /// The system refuses to wait, and will again next time.
    pub async fn ended(&mut self) -> io::Result<u32> {
        self.0.ended().await
    }
}
