//! What Pilotlight asks of the operating system: processes, files and their changes, clocks and timers, paths, our own log.
//! It knows no agent, and hides the differences between Linux, macOS and Windows.
//!
//! - [`process`]: what the system knows about a process: when it started, its program, ancestors, open files, ports and
//!   terminal, and when it exits. [`process::Handle`] alone signals a process that we did not start, after it was verified.
//! - [`watcher`]: changes of files as hints, by a [`watcher::WatchPlan`]. Linux is watched by inotify itself, the others
//!   through the `notify` crate.
//! - [`clock::Clock`] alone reads the time; [`timer`] waits for it.
//! - [`plain_file`] alone opens files: a pipe in the place of a file would block for ever.
//! - [`state_file`] replaces small files of ours whole.
//!
//! What may not answer, such as a file system over a network, is known beforehand ([`mounts`]) or given a time
//! ([`deadline`]). What may run short is counted ([`descriptors`], [`heap`]).
//!
//! Begin with `process.rs`; what differs between systems is in the files below it that are named after them.

// Dead code is only reported on Linux, where the tests run. The other systems do not use all that is compiled for them.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]
// What tests write is their own.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod clock;
pub mod clock_jumps;
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
#[cfg(unix)]
pub mod own_socket;
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
