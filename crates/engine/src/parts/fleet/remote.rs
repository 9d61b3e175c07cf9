//! The sessions of other machines in the fleet, and which machines are not reached. Nothing that the engine does with a
//! session can reach one of these: they are kept apart from those that it holds.

use super::last_progress::LastProgress;
use super::{Fleet, Shown};
use pilotlight_core::fleet::{Row, Session};
use pilotlight_core::remote::{Clocks, SessionReport, Unreached};
use pilotlight_core::session::Key;
use pilotlight_core::time::{Moment, Time};
use pilotlight_system::clock::short_on;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A session on another machine.
#[derive(Debug)]
pub(super) struct RemoteEntry {
    session: Session,
    /// Its row before its name was made unique.
    plain_row: Row,
    pub(super) row: Row,
    last_progress: LastProgress,
    /// As its host told it, for our own commands.
    report: SessionReport,
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
    /// The same in words that do not age within a day: `not reached since 14:05, next try at 14:10`.
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
    troubles: Vec<Trouble>,
    twins: Vec<Twin>,
    /// A machine is yet to tell of its sessions.
    has_untold: bool,
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

impl Fleet {
    /// The machines that are not reached.
    pub fn troubles(&self) -> &[Trouble] {
        &self.remote.troubles
    }

    /// Says which machines are not reached. Returns whether that is news.
    pub(crate) fn set_troubles(&mut self, troubles: Vec<Trouble>) -> bool {
        let differs = self.remote.troubles != troubles;
        self.remote.troubles = troubles;
        differs
    }

    /// Whether a machine is yet to tell of its sessions, and may be reached.
    pub const fn has_untold(&self) -> bool {
        self.remote.has_untold
    }

    /// Says whether that is so. Returns whether that is news.
    pub(crate) const fn set_untold(&mut self, has_untold: bool) -> bool {
        std::mem::replace(&mut self.remote.has_untold, has_untold) != has_untold
    }

    /// The machines whose sessions are listed twice.
    pub fn twins(&self) -> &[Twin] {
        &self.remote.twins
    }

    /// Says which machines those are. Returns whether that is news.
    pub(crate) fn set_twins(&mut self, twins: Vec<Twin>) -> bool {
        let differs = self.remote.twins != twins;
        self.remote.twins = twins;
        differs
    }

    /// Takes up what a host tells of a session. Returns whether its row differs.
    pub(crate) fn put_remote(&mut self, key: &Key, session: Session, report: SessionReport, clocks: &Clocks) -> bool {
        let plain_row = session.row(clocks.now, &self.limits).0;
        let mut row = plain_row.clone();
        let before = self.remote.entries.get(key);
        let same_name = before.is_some_and(|before| {
            let before = &before.plain_row;
            (&before.name, &before.label, &before.cwd, &before.branch) == (&row.name, &row.label, &row.cwd, &row.branch)
        });
        if let Some(before) = before.filter(|_| same_name) {
            row.name.clone_from(&before.row.name);
            row.label.clone_from(&before.row.label);
        }
        self.names_stale |= !same_name;
        // What it asks is no part of the row.
        let differs = before.is_none_or(|before| row.differs_from(&before.row) || session != before.session);
        let last_progress = before.map(|before| before.last_progress.clone()).unwrap_or_default();
        last_progress.set(row.last());
        self.remote.entries.insert(key.clone(), RemoteEntry { session, plain_row, row, last_progress, report });
        differs
    }

    /// Removes a session of another machine. Returns whether it was there.
    pub(crate) fn remove_remote(&mut self, key: &Key) -> bool {
        let was_there = self.remote.entries.remove(key).is_some();
        self.names_stale |= was_there;
        was_there
    }

    /// Notes when something was last heard of a session of another machine. Returns whether a silence is over that its row
    /// told of.
    pub(crate) fn note_remote_activity(&mut self, key: &Key, at: Time) -> bool {
        let Some(entry) = self.remote.entries.get_mut(key) else { return false };
        let before = entry.row.last();
        if at <= before {
            return false;
        }
        entry.last_progress.set(at);
        entry.row.last_progress = Some(at);
        entry.row.short_reason = std::mem::take(&mut entry.row.short_reason).with_last(at);
        entry.row.ended_lull(before)
    }

    /// The sessions of a host.
    pub(crate) fn keys_at<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Key> {
        self.remote.entries.keys().filter(move |key| key.host.as_deref() == Some(host))
    }

    /// The sessions of a host, as it told them.
    pub(crate) fn reports_at<'a>(
        &'a self,
        host: &'a str,
        clocks: &'a Clocks,
    ) -> impl Iterator<Item = SessionReport> + 'a {
        let there = self.remote.entries.iter().filter(move |(key, _)| key.host.as_deref() == Some(host));
        there.map(|(_, entry)| entry.report.clone().told_again(&entry.row, clocks))
    }

    /// Whether a session of a host is at work, so that more is to be heard of it, or said to wait for its user.
    pub(crate) fn matters_at(&self, host: &str) -> bool {
        let matters = |Row { status, .. }: &Row| status.is_work() || status.is_silent() || status.waits();
        self.remote.entries.iter().any(|(key, entry)| key.host.as_deref() == Some(host) && matters(&entry.row))
    }

    /// Says that a host is not reached: what is known of its sessions is from before. Returns those of which that is news,
    /// and whether any row differs at all.
    pub(crate) fn set_unreached(&mut self, host: &str, unreached: &Unreached, now: Moment) -> (Vec<Key>, bool) {
        let (mut news, mut differs) = (Vec::new(), false);
        let there = self.remote.entries.iter_mut().filter(|(key, _)| key.host.as_deref() == Some(host));
        for (key, RemoteEntry { session, plain_row, row, .. }) in there {
            let Some(remote) = session.remote.as_mut().filter(|remote| remote.unreached.as_ref() != Some(unreached))
            else {
                continue;
            };
            remote.unreached = Some(unreached.clone());
            differs = true;
            let last_progress = row.last_progress;
            *plain_row = Row { last_progress, ..session.row(now, &self.limits).0 };
            let marked = Row { name: row.name.clone(), label: row.label.clone(), ..plain_row.clone() };
            if marked.differs_from(row) {
                news.push(key.clone());
            }
            *row = marked;
        }
        (news, differs)
    }
}
