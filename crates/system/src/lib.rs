//! The operating system, independent of any agent: processes, clock and timer, signals, paths, small state files, our
//! own log, and limited resources (memory, threads, file descriptors).
//!
//! May import: core.

// What tests write is their own.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod awakening;
pub mod clock;
pub mod deadline;
pub mod descriptors;
pub mod file_system;
pub mod file_times;
pub mod heap;
pub mod identity;
pub mod log;
pub mod mounts;
#[cfg(target_os = "linux")]
mod netlink;
pub mod network;
pub mod note;
pub mod packed;
pub mod paths;
pub mod plain_file;
pub mod process;
#[cfg(target_os = "linux")]
pub(crate) mod readiness;
pub mod runtime;
pub mod signals;
pub mod state_file;
pub mod timer;
pub mod watcher;
