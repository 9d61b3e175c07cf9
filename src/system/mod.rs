//! The operating system, and no agent: processes, the clock and the timer, signals, places, the small files that we
//! keep, our own log, and what may run short.
//!
//! May import: core.

pub mod clock;
pub mod descriptors;
pub(crate) mod heap;
pub mod identity;
pub mod log;
pub mod paths;
pub mod process;
#[cfg(target_os = "linux")]
pub(crate) mod readiness;
pub(crate) mod refused;
pub mod runtime;
pub mod signals;
pub mod state_file;
pub mod timer;
