//! The state, and its one step: what the sessions do now, which popups are open, what is to be raised and withdrawn.
//!
//! A popup stands as long as the episode of a session names it. So there is one place that withdraws, whatever the reason,
//! and no popup can outlive its cause; and since an episode names one popup, no session has two.

use super::episode::{Episode, Stage, Watched};
use super::words;
use super::{About, Alertable, Button, Cause, Change, Detail, Key, Now, Pause, Popup, PopupId, Quiet, Settings};
use crate::core::time::{Span, Time};
use std::collections::BTreeMap;

/// Signs of waking from sleep that come within this of each other are one.
const WAKING_TAKES: Span = Span::seconds(5);
/// Minutes of a day.
const DAY: u16 = 24 * 60;
/// So many popups stand at once, beside the one that sums up what finds no room.
const STAND: usize = 3;

type Sessions<'a> = BTreeMap<&'a Key, Alertable<'a>>;

/// The notifications of all sessions.
#[derive(Clone, Debug, Default)]
pub struct Alerts {
    /// What the user set. May be changed at any time; holds from the next update on.
    pub settings: Settings,
    /// What is muted, and whether everything is. May be changed at any time, and is to be kept over restarts.
    pub quiet: Quiet,
    watched: BTreeMap<Key, Watched>,
    open: BTreeMap<PopupId, Popup>,
    /// How much they show.
    shown: Detail,
    last_id: u64,
    /// There was an update.
    begun: bool,
    woke: Option<Time>,
    /// Nothing is told before, by the awake clock.
    calm_until: Time,
    wake_at: Option<Time>,
}

impl Alerts {
    /// Nothing is known yet: the first update tells nothing.
    pub fn new(settings: Settings, quiet: Quiet) -> Self {
        Self { shown: settings.detail, settings, quiet, ..Self::default() }
    }

