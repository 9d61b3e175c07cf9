//! The state, and its one step: what the sessions do now, which popups are open, what is to be raised and withdrawn.
//!
//! A popup stands as long as the episode of a session names it. So there is one place that withdraws, whatever the reason,
//! and no popup can outlive its cause; and since an episode names one popup, no session has two.

use super::episode::{Episode, Stage, Watched};
use super::words;
use super::{
    About, Alertable, Asked, Button, Cause, Change, Detail, Key, Now, Pause, Popup, PopupId, Quiet, Settings, Urgency,
};
use crate::core::time::{Span, Time};
use std::collections::BTreeMap;

/// Signs of waking from sleep that come within this of each other are one.
const WAKING_TAKES: Span = Span::seconds(5);
/// Minutes of a day.
const DAY: u16 = 24 * 60;

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
        let mut changes = self.withdraw(&sessions);
        self.renew(&sessions, &mut changes);
        self.reword(&sessions, &mut changes);
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
    pub fn is_quiet_hour(&self, minute: u16) -> bool {
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
        watched.follow(session, now, is_new, &self.settings);
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

    /// Withdraws what no session stands for any more.
    fn withdraw(&mut self, sessions: &Sessions<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        let (watched, detail) = (&self.watched, self.settings.detail);
        self.open.retain(|id, popup| {
            let stands = |key: &Key| watched.get(key).and_then(Watched::popup) == Some(*id);
            let (before, left) = match &mut popup.about {
                About::One(key) => (1, usize::from(stands(key))),
                About::Digest(keys) => {
                    let before = keys.len();
                    keys.retain(stands);
                    (before, keys.len())
                }
            };
            if left == 0 {
                changes.push(Change::Withdraw(*id));
            } else if left < before {
                let about = named(watched, sessions, popup.about.keys());
                (popup.title, popup.body) = words::digest(&about, detail);
                popup.cause = about.iter().map(|(cause, _)| *cause).min().unwrap_or(popup.cause);
                popup.sound = false;
                changes.push(Change::Replace(popup.clone()));
            }
            left > 0
        });
        changes
    }

    /// Raises a popup anew that can offer Approve, or a question's choices, only now, or no longer. Never in place: a click that
    /// is on its way to the old one must not land on the new one.
    fn renew(&mut self, sessions: &Sessions<'_>, changes: &mut Vec<Change>) {
        for session in sessions.values() {
            let Some(Episode {
                cause: Cause::NeedsPermission | Cause::NeedsInput,
                stage: Stage::Open(id, _),
                renewed,
                ..
            }) = self.watched.get(session.key).and_then(|watched| watched.episode)
            else {
                continue;
            };
            let Some(popup) = self.open.get(&id).filter(|popup| matches!(popup.about, About::One(_))) else { continue };
            let asked = words::asked(session, self.settings.detail);
            if asked == popup.asked {
                continue;
            }
            let asked = asked.filter(|_| !renewed); // what was gained once and lost is not gained again
            if asked == popup.asked {
                continue;
            }
            let gained = asked.is_some();
            self.open.remove(&id);
            changes.push(Change::Withdraw(id));
            let new = self.raise_one(session, asked, false, changes);
            if let Some(watched) = self.watched.get_mut(session.key) {
                watched.moved(new);
            }
            if let Some(episode) = self.episode(session.key) {
                episode.renewed |= gained;
            }
        }
    }

    /// Has every open popup say as much as the user allows now. One with Approve was raised anew already.
    fn reword(&mut self, sessions: &Sessions<'_>, changes: &mut Vec<Change>) {
        let detail = self.settings.detail;
        if std::mem::replace(&mut self.shown, detail) == detail {
            return;
        }
        for popup in self.open.values_mut() {
            let words = match &popup.about {
                About::One(key) => {
                    let Some((watched, session)) = self.watched.get(key).zip(sessions.get(key)) else { continue };
                    let again = watched.episode.is_some_and(|episode| episode.escalated);
                    words::one(session, popup.cause, watched.stuck_in_a_row(), again, popup.asked.as_ref(), detail)
                }
                About::Digest(keys) => words::digest(&named(&self.watched, sessions, keys), detail),
            };
            if (&popup.title, &popup.body) != (&words.0, &words.1) {
                (popup.title, popup.body) = words;
                popup.sound = false;
                changes.push(Change::Replace(popup.clone()));
            }
        }
    }

    /// Tells what is ripe and has waited for company, and once more what was told long ago.
    fn tell(&mut self, sessions: &Sessions<'_>, now: &Now, changes: &mut Vec<Change>) {
        let (awake, on) = (now.at.awake, &self.settings);
        let ripe = |stage| match stage {
            Stage::Waiting(at) if at.max(self.calm_until) <= awake => Some(at.max(self.calm_until)),
            _ => None,
        };
        let episodes = || self.watched.iter().filter_map(|(key, watched)| Some((key, watched.episode?)));
        let first = episodes().filter_map(|(_, episode)| ripe(episode.stage)).min();
        let gathered = first.is_some_and(|first| first + on.gather <= awake);
        let again = |stage| match stage {
            Stage::Open(_, Some(at)) | Stage::Gone(at) => at.max(self.calm_until) <= awake,
            _ => false,
        };
        let is_due = |stage| again(stage) || gathered && ripe(stage).is_some();
        let due: Vec<_> = episodes().filter(|(_, episode)| is_due(episode.stage)).map(|(key, _)| key.clone()).collect();
        for key in &due {
            if let Some(episode) = self.episode(key) {
                episode.escalated |= !matches!(episode.stage, Stage::Waiting(_));
                episode.stage = Stage::Waiting(awake);
            }
        }
        if due.is_empty() {
            return;
        }
        changes.extend(self.withdraw(sessions)); // what is raised once more goes first
        let due = due.iter().filter_map(|key| sessions.get(key));
        self.raise(&due.collect::<Vec<_>>(), sessions, awake, changes);
    }

    /// Raises a popup for each session, or one for all where they are many or there is no room.
    fn raise(&mut self, due: &[&Alertable<'_>], sessions: &Sessions<'_>, now: Time, changes: &mut Vec<Change>) {
        let digest = self.open.values().find(|popup| matches!(popup.about, About::Digest(_))).map(|popup| popup.id);
        let room = self.settings.at_most.saturating_sub(self.open.len());
        // The last place is for a digest of what finds none, unless there is one, or this is the only place.
        let kept = usize::from(digest.is_none() && self.settings.at_most > 1);
        if due.len() < self.settings.together.max(2) && due.len() <= room.saturating_sub(kept) {
            for session in due {
                let asked = words::asked(session, self.settings.detail);
                let sound = self.may_sound(session.key, now);
                let id = self.raise_one(session, asked, sound, changes);
                if let Some(watched) = self.watched.get_mut(session.key) {
                    watched.tell(id, now, &self.settings);
                }
            }
            return;
        }
        if digest.is_none() && room == 0 {
            for session in due {
                if let Some(watched) = self.watched.get_mut(session.key) {
                    watched.silence(); // the menu has it
                }
            }
            return;
        }
        let id = self.next_id();
        let old = digest.and_then(|id| self.open.remove(&id));
        changes.extend(old.iter().map(|old| Change::Withdraw(old.id)));
        for key in old.iter().flat_map(|old| old.about.keys()) {
            if let Some(watched) = self.watched.get_mut(key) {
                watched.moved(id);
            }
        }
        let sound = due.iter().any(|session| self.may_sound(session.key, now));
        for session in due {
            if let Some(watched) = self.watched.get_mut(session.key) {
                watched.tell(id, now, &self.settings);
            }
        }
        self.raise_digest(id, sessions, sound, changes);
    }

    fn episode(&mut self, key: &Key) -> Option<&mut Episode> {
        self.watched.get_mut(key)?.episode.as_mut()
    }

    /// A cause that was told a moment ago, of another request, is shown and not heard.
    fn may_sound(&self, key: &Key, now: Time) -> bool {
        let just_told = |watched: &Watched| {
            watched
                .episode
                .is_some_and(|episode| !episode.escalated && watched.was_just_told(episode.cause, now, &self.settings))
        };
        self.settings.sound && !self.watched.get(key).is_some_and(just_told)
    }

    fn next_id(&mut self) -> PopupId {
        self.last_id += 1;
        PopupId(self.last_id)
    }

    fn raise_one(
        &mut self,
        session: &Alertable<'_>,
        asked: Option<Asked>,
        sound: bool,
        changes: &mut Vec<Change>,
    ) -> PopupId {
        let id = self.next_id();
        let Some(watched) = self.watched.get(session.key) else { return id };
        let Some(episode) = watched.episode else { return id };
        let (cause, detail) = (episode.cause, self.settings.detail);
        let stuck = watched.stuck_in_a_row();
        let (title, body) = words::one(session, cause, stuck, episode.escalated, asked.as_ref(), detail);
        let popup = Popup {
            id,
            about: About::One(session.key.clone()),
            cause,
            title,
            body,
            urgency: urgency(cause, episode.escalated),
            sound: sound && self.settings.sound,
            buttons: words::buttons(session, cause, asked.as_ref()),
            asked,
            since: session.row.since,
        };
        self.open.insert(id, popup.clone());
        changes.push(Change::Raise(popup));
        id
    }

    /// Raises a digest of the sessions whose episodes name it.
    fn raise_digest(&mut self, id: PopupId, sessions: &Sessions<'_>, sound: bool, changes: &mut Vec<Change>) {
        let stand = self.watched.iter().filter(|(_, watched)| watched.popup() == Some(id));
        let keys: Vec<_> = stand.map(|(key, _)| key.clone()).collect();
        let about = named(&self.watched, sessions, &keys);
        let (title, body) = words::digest(&about, self.settings.detail);
        let urgencies = keys.iter().filter_map(|key| self.watched.get(key)?.episode);
        let urgency =
            urgencies.map(|episode| urgency(episode.cause, episode.escalated)).max().unwrap_or(Urgency::Normal);
        let popup = Popup {
            id,
            cause: about.iter().map(|(cause, _)| *cause).min().unwrap_or(Cause::Done),
            since: about.iter().map(|(_, session)| session.row.since).min().unwrap_or_default(),
            about: About::Digest(keys),
            asked: None,
            title,
            body,
            urgency,
            sound,
            buttons: vec![Button::Details],
        };
        self.open.insert(id, popup.clone());
        changes.push(Change::Raise(popup));
    }

    /// The earliest moment, by the awake clock, at which an update has something to do though nothing happened.
    fn next_wake(&self, now: &Now) -> Option<Time> {
        let due = |watched: &Watched| match watched.episode?.stage {
            Stage::Waiting(at) => Some(at.max(self.calm_until) + self.settings.gather),
            Stage::Open(_, Some(at)) | Stage::Gone(at) => Some(at.max(self.calm_until)),
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

/// What each of these sessions is notified for.
fn named<'s, 'a>(
    watched: &BTreeMap<Key, Watched>,
    sessions: &'s Sessions<'a>,
    keys: &[Key],
) -> Vec<(Cause, &'s Alertable<'a>)> {
    keys.iter().filter_map(|key| Some((watched.get(key)?.episode?.cause, sessions.get(key)?))).collect()
}

const fn urgency(cause: Cause, escalated: bool) -> Urgency {
    match cause {
        _ if escalated => Urgency::Critical,
        Cause::Done => Urgency::Low,
        _ => Urgency::Normal,
    }
}
