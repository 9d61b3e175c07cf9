//! Hooks that wait for an answer: `pilotlight hook AGENT`, which an agent starts when it asks its user something, and which
//! hands that to the tray.
//!
//! What is the same about them, whichever agent it is: `process` is what each such process does, `wire` the protocol between
//! it and the tray, `listener` the tray's socket, `source` the hooks that are listened for, `memory` what may be kept of
//! them, `left` why some were let go, and `carry` answers them. What an
//! agent asks, how an answer reads for it, and who decided, is in its own folder.

#[cfg(unix)]
pub(crate) mod carry;
#[cfg(unix)]
pub(crate) mod left;
#[cfg(unix)]
pub(crate) mod listener;
#[cfg(unix)]
pub(crate) mod memory;
#[cfg(unix)]
pub(crate) mod process;
#[cfg(unix)]
pub(crate) mod source;
#[cfg(unix)]
pub(crate) mod wire;

#[cfg(unix)]
pub use memory::Memory;
#[cfg(unix)]
pub use source::HookConfig;

/// The command of this program that agents start as their hook. Its one argument is the agent's name.
pub const COMMAND: &str = "hook";
