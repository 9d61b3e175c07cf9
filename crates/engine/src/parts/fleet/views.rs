//! The fleet as views are shown it, and what other machines tell of theirs.

use super::shown::{RemoteEntry, Shown, Trouble, Twin};
use super::{Entry, Fleet};
use pilotlight_core::fleet::{Row, Session};
use pilotlight_core::remote::{Clocks, SessionReport};
use pilotlight_core::session::Key;
use pilotlight_core::session::remote::Unreached;
use pilotlight_core::time::{Moment, Time};

impl Entry {
    fn shown<'a>(&'a self, key: &'a Key) -> Shown<'a> {
        let Self { row, session, last_progress, reader, .. } = self;
        Shown { key, row, session, last_progress, reader: Some(reader) }
    }
}

impl Fleet {
    /// All that is shown, in no meaningful order.
    pub fn shown(&self) -> impl Iterator<Item = Shown<'_>> {
        let here = self.entries().map(|(key, entry)| entry.shown(key));
        here.chain(self.remote.entries.iter().map(|(key, entry)| entry.shown(key)))
    }

    /// One that is shown.
    pub fn shown_as(&self, key: &Key) -> Option<Shown<'_>> {
        if key.host.is_none() {
            let (key, entry) = self.entries.get_key_value(key).filter(|(_, entry)| entry.listed)?;
            return Some(entry.shown(key));
        }
        self.remote.entries.get_key_value(key).map(|(key, entry)| entry.shown(key))
    }

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
