//! The state of all notifications and its single step, the update.
//!
//! A popup stays open as long as some session's episode names it. So a single place withdraws popups, whatever the
//! reason, and no popup outlives its cause. Since an episode names one popup, no session has two.

use super::alertable::{Alertable, Now};
use super::cause::Cause;
use super::episode::{Episode, Stage, Tracked};
use super::focus::Focus;
use super::popup::{About, Button, Change, Popup, PopupId};
use super::quiet::{Pause, Quiet};
use super::settings::{Detail, Settings};
use super::words;
use crate::fleet::Row;
use crate::session::Key;
use crate::time::{Span, Time};
use std::collections::BTreeMap;

/// Wake-ups reported within this span count as one.
const WAKING_TAKES: Span = Span::seconds(5);
/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// Maximum number of popups open at once, not counting the summary.
const POPUPS_MAX: usize = 3;

type Sessions<'a> = BTreeMap<&'a Key, Alertable<'a>>;

/// The notifications of all sessions.
#[derive(Clone, Debug, Default)]
pub struct Alerts {
    /// The user's settings. May be changed at any time; takes effect with the next update.
    pub settings: Settings,
    /// Mutes and pause. May be changed at any time; the caller saves it across restarts.
    pub quiet: Quiet,
    tracked: BTreeMap<Key, Tracked>,
    open: BTreeMap<PopupId, Popup>,
    /// The sessions of which the last update wants to know whether their terminals have the focus.
    queries: Vec<Key>,
    /// The level of detail of the open popups.
    shown: Detail,
    last_id: u64,
    /// The first update has run.
    begun: bool,
    woke: Option<Time>,
    /// What began before our start is not notified before this time, by the awake clock.
    calm_until: Time,
    /// Nothing at all is: the machine has just woken up.
    waking_until: Time,
    wake_at: Option<Time>,
}

impl Alerts {
    /// Creates an empty state. Its first update only records, and notifies about nothing.
    pub fn new(settings: Settings, quiet: Quiet) -> Self {
        Self { shown: settings.detail, settings, quiet, ..Self::default() }
    }

