//! Who runs a session: what is known of the process that its lock names, or that has it open without a lock.

use super::time::Time;

/// Why nothing is done with a session whose lock is somebody else's: see [`Owner::Unheld`].
pub(crate) const UNHELD: &str = "the process that its lock names does not hold it";

/// What shows that a live owner has the session open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// It has made its lock just now, and does not hold the session yet. It counts as the owner for a moment, and nothing is done on
    /// the strength of that.
    Soon,
    /// Its lock, its age and its program, and no more: an older Copilot, or a system that does not tell.
    #[default]
    Untold,
    /// The system shows that the process has the lock of this very folder.
    Seen,
}

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
    /// A live Copilot has loaded the session, and was not prompted since: Copilot makes its lock with the first prompt.
    Opened {
        /// That process's id.
        pid: u32,
        /// When it started, by the wall clock.
        started: Option<Time>,
    },
    /// The lock's process lives and is as old as the lock, but it has not this session open: the lock was copied along with
    /// its folder, or made by somebody else. What runs the session, if anything does, is not known.
    Unheld {
        /// The process id in the lock's name.
        pid: u32,
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
    /// The process id in the lock's name, or that of the process that has the session open.
    pub(crate) fn pid(&self) -> Option<u32> {
        match *self {
            Self::Never => None,
            Self::Alive { pid, .. }
            | Self::Opened { pid, .. }
            | Self::Unheld { pid }
            | Self::Gone { pid, .. }
            | Self::Unknown { pid } => Some(pid),
        }
    }

    /// The id of the live process that surely has the session loaded.
    pub(crate) fn live(&self) -> Option<u32> {
        match *self {
            Self::Alive { pid, .. } | Self::Opened { pid, .. } => Some(pid),
            Self::Never | Self::Unheld { .. } | Self::Gone { .. } | Self::Unknown { .. } => None,
        }
    }
}
