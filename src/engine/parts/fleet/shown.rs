//! What views are shown: the sessions of this machine and those of others, in one list; and which machines are not
//! reached.
//!
//! Sessions of other machines are kept apart from those that the engine holds: nothing that it does with a session can
//! reach one of them.

use super::last_progress::LastProgress;
use crate::agent::reader::Reader;
use crate::core::far::Account;
use crate::core::fleet::{Row, Session};
use crate::core::session::Key;
use crate::core::time::{Span, Time};
use crate::system::clock::WallClock;
use std::collections::BTreeMap;
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
pub(super) struct FarEntry {
    pub(super) session: Session,
    /// Its row before its name was made unique.
    pub(super) plain_row: Row,
    pub(super) row: Row,
    pub(super) last_progress: LastProgress,
    /// As its host told it, for our own commands.
    pub(super) account: Account,
}

/// A machine that is not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) host: Arc<str>,
    /// Why it is not reached.
    pub(crate) why: Box<str>,
    /// Since when, by the wall clock.
    pub(crate) since: Time,
}

impl Trouble {
    /// Since when, in words that do not age within a day: `14:05`.
    pub(crate) fn since_when(&self, now: Time) -> String {
        let ago = now - self.since;
        if ago >= Span::hours(20) {
            return format!("{ago} ago");
        }
        let minute = WallClock::at(self.since).minute;
        format!("{:02}:{:02}", minute / 60, minute % 60)
    }

    /// All of it, on one line.
    pub(crate) fn words(&self, now: Time) -> String {
        format!("{} is not reached, since {}: {}", self.host, self.since_when(now), self.why)
    }
}

/// What is on other machines.
#[derive(Debug, Default)]
pub(super) struct FarSessions {
    pub(super) entries: BTreeMap<Key, FarEntry>,
    pub(super) troubles: Vec<Trouble>,
}

impl FarEntry {
    pub(super) fn shown<'a>(&'a self, key: &'a Key) -> Shown<'a> {
        let Self { row, session, last_progress, .. } = self;
        Shown { key, row, session, last_progress, reader: None }
    }

    /// Its row before its name was made unique.
    pub(super) fn plain_row(&self) -> Row {
        Row { last_progress: self.row.last_progress, ..self.plain_row.clone() }
    }
}
