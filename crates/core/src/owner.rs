//! A session's owner: the process that its lock names, or that has it open without a lock.

use super::agent::Agent;
use super::facts::Facts;
use super::time::Time;
use serde::{Deserialize, Serialize};

/// The reason for leaving a session alone whose lock is not its process's: see [`Owner::Unheld`].
pub const UNHELD: &str = "its lock names a process that does not have it open";

/// How well it is established that a live owner has the session open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HoldProof {
    /// It has only just created its lock, and does not hold the session yet; or what says who runs it is being written. It
    /// counts as the owner for a moment, but nothing is done on that basis.
    Pending,
    /// Only by the lock and the process's age and program: an older Copilot, or a system that cannot show who holds a
    /// lock.
    #[default]
    Unverified,
    /// The system shows that the process holds the lock of this very folder.
    Verified,
}

/// The state of the process that owns a session.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Owner {
    /// No lock was ever seen, so the owner is unknown.
    #[default]
    Never,
    /// The lock's process lives, is as old as the lock, and runs Copilot.
    Alive {
        /// The process id in the lock's name.
        pid: u32,
        /// When the process started, by the wall clock.
        started: Option<Time>,
    },
    /// A live process has loaded the session, and has no lock: Copilot creates one with the first prompt, and another
    /// terminal may remove it.
    Opened {
        /// The process id.
        pid: u32,
        /// When it loaded the session, by the wall clock; where that is not known, when the process started.
        started: Option<Time>,
    },
    /// The lock's process lives and is as old as the lock, but does not have this session open: the lock was copied
    /// with its folder, or made by another program. The session's actual owner, if any, is unknown.
    Unheld {
        /// The process id in the lock's name.
        pid: u32,
    },
    /// The lock's process does not exist, or provably is another program; or nobody holds the lock that it left.
    Gone {
        /// The process id in the lock's name; [`Owner::UNNAMED`] if the lock names none.
        pid: u32,
        /// When it ended, by the wall clock, if we saw that.
        at: Option<Time>,
    },
    /// The lock's process lives but cannot be inspected (another user's, or in a container). It never counts as gone,
    /// and is never signalled.
    Unknown {
        /// The process id in the lock's name; [`Owner::UNNAMED`] if nothing names it.
        pid: u32,
    },
    /// Nothing claims the session, and yet a process may run it. It never counts as gone, and is never signalled.
    Doubtful {
        /// The process that may run it; [`Owner::UNNAMED`] if none is known.
        pid: u32,
        /// What suggests that.
        why: Doubt,
    },
}

/// What suggests that a process runs a session although nothing claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Doubt {
    /// Its log was written just now, after whoever is known to have run it ended.
    Growing,
    /// A process of its agent had it open, and does not say what it closes.
    HadOpen,
    /// A process of its agent has its log open.
    HasOpen,
    /// A process of its agent works in its folder, above or below it, and does not say what it opens.
    Mute,
    /// A process of its agent names it on its command line, and shows no session of its own.
    Named,
    /// A process of its agent works in its folder since before its log was last written, and shows no session of its own.
    WorksThere,
}

/// The words for a process of this id, which may be [`Owner::UNNAMED`].
pub(crate) fn process(pid: u32) -> String {
    if pid == Owner::UNNAMED { "a process".to_owned() } else { format!("process {pid}") }
}

/// The words for why a session may be run although nothing claims it.
pub(crate) fn doubtful(pid: u32, why: Doubt) -> String {
    let process = process(pid);
    match why {
        Doubt::Growing => "an unknown process just wrote its log".to_owned(),
        Doubt::HadOpen => format!("{process} may still have it open"),
        Doubt::HasOpen => format!("{process} has its log open"),
        Doubt::Mute => format!("{process} may have it open"),
        Doubt::Named => format!("{process} names it on its command line"),
        Doubt::WorksThere => format!("{process} works in its folder"),
    }
}

/// The words about a process that does not show what it has open.
pub fn may_have_it_open(pid: u32, agent: &Agent) -> String {
    format!("process {pid}, a {agent} that does not log what it opens, may have it open")
}

impl Owner {
    /// Stands for the id of a process that nothing names: it is gone, or out of sight. No system has a process 0.
    pub const UNNAMED: u32 = 0;

    /// The id of the process that the lock names, or that has the session open.
    pub fn pid(&self) -> Option<u32> {
        match *self {
            Self::Never
            | Self::Gone { pid: Self::UNNAMED, .. }
            | Self::Unknown { pid: Self::UNNAMED }
            | Self::Doubtful { pid: Self::UNNAMED, .. } => None,
            Self::Alive { pid, .. }
            | Self::Opened { pid, .. }
            | Self::Unheld { pid }
            | Self::Gone { pid, .. }
            | Self::Unknown { pid }
            | Self::Doubtful { pid, .. } => Some(pid),
        }
    }

    /// Whether it has only loaded the session, of which these are the facts: it was given no prompt since.
    pub(crate) fn is_unprompted(&self, facts: &Facts) -> bool {
        let Self::Opened { started, .. } = *self else { return false };
        facts.marks.prompt.is_none_or(|prompt| started.is_none_or(|since| prompt.at <= since))
    }

    /// The id of the live process that is known to have the session loaded.
    pub fn live(&self) -> Option<u32> {
        match *self {
            Self::Alive { pid, .. } | Self::Opened { pid, .. } => Some(pid),
            Self::Never | Self::Unheld { .. } | Self::Gone { .. } | Self::Unknown { .. } | Self::Doubtful { .. } => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_has_the_session_loaded_is_live() {
        for (owner, pid, live) in [
            (Owner::Never, None, None),
            (Owner::Alive { pid: 7, started: None }, Some(7), Some(7)),
            (Owner::Opened { pid: 7, started: None }, Some(7), Some(7)),
            (Owner::Unheld { pid: 7 }, Some(7), None),
            (Owner::Gone { pid: 7, at: None }, Some(7), None),
            (Owner::Unknown { pid: 7 }, Some(7), None),
            (Owner::Doubtful { pid: 7, why: Doubt::HasOpen }, Some(7), None),
            (Owner::Doubtful { pid: Owner::UNNAMED, why: Doubt::Growing }, None, None),
        ] {
            assert_eq!((owner.pid(), owner.live()), (pid, live), "{owner:?}");
        }
    }

    #[test]
    fn a_process_is_called_by_its_id_if_it_has_one() {
        assert_eq!((process(7), process(Owner::UNNAMED)), ("process 7".into(), "a process".into()));
        let words = may_have_it_open(7, &Agent::reported("Robot").unwrap());
        assert!(words.starts_with("process 7, a Robot that"), "{words}");
    }
}
