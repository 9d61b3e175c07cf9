//! The operating system, independent of any agent: processes, clock and timer, signals, paths, small state files, our
//! own log, and limited resources (memory, threads, file descriptors).
//!
//! May import: core.

pub(crate) mod awakening;
pub mod clock;
pub(crate) mod deadline;
pub mod descriptors;
pub(crate) mod file_system;
pub(crate) mod file_times;
pub(crate) mod heap;
pub mod identity;
pub mod log;
pub(crate) mod mounts;
#[cfg(target_os = "linux")]
mod netlink;
pub(crate) mod network;
pub(crate) mod note;
pub(crate) mod packed;
pub mod paths;
pub(crate) mod plain_file;
pub mod process;
#[cfg(target_os = "linux")]
pub(crate) mod readiness;
pub mod runtime;
pub mod signals;
pub mod state_file;
pub mod timer;
pub(crate) mod watcher;
