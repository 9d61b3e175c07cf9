//! What shows that a process owns a session: verified before that process is signalled.

use super::copilot::owner::Lock;
use super::copilot::target::Target;
use crate::core::time::Time;
use std::path::PathBuf;

/// What shows that a process owns a session.
#[derive(Clone, Debug)]
pub(crate) enum Evidence {
    /// A lock in the session's folder.
    Copilot { lock: Lock, folder: PathBuf },
}

impl Evidence {
    /// The process.
    pub(crate) const fn pid(&self) -> u32 {
        match self {
            Self::Copilot { lock, .. } => lock.pid,
        }
    }

    /// Holds the process, verified as the session's owner, so that it can be signalled. `names` are further programs
    /// that count as the agent, `now` is the wall clock; `confirmed`: a person has confirmed that this session is to be
    /// ended.
    ///
    /// # Errors
    /// Any other process is refused, with the reason for the user.
    pub(crate) fn open(&self, names: &[String], now: Time, confirmed: bool) -> Result<Target, String> {
        match self {
            Self::Copilot { lock, folder } => Target::open(*lock, folder, names, now, confirmed),
        }
    }
}
