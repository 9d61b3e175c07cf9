//! Processes: what the operating system knows about them, and signals to them.
//!
//! - [`read`]: whether a process exists, when it started, which program it runs; [`executable`] and [`arguments`].
//! - [`ancestors`]: the processes that it descends from.
//! - `lineage`: the same with what the kernel keeps of each, to judge where a process comes from (Linux).
//! - [`cpu_of_descendants`]: the CPU time of the processes below it; two samples show whether they are busy.
//! - [`connections`](fn@connections): the connections that it has opened, and what arrived on each.
//! - [`listening`]: the loopback addresses on which it accepts connections.
//! - [`terminal_of`]: its controlling terminal; `last_read`: when something was last typed there.
//! - [`Exits`]: reports the end of a process, without polling.
//! - [`Handle`]: signals a process, and never another one that has its id by then. Nothing else in Pilotlight signals a
//!   process that Pilotlight did not start.
//!
//! Linux reads `/proc` directly, which takes microseconds. macOS and Windows use `sysinfo`, which lists every process
//! to find one and takes milliseconds.
//!
//! Nothing here reads the wall clock. An id may be reused between two calls, so to miss no exit watch a process first
//! ([`Exits::watch`]) and read it afterwards.

mod ancestry;
pub mod connections;
#[cfg(target_os = "linux")]
mod container;
mod cpu;
#[cfg(target_os = "linux")]
mod diag;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod exits;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
pub mod lineage;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod locks;
#[cfg(target_os = "linux")]
mod own_logins;
#[cfg(target_os = "linux")]
mod pidfd;
mod ports;
mod reading;
mod scripts;
mod signal;
mod terminal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod tie;

use pilotlight_core::time::Time;

#[cfg(not(target_os = "linux"))]
use elsewhere as platform;
#[cfg(target_os = "linux")]
use linux as platform;

pub use ancestry::ancestors;
pub use ancestry::birth_of;
pub use connections::connections;
#[cfg(target_os = "linux")]
pub use container::{Place, is_as_free, place_of, sees_same};
pub use cpu::CpuSample;
pub use exits::Exits;
#[cfg(target_os = "linux")]
pub use files::open_files;
#[cfg(target_os = "linux")]
pub use lineage::{group_of, lineage};
#[cfg(target_os = "linux")]
pub use linux::{command_line, runs_our_program};
#[cfg(target_os = "linux")]
pub use locks::lock_holder;
#[cfg(target_os = "linux")]
pub use own_logins::has_ssh_to_itself;
pub use platform::is_of_our_user;
pub use platform::{
    arguments, cpu_of_descendants, executable, folder_of, is_ending, is_inside_container, is_started_with, is_stopped,
    read, thread_times,
};
#[cfg(target_os = "linux")]
pub use platform::{
    births, contained, executable_link, has_child_with, inner_id, is_contained, is_own_start, sees_all, start_ticks,
    variables,
};
pub use ports::listening;
#[cfg(target_os = "linux")]
pub use reading::{Birth, ProcessInfo};
pub use reading::{PidStatus, SLACK};
#[cfg(not(target_os = "linux"))]
pub use scripts::with_real_scripts;
pub use signal::Force;
pub use signal::{Expected, Handle};
pub use terminal::last_read;
pub use terminal::terminal_of;
pub use tie::end_with_us;

/// Whether a process is gone for good. `now` is the wall clock.
pub fn is_gone(pid: u32, now: Time) -> bool {
    read(pid, now) == PidStatus::Absent
}
