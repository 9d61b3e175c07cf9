//! When commands of `[[on-change]]` are run, and what they are told.
//!
//! Causes follow the rules of popups: a second [`Alerts`], with other kinds switched on, decides, and each popup that it would
//! raise is closed at once. A command runs once for a cause, however long the cause lasts.
//!
//! Every other status is told too, if a command names it, once it has held for as long as popups wait for each other.
//! Mutes, a pause, quiet hours and a sleep silence it as well, but no cooldown does. And the first status after a cause
//! that was told is never silenced: a light that a request has lit must go out.

use super::alertable::{Alertable, Now};
use super::cause::Cause;
use super::episode::is_old_news;
use super::popup::Change;
use super::quiet::Quiet;
use super::rules::Alerts;
use super::settings::{Detail, Kinds, Settings};
use crate::fleet::{BackgroundView, Label, RequestView, Row, short_id};
use crate::session::Key;
use crate::time::Time;
use crate::verdict::Status;
use std::collections::BTreeMap;

/// What a command can be run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A session has this status.
    Status(Status),
    /// A long turn is complete.
    Done,
}

impl Trigger {
    /// Every trigger: the statuses, and `done`.
    pub fn all() -> impl Iterator<Item = Self> {
        Status::ALL.map(Self::Status).into_iter().chain([Self::Done])
    }

    /// The triggers that popups are raised for unless the user changes that.
    pub fn usual() -> Vec<Self> {
        let usual = Cause::ALL.into_iter().filter(|cause| Kinds::default().has(*cause));
        usual.map(Self::of).collect()
    }

    /// Its name: that of the status, or `done`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status(status) => status.name(),
            Self::Done => Cause::Done.name(),
        }
    }

    fn of(cause: Cause) -> Self {
        let status = Status::ALL.into_iter().find(|status| Cause::of(*status) == Some(cause));
        status.map_or(Self::Done, Self::Status)
    }
}

/// A status that a session has had for a while.
#[derive(Clone, Copy, Debug)]
struct LastingStatus {
    status: Status,
    /// By the awake clock.
    since: Time,
    /// It was told, or is not to be.
    is_settled: bool,
    /// The last one that was settled.
    before: Option<Status>,
    /// A cause was told, and no status after it.
    is_alarmed: bool,
}

/// Decides which commands are due.
#[derive(Clone, Debug, Default)]
pub struct Triggers {
    alerts: Alerts,
    wanted: Vec<Trigger>,
    lasting: BTreeMap<Key, LastingStatus>,
    has_begun: bool,
    wake_at: Option<Time>,
}

impl Triggers {
    /// Sets what commands are run for, and the settings of notifications, of which `kinds` and `detail` do not matter.
    pub fn configure(&mut self, wanted: Vec<Trigger>, rules: &Settings) {
        let has = |cause| wanted.contains(&Trigger::of(cause));
        let kinds = Kinds {
            needs_permission: has(Cause::NeedsPermission),
            needs_input: has(Cause::NeedsInput),
            permission_lost: has(Cause::PermissionLost),
            stuck: has(Cause::Stuck),
            crashed: has(Cause::Crashed),
            failed: has(Cause::Failed),
            done: has(Cause::Done),
        };
        self.alerts.settings = Settings { kinds, escalate_after: None, detail: Detail::None, ..rules.clone() };
        self.wanted = wanted;
    }