    /// Takes note of how all sessions are now, and tells what is to be done with the popups, in that order. To be called
    /// when any of them may have changed, when the user changed a mute, a pause or a setting, and at
    /// [`wake_at`](Self::wake_at).
    pub fn update<'a>(&mut self, sessions: impl IntoIterator<Item = Alertable<'a>>, now: &Now) -> Vec<Change> {
        let sessions: Sessions<'_> = sessions.into_iter().map(|session| (session.key, session)).collect();
        self.take_the_time(now);
        let hushed = self.quiet.paused().is_some() || self.is_quiet_hour(now.minute);
        self.watched.retain(|key, _| sessions.contains_key(key));
        for session in sessions.values() {
            self.follow(session, hushed, now);
        }
        self.begun = true;
        let mut changes = Vec::new();
        self.settle(&sessions, &mut changes);
        self.tell(&sessions, now, &mut changes);
        self.wake_at = self.next_wake(now);
        changes
    }

    /// When, by the awake clock, there is to be an update though nothing happened. Later than the last update.
    pub const fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    /// A popup is no longer open: the user clicked it or put it away, or it went by itself. What it was, if it was open: a
    /// click on one that was withdrawn meanwhile is for nothing, and so is a second click.
    pub fn closed(&mut self, id: PopupId, by_user: bool) -> Option<Popup> {
        let popup = self.open.remove(&id)?;
        for key in popup.about.keys() {
            if let Some(watched) = self.watched.get_mut(key).filter(|watched| watched.popup() == Some(id)) {
                watched.closed(by_user);
            }
        }
        Some(popup)
    }

    /// The popups that are open.
    pub fn open(&self) -> impl Iterator<Item = &Popup> {
        self.open.values()
    }

    /// How many sessions are remembered.
    pub fn remembered(&self) -> usize {
        self.watched.len()
    }

    /// Whether this minute of the local day is in the quiet hours.
    pub(crate) fn is_quiet_hour(&self, minute: u16) -> bool {
        match self.settings.quiet_hours {
            Some((from, to)) if from <= to => (from..to).contains(&minute),
            Some((from, to)) => minute >= from || minute < to,
            None => false,
        }
    }

    fn take_the_time(&mut self, now: &Now) {
        if let Some(woke) = now.woke
            && self.woke.is_none_or(|last| woke > last + WAKING_TAKES)
        {
            self.woke = Some(woke);
        }
        let started = now.started + self.settings.start_grace;
        self.calm_until = self.woke.map_or(started, |woke| started.max(woke + self.settings.wake_grace));
        self.quiet.settle(now.at.wall);
    }

    fn follow(&mut self, session: &Alertable<'_>, hushed: bool, now: &Now) {
        let is_new = !self.watched.contains_key(session.key);
        let watched = self.watched.entry(session.key.clone()).or_default();
        let calm = self.calm_until + self.settings.gather <= now.at.awake;
        watched.follow(session, now, is_new, calm, &self.settings);
        let Some(episode) = &mut watched.episode else { return };
        let cause = episode.cause;
        let silent = hushed
            || !self.begun
            || !self.settings.kinds.has(cause)
            || self.quiet.is_muted(&session.row.id, session.row.cwd.as_deref())
            || session.seen && cause.is_settled_by_a_look()
            || session.cli_notifies && cause == Cause::Done;
        if silent {
            episode.stage = Stage::Silent;
        }
    }

    /// Withdraws what no session stands for any more, and raises anew what asks for something else now, can offer its answers only
    /// now, or is to show more or less. Never in its place: a click that is on its way to the old one must not land on the new one.
    /// A popup that can offer its answers no longer keeps them: whoever clicks is told why nothing was done.
    fn settle(&mut self, sessions: &Sessions<'_>, changes: &mut Vec<Change>) {
        let detail = self.settings.detail;
        let other_detail = std::mem::replace(&mut self.shown, detail) != detail;
        for (id, popup) in self.open.clone() {
            let standing = self.standing(id);
            let (Some(first), About::One(_)) = (standing.first(), &popup.about) else {
                if standing.is_empty() {
                    self.open.remove(&id);
                    changes.push(Change::Withdraw(id));
                } else if other_detail || standing != popup.about.keys() {
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
                if let Some(watched) = self.watched.get_mut(first) {
                    watched.moved(new);
                }
                self.raise(new, session, false, changes);
            }
        }
    }

    /// Tells what is ripe and has waited for company: each by a popup of its own where there is room for all of it, else all in
    /// the summary.
    fn tell(&mut self, sessions: &Sessions<'_>, now: &Now, changes: &mut Vec<Change>) {
        let awake = now.at.awake;
        let ripe = |watched: &Watched| match watched.episode?.stage {
            Stage::Waiting(at) => Some(at.max(self.calm_until)).filter(|at| *at <= awake),
            _ => None,
        };
        let first = self.watched.values().filter_map(ripe).min();
        if first.is_none_or(|first| first + self.settings.gather > awake) {
            return;
        }
        let due: Vec<Key> =
            self.watched.iter().filter(|(_, watched)| ripe(watched).is_some()).map(|(key, _)| key.clone()).collect();
        let is_one = |popup: &&Popup| matches!(popup.about, About::One(_));
        let alone = self.open.values().filter(is_one).count() + due.len() <= STAND;
        let summary = self.open.values().find(|popup| !is_one(popup)).map(|popup| popup.id);
        let summary = if alone { None } else { Some(summary.unwrap_or_else(|| self.next_id())) };
        let mut heard = false;
        for key in &due {
            let id = summary.unwrap_or_else(|| self.next_id());
            let Some((watched, session)) = self.watched.get_mut(key).zip(sessions.get(key)) else { continue };
            let sound = watched.may_sound(awake, &self.settings);
            watched.tell(id, alone, awake, &self.settings);
            heard |= sound;
            if alone {
                self.raise(id, session, sound, changes);
            }
        }
        if let Some(id) = summary {
            self.sum_up(id, sessions, heard, changes);
        }
    }

    fn next_id(&mut self) -> PopupId {
        self.last_id += 1;
        PopupId(self.last_id)
    }

    /// The sessions whose episodes name this popup.
    fn standing(&self, id: PopupId) -> Vec<Key> {
        let stands = |(_, watched): &(&Key, &Watched)| watched.popup() == Some(id);
        self.watched.iter().filter(stands).map(|(key, _)| key.clone()).collect()
    }

    /// Raises the popup of a session whose episode names it.
    fn raise(&mut self, id: PopupId, session: &Alertable<'_>, sound: bool, changes: &mut Vec<Change>) {
        let Some(watched) = self.watched.get(session.key) else { return };
        let Some(Episode { cause, again, .. }) = watched.episode else { return };
        let detail = self.settings.detail;
        let asked = words::asked(session, detail);
        let (title, body) = words::one(session, cause, watched.stuck_in_a_row(), again, asked.as_ref(), detail);
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

    /// Sums up, in one popup, the sessions whose episodes name it.
    fn sum_up(&mut self, id: PopupId, sessions: &Sessions<'_>, sound: bool, changes: &mut Vec<Change>) {
        let keys = self.standing(id);
        let cause = |key: &Key| self.watched.get(key)?.episode.map(|episode| episode.cause);
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

    /// The earliest moment, by the awake clock, at which an update has something to do though nothing happened.
    fn next_wake(&self, now: &Now) -> Option<Time> {
        let due = |watched: &Watched| match watched.episode?.stage {
            Stage::Waiting(at) => Some(at.max(self.calm_until) + self.settings.gather),
            Stage::Open(_, Some(at)) => Some(at.max(self.calm_until + self.settings.gather)),
            Stage::Open(_, None) | Stage::Silent => None,
        };
        let pause = match self.quiet.paused() {
            Some(Pause::Until(until)) => Some(now.at.awake + (until - now.at.wall)),
            Some(Pause::UntilResumed) | None => None,
        };
        // The next time that the clock reads this minute: tomorrow, if it does now.
        let ahead = |at: u16| (at % DAY + DAY - now.minute % DAY + DAY - 1) % DAY + 1;
        let hours = self.settings.quiet_hours.map(|(from, to)| ahead(from).min(ahead(to)));
        let hours = hours.map(|minutes| now.at.awake + Span::minutes(minutes.into()));
        self.watched.values().filter_map(due).chain(pause).chain(hours).min()
    }
}
