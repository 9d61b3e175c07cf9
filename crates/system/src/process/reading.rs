//! What is read about a process.

use std::path::PathBuf;

use pilotlight_core::time::{Span, Time};

/// How far apart the start of a process and the time of a file that it wrote may seem to be. Covers the coarse clock of
/// file times (10 ms), starts in whole seconds (macOS, Windows), and small steps of the wall clock.
pub const SLACK: Span = Span::seconds(2);

/// What the system shows of a process id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PidStatus {
    /// No process has the id (a zombie's, a thread's and a kernel thread's id count as free), or it has ended for good.
    Absent,
    /// A process has the id; nothing more is shown.
    Hidden,
    /// A process, and what can be read about it.
    Process {
        /// When it started, by the wall clock.
        started: Option<Time>,
        /// The path of its executable, or only its file name.
        executable: Option<PathBuf>,
    },
}

/// A process's parent, and the process's own start, to recognize a reused parent id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    /// The id of its parent; 0 if it has none.
    pub(super) parent: u32,
    /// When it started, in the system's unit.
    pub(super) started: u64,
}

/// When a process started, and its parent.
#[cfg(target_os = "linux")]
pub struct Birth {
    /// In clock ticks since boot: identifies a process among those that have had its id.
    pub ticks: u64,
    /// By the wall clock.
    pub at: Time,
    /// The id of its parent.
    pub parent: u32,
}

/// A process, as one of those that another descends from.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its id.
    pub pid: u32,
    /// The id of its parent. 0 if that is outside of our PID namespace, or it has none.
    pub parent: u32,
    /// When it started, by the wall clock.
    pub at: Time,
    /// Its name, as the kernel keeps it.
    pub name: String,
    /// The process that leads its session. 0 if that is outside of our PID namespace.
    pub leader: u32,
    /// Whether it has a controlling terminal.
    pub has_terminal: bool,
    /// Whether what is typed in that terminal goes to its process group.
    pub is_in_foreground: bool,
    /// Whether our user started it. A program that changes to another user, as `sudo` does, is still ours.
    pub is_ours: bool,
}