    /// Updates from the current state of all sessions, and returns the changes to make to the popups, in order. Call it
    /// when a session may have changed, when the user changed a mute, a pause or a setting, and at
    /// [`wake_at`](Self::wake_at).
    pub fn update<'a>(&mut self, sessions: impl IntoIterator<Item = Alertable<'a>>, now: &Now) -> Vec<Change> {
        let sessions: Sessions<'_> = sessions.into_iter().map(|session| (session.key, session)).collect();
        self.update_clocks(now);
        self.tracked.retain(|key, _| sessions.contains_key(key));
        for session in sessions.values() {
            self.follow(session, now);
        }
        self.begun = true;
        let mut changes = Vec::new();
        self.settle(&sessions, &mut changes);
        self.query(&sessions, now.at.awake);
        self.notify(&sessions, now, &mut changes);
        self.wake_at = self.next_wake(now);
        changes
    }

    /// When the next update is due even if nothing happens, by the awake clock. Always later than the last update.
    pub const fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// The sessions of which the last update wants to know whether their terminals have the focus. Each is to be answered
    /// with [`focus`](Self::focus), followed by an update; an answer that takes longer than
    /// [`FOCUS_TIMEOUT`](super::FOCUS_TIMEOUT) is not waited for.
    pub fn queries(&self) -> &[Key] {
        &self.queries
    }

    /// Records whether a session's terminal has the focus.
    pub fn focus(&mut self, key: &Key, has_focus: bool) {
        if let Some(episode) = self.tracked.get_mut(key).and_then(|tracked| tracked.episode.as_mut()) {
            episode.focus.answer(has_focus);
        }
    }

    /// Records that a popup was closed: clicked, dismissed or expired. Returns it if it was open, so that a click on a
    /// popup that was already withdrawn, or a second click, has no effect.
    pub fn closed(&mut self, id: PopupId, by_user: bool) -> Option<Popup> {
        let popup = self.open.remove(&id)?;
        for key in popup.about.keys() {
            if let Some(tracked) = self.tracked.get_mut(key).filter(|tracked| tracked.popup() == Some(id)) {
                tracked.closed(by_user);
            }
        }
        Some(popup)
    }

    /// The open popups.
    pub fn open(&self) -> impl Iterator<Item = &Popup> {
        self.open.values()
    }

    /// Number of sessions remembered.
    pub fn remembered(&self) -> usize {
        self.tracked.len()
    }

    /// Whether a minute of the local day lies within the quiet hours.
    pub fn is_quiet_hour(&self, minute: u16) -> bool {
        match self.settings.quiet_hours {
            Some((from, to)) if from <= to => (from..to).contains(&minute),
            Some((from, to)) => minute >= from || minute < to,
            None => false,
        }
    }

    fn update_clocks(&mut self, now: &Now) {
        if let Some(woke) = now.woke
            && self.woke.is_none_or(|last| woke > last + WAKING_TAKES)
        {
            self.woke = Some(woke);
        }
        let started = now.started + self.settings.start_grace;
        self.waking_until = self.woke.map_or(now.started, |woke| woke + self.settings.wake_grace);
        self.calm_until = started.max(self.waking_until);
        self.quiet.settle(now.at.wall);
    }

    /// When a session's episode may be notified: what began after our start need not wait for what was so before.
    fn calm_for(&self, tracked: &Tracked) -> Time {
        match tracked.episode {
            Some(Episode { is_news: true, .. }) => self.waking_until,
            _ => self.calm_until,
        }
    }

    /// Whether nothing is said about a session now: it is muted, or everything is.
    pub(super) fn silences(&self, row: &Row, now: &Now) -> bool {
        self.quiet.paused().is_some()
            || self.is_quiet_hour(now.minute)
            || self.quiet.is_muted(&row.id, row.cwd.as_deref())
    }

    /// When what began at `since` is told: together with what follows soon, and not while the machine wakes up.
    pub(super) fn calm_at(&self, since: Time) -> Time {
        since.max(self.waking_until) + self.settings.gather
    }

    /// When a session's episode is due, if it waits.
    fn due_at(&self, tracked: &Tracked) -> Option<Time> {
        let episode = tracked.episode?;
        let Stage::Waiting(at) = episode.stage else { return None };
        Some(episode.focus.delays(at.max(self.calm_for(tracked)), &self.settings))
    }

    fn follow(&mut self, session: &Alertable<'_>, now: &Now) {
        let is_silenced = self.silences(session.row, now);
        let is_new = !self.tracked.contains_key(session.key);
        let tracked = self.tracked.entry(session.key.clone()).or_default();
        let calm = self.calm_until + self.settings.gather <= now.at.awake;
        tracked.follow(session, now, is_new, calm, &self.settings);
        let Some(episode) = &mut tracked.episode else { return };
        let cause = episode.cause;
        let silent = is_silenced
            || !self.begun
            || !self.settings.kinds.has(cause)
            || session.row.is_seen && cause.is_settled_when_seen()
            || session.cli_notifies && cause == Cause::Done;
        if silent {
            episode.stage = Stage::Silent;
        }
    }

    /// Withdraws popups whose episodes have ended. Raises a new popup, instead of changing the old one, if the session
    /// asks for something else now, if its answers have become available, or if the level of detail changed: a click on
    /// its way to the old popup must not land on the new one. A popup whose answers are no longer available keeps its
    /// buttons; a click then reports why nothing was done.
    fn settle(&mut self, sessions: &Sessions<'_>, changes: &mut Vec<Change>) {
        let detail = self.settings.detail;
        let other_detail = std::mem::replace(&mut self.shown, detail) != detail;
        for (id, popup) in self.open.clone() {
            let sessions_of = self.sessions_of(id);
            let (Some(first), About::One(_)) = (sessions_of.first(), &popup.about) else {
                if sessions_of.is_empty() {
                    self.open.remove(&id);
                    changes.push(Change::Withdraw(id));
                } else if other_detail || sessions_of != popup.about.keys() {
                    self.sum_up(id, sessions, false, changes);
                }
                continue;
            };
            let Some(session) = sessions.get(first) else { continue };
            let asked = words::asked(session, detail);
            if other_detail || asked.is_some() && asked != popup.asked {
                self.open.remove(&id);
                changes.push(Change::Withdraw(id));
                let new = self.next_id();
                if let Some(tracked) = self.tracked.get_mut(first) {
                    tracked.moved(new);
                }
                self.raise(new, session, false, changes);
            }
        }
    }

    /// Finds the sessions of which it matters now whether their terminals have the focus.
    fn query(&mut self, sessions: &Sessions<'_>, awake: Time) {
        self.queries.clear();
        if self.settings.focus_delay.is_none() {
            return;
        }
        let is_due = |tracked: &Tracked| self.due_at(tracked).is_some_and(|at| at <= awake);
        let due: Vec<Key> =
            self.tracked.iter().filter(|(_, tracked)| is_due(tracked)).map(|(key, _)| key.clone()).collect();
        for key in due {
            let Some(episode) = self.tracked.get_mut(&key).and_then(|tracked| tracked.episode.as_mut()) else {
                continue;
            };
            if episode.focus != Focus::Unknown {
                continue;
            }
            let has_terminal = sessions.get(&key).is_some_and(|session| session.has_terminal);
            episode.focus = if has_terminal { Focus::Queried(awake) } else { Focus::Elsewhere };
            self.queries.extend(has_terminal.then_some(key));
        }
    }

    /// Notifies about the episodes that are due and have waited for others to join: each by its own popup if there is
    /// room for all of them, otherwise all in the summary.
    fn notify(&mut self, sessions: &Sessions<'_>, now: &Now, changes: &mut Vec<Change>) {
        let awake = now.at.awake;
        let is_awaited = |episode: Episode| episode.focus.awaited_until().is_some_and(|until| until > awake);
        let due_at = |tracked: &Tracked| {
            self.due_at(tracked).filter(|at| *at <= awake && !tracked.episode.is_some_and(is_awaited))
        };
        let first = self.tracked.values().filter_map(due_at).min();
        if first.is_none_or(|first| first + self.settings.gather > awake) {
            return;
        }
        let due: Vec<Key> =
            self.tracked.iter().filter(|(_, tracked)| due_at(tracked).is_some()).map(|(key, _)| key.clone()).collect();
        let is_one = |popup: &&Popup| matches!(popup.about, About::One(_));
        let alone = self.open.values().filter(is_one).count() + due.len() <= POPUPS_MAX;
        let summary = self.open.values().find(|popup| !is_one(popup)).map(|popup| popup.id);
        let summary = if alone { None } else { Some(summary.unwrap_or_else(|| self.next_id())) };
        let mut audible = false;
        for key in &due {
            let id = summary.unwrap_or_else(|| self.next_id());
            let Some((tracked, session)) = self.tracked.get_mut(key).zip(sessions.get(key)) else { continue };
            let sound = tracked.may_sound(awake, &self.settings);
            tracked.notify(id, alone, awake, &self.settings);
            audible |= sound;
            if alone {
                self.raise(id, session, sound, changes);
            }
        }
        if let Some(id) = summary {
            self.sum_up(id, sessions, audible, changes);
        }
    }

    fn next_id(&mut self) -> PopupId {
        self.last_id += 1;
        PopupId(self.last_id)
    }

    /// The sessions whose episodes name this popup.
    fn sessions_of(&self, id: PopupId) -> Vec<Key> {
        let names_it = |(_, tracked): &(&Key, &Tracked)| tracked.popup() == Some(id);
        self.tracked.iter().filter(names_it).map(|(key, _)| key.clone()).collect()
    }

    /// Raises the popup of a session whose episode names it.
    fn raise(&mut self, id: PopupId, session: &Alertable<'_>, sound: bool, changes: &mut Vec<Change>) {
        let Some(tracked) = self.tracked.get(session.key) else { return };
        let Some(Episode { cause, again, .. }) = tracked.episode else { return };
        let detail = self.settings.detail;
        let asked = words::asked(session, detail);
        let (title, body) = words::one(session, cause, tracked.stuck_in_a_row(), again, asked.as_ref(), detail);
        let popup = Popup {
            id,
            about: About::One(session.key.clone()),
            cause,
            title,
            body,
            sound: sound && self.settings.sound,
            buttons: words::buttons(session, cause, asked.as_ref()),
            asked,
        };
        self.open.insert(id, popup.clone());
        changes.push(Change::Raise(popup));
    }

    /// Raises or replaces the summary of the sessions whose episodes name it.
    fn sum_up(&mut self, id: PopupId, sessions: &Sessions<'_>, sound: bool, changes: &mut Vec<Change>) {
        let keys = self.sessions_of(id);
        let cause = |key: &Key| self.tracked.get(key)?.episode.map(|episode| episode.cause);
        let about: Vec<_> = keys.iter().filter_map(|key| Some((cause(key)?, sessions.get(key)?))).collect();
        let (title, body) = words::summary(&about, self.settings.detail);
        let popup = Popup {
            id,
            cause: about.iter().map(|(cause, _)| *cause).min().unwrap_or(Cause::Done),
            about: About::Summary(keys),
            asked: None,
            title,
            body,
            sound: sound && self.settings.sound,
            buttons: vec![Button::Details],
        };
        let shown = self.open.insert(id, popup.clone());
        changes.push(if shown.is_some() { Change::Replace(popup) } else { Change::Raise(popup) });
    }

    /// The earliest time at which an update is needed even if nothing happens, by the awake clock.
    fn next_wake(&self, now: &Now) -> Option<Time> {
        let asks = self.settings.focus_delay.is_some();
        let due = |tracked: &Tracked| match tracked.episode? {
            Episode { stage: Stage::Open(_, at), .. } => Some(at?.max(self.calm_until + self.settings.gather)),
            Episode { focus: Focus::Unknown, .. } if asks => self.due_at(tracked),
            Episode { focus, .. } => {
                let at = self.due_at(tracked)? + self.settings.gather;
                Some(focus.awaited_until().map_or(at, |until| until.max(at)))
            }
        };
        let pause = match self.quiet.paused() {
            Some(Pause::Until(until)) => Some(now.at.awake + (until - now.at.wall)),
            Some(Pause::UntilResumed) | None => None,
        };
        // Minutes until the clock next reads `at`: a whole day if it reads that now.
        let ahead = |at: u16| (at % DAY + DAY - now.minute % DAY + DAY - 1) % DAY + 1;
        let hours = self.settings.quiet_hours.map(|(from, to)| ahead(from).min(ahead(to)));
        let hours = hours.map(|minutes| now.at.awake + Span::minutes(minutes.into()));
        self.tracked.values().filter_map(due).chain(pause).chain(hours).min()
    }
}