    /// Updates from the current state of all sessions. Returns what is to be told, in order. The first update tells
    /// nothing. Call it as [`Alerts::update`] is called.
    pub fn update(&mut self, sessions: &[Alertable<'_>], quiet: &Quiet, now: &Now) -> Vec<(Key, Trigger)> {
        self.alerts.quiet.clone_from(quiet);
        // The agent's own notification is for who sits there; a command may reach who does not.
        let alertable = sessions.iter().map(|session| Alertable { cli_notifies: false, ..*session });
        let changes = self.alerts.update(alertable, now);
        let mut due = self.tell_statuses(sessions, now);
        for change in changes {
            let Change::Raise(popup) = change else { continue };
            self.alerts.closed(popup.id, true);
            for key in popup.about.keys() {
                let Some(session) = sessions.iter().find(|session| session.key == key) else { continue };
                if let Some(lasting) = self.lasting.get_mut(key) {
                    lasting.is_alarmed = true;
                }
                due.push((key.clone(), Cause::of_row(session.row).map_or(Trigger::Done, Trigger::of)));
            }
        }
        self.has_begun = true;
        let unsettled = self.lasting.values().filter(|lasting| !lasting.is_settled);
        let settles = unsettled.map(|lasting| self.alerts.calm_at(lasting.since));
        self.wake_at = settles.chain(self.alerts.wake_at()).min();
        due
    }

    /// The sessions of which it is to be known whether their terminals have the focus, as by [`Alerts::queries`].
    pub fn queries(&self) -> &[Key] {
        self.alerts.queries()
    }

    /// Records whether a session's terminal has the focus.
    pub fn focus(&mut self, key: &Key, has_focus: bool) {
        self.alerts.focus(key, has_focus);
    }

    /// Forgets everything: the next update is a first one.
    pub fn forget(&mut self) {
        *self = Self { wanted: std::mem::take(&mut self.wanted), ..Self::default() };
    }

    /// When the next update is due even if nothing happens, by the awake clock.
    pub const fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// Follows the status of each session, and returns those to be told that are no cause.
    fn tell_statuses(&mut self, sessions: &[Alertable<'_>], now: &Now) -> Vec<(Key, Trigger)> {
        let mut due = Vec::new();
        let mut held_before = std::mem::take(&mut self.lasting);
        for Alertable { key, row, .. } in sessions {
            let mut lasting = match held_before.remove(key) {
                Some(lasting) if lasting.status == row.status => lasting,
                Some(lasting) => {
                    LastingStatus { status: row.status, since: now.at.awake, is_settled: false, ..lasting }
                }
                None => self.first_held(row, now),
            };
            if !lasting.is_settled && self.alerts.calm_at(lasting.since) <= now.at.awake {
                let is_other = lasting.before.replace(row.status) != Some(row.status);
                lasting.is_settled = true;
                if Cause::of_row(row).is_none() {
                    let was_alarmed = std::mem::take(&mut lasting.is_alarmed);
                    let trigger = Trigger::Status(row.status);
                    let is_due = is_other && (was_alarmed || !self.alerts.silences(row, now));
                    if is_due && self.wanted.contains(&trigger) {
                        due.push(((*key).clone(), trigger));
                    }
                }
            }
            self.lasting.insert((*key).clone(), lasting);
        }
        due
    }

    /// The status of a session that was not listed before. One that has been so for long is not news.
    fn first_held(&self, row: &Row, now: &Now) -> LastingStatus {
        let is_settled = !self.has_begun || is_old_news(row, now);
        let before = is_settled.then_some(row.status);
        LastingStatus { status: row.status, since: now.at.awake, is_settled, before, is_alarmed: false }
    }
}

/// The row that a command is told, which reveals no more than popups do. Without details it lacks what the session
/// asks and says, and `because` is only its status; with none at all also its names and its folder.
pub fn told(row: &Row, detail: Detail) -> Row {
    if detail == Detail::Full {
        return row.clone();
    }
    let asks_only = |request: &RequestView| RequestView { text: None, paths: Vec::new(), ..request.clone() };
    let row = Row {
        because: row.status.name().into(),
        request: row.request.as_ref().map(asks_only),
        question: None,
        // What sub-agents are for, and run, is as telling.
        background: BackgroundView { list: Vec::new(), ..row.background.clone() },
        ..row.clone()
    };
    match detail {
        Detail::Full | Detail::Title => row,
        Detail::None => {
            let name = short_id(&row.id).to_owned();
            let label = Label { who: name.clone(), title: None, agent: None };
            Row { name, label, cwd: None, branch: None, ..row }
        }
    }
}
