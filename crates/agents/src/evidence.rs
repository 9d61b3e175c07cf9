//! What shows that a process owns a session: verified before that process is signalled.

use pilotlight_core::time::Time;
use pilotlight_system::process::Force;
use std::fmt;

/// What shows that a process owns a session.
pub trait Evidence: fmt::Debug + Send + Sync {
    /// The process.
    fn pid(&self) -> u32;

    /// Whether its agent ends cleanly by this signal, or has an end that no other signal makes cleaner.
    fn ends_by(&self, _force: Force) -> bool {
        true
    }

    /// Opens the process, and verifies that it is the session's owner and its agent. `names`: further programs that count as
    /// the agent. A `confirmed` order is the user's answer to a question of ours.
    ///
    /// # Errors
    /// Any other process is refused, with the reason for the user.
    fn open(&self, names: &[String], now: Time, confirmed: bool) -> Result<Box<dyn Target>, String>;
}

/// An owner that can be signalled.
pub trait Target: fmt::Debug + Send + Sync {
    /// Signals the process if it has not ended and still is the session's owner. Does not wait for it to end. Returns at
    /// once, on Windows within 0.2 s.
    ///
    /// # Errors
    /// It has ended, is the owner no longer, or the system forbids the signal: the reason, for the user.
    fn signal(&self, force: Force) -> Result<(), String>;

    /// Whether the process has ended.
    fn has_ended(&self) -> bool;
}
