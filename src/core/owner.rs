//! Who runs a session: what is known of the process that its lock names.

use super::time::Time;

/// The state of the process that owns a session.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Owner {
    /// No lock was ever seen: who runs the session is not known.
    #[default]
    Never,
    /// The lock's process lives, is as old as the lock, and runs Copilot.
    Alive {
        /// The process id in the lock's name.
        pid: u32,
        /// When the process started, by the wall clock.
        started: Option<Time>,
    },
    /// The lock's process does not exist, or provably is another program.
    Gone {
        /// The process id in the lock's name.
        pid: u32,
        /// When it went, by the wall clock, where we saw it go.
        at: Option<Time>,
    },
    /// The lock's process lives, but what it is cannot be read (another user, a container). Never taken for gone, never
    /// signalled.
    Unknown {
        /// The process id in the lock's name.
        pid: u32,
    },
}

impl Owner {
    /// The process id in the lock's name, where there is a lock.
    pub fn pid(&self) -> Option<u32> {
        match *self {
            Self::Never => None,
            Self::Alive { pid, .. } | Self::Gone { pid, .. } | Self::Unknown { pid } => Some(pid),
        }
    }
}
