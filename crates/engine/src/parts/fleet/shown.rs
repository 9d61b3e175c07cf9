//! What views are shown: the sessions of this machine and those of others, in one list; and which machines are not
//! reached.
//!
//! Sessions of other machines are kept apart from those that the engine holds: nothing that it does with a session can
//! reach one of them.

use super::last_progress::LastProgress;
use pilotlight_agents::reader::Reader;
use pilotlight_core::fleet::{Row, Session};
use pilotlight_core::remote::SessionReport;
use pilotlight_core::session::Key;
use pilotlight_core::session::remote::Unreached;
use pilotlight_core::time::Time;
use pilotlight_system::clock::short_on;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A session as views are shown it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    pub key: &'a Key,
    /// Its row, as all lists show it.
    pub row: &'a Row,
    /// What is known about it.
    pub session: &'a Session,
    /// When something was last heard of it.
    pub last_progress: &'a LastProgress,
    /// What reads it. `None` if it is on another machine.
    pub reader: Option<&'a Reader>,
}

/// A session on another machine.
#[derive(Debug)]
pub(super) struct RemoteEntry {
    pub(super) session: Session,
    /// Its row before its name was made unique.
    pub(super) plain_row: Row,
    pub(super) row: Row,
    pub(super) last_progress: LastProgress,
    /// As its host told it, for our own commands.
    pub(super) report: SessionReport,
}

/// A machine that is not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub host: Arc<str>,
    /// Why it is not reached.
    pub why: Box<str>,
    /// Since when, by the wall clock.
    pub since: Time,
    /// When it is tried again, by the wall clock.
    pub again: Option<Time>,
}

impl Trouble {
    /// The same in words that do not age within a day: `not reached since 14:05, tried again at 14:10`.
    pub fn unreached(&self, now: Time) -> Unreached {
        unreached(self.since, self.again, now)
    }

    /// All of it, on one line.
    pub fn words(&self, now: Time) -> String {
        format!("{} is {}: {}", self.host, self.unreached(now), self.why)
    }
}

/// Since when a machine is not reached and when it is tried again, as it is said now, all by the wall clock.
pub fn unreached(since: Time, again: Option<Time>, now: Time) -> Unreached {
    Unreached { since: short_on(since, now).into(), again: again.map(|at| short_on(at, now).into()) }
}

/// A machine that the settings name although its sessions are listed already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    pub(crate) host: Arc<str>,
    /// Its other name in the settings. `None`: it is this machine.
    pub(crate) other: Option<Arc<str>>,
}

impl Twin {
    /// What it is, alone.
    pub fn in_short(&self) -> String {
        let Self { host, other } = self;
        match other {
            Some(other) => format!("{host} and {other} are one machine"),
            None => format!("{host} is this machine itself"),
        }
    }
}

/// For the user, with what to do about it.
impl fmt::Display for Twin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, host) = (self.in_short(), &self.host);
        write!(f, "{what}, so its sessions are listed twice: `pilotlight host remove {host}` ends that")
    }
}

/// What is on other machines.
#[derive(Debug, Default)]
pub(super) struct RemoteSessions {
    pub(super) entries: BTreeMap<Key, RemoteEntry>,
    pub(super) troubles: Vec<Trouble>,
    pub(super) twins: Vec<Twin>,
}

impl RemoteEntry {
    pub(super) fn shown<'a>(&'a self, key: &'a Key) -> Shown<'a> {
        let Self { row, session, last_progress, .. } = self;
        Shown { key, row, session, last_progress, reader: None }
    }

    /// Its row before its name was made unique.
    pub(super) fn plain_row(&self) -> Row {
        Row { last_progress: self.row.last_progress, ..self.plain_row.clone() }
    }
}
