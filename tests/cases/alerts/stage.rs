//! Sessions, their course, and what a user is notified of it: the engine's part, in made-up time.
//!
//! The stage updates as the engine does: when a line is written, when a verdict or the notifications want to be looked at
//! again, and when the test changes something. After every update it checks what must always hold.

use super::super::story::{At, START, Story};
use pilotlight::core::alert::{
    About, Alertable, Alerts, Cause, Change, Completed, Key, Now, Popup, PopupId, Posed, Quiet, Request, Settings,
};
use pilotlight::core::fleet::{Background, Kind, Label, Row, Session};
use pilotlight::core::form::Form;
use pilotlight::core::gist::Gist;
use pilotlight::core::time::{Moment, Span, Time};
use pilotlight::core::turn::Ending;
use pilotlight::core::verdict::Status;
use std::collections::{BTreeMap, BTreeSet};

/// How long before the start of a stage the program was started, so that no grace is left.
const BEFORE: Span = Span::minutes(1);

/// A session on the stage.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) key: Key,
    pub(super) row: Row,
    pub(super) request: Option<(u64, Option<String>, bool)>,
    pub(super) question: Option<Form>,
    pub(super) completed: Option<Completed>,
    pub(super) seen: bool,
    pub(super) cli_notifies: bool,
    story: Option<Story>,
}

/// The sessions, the time, and what was shown.
pub(super) struct Stage {
    pub(super) alerts: Alerts,
    pub(super) actors: BTreeMap<Key, Actor>,
    /// All that was ever raised, with its offset in milliseconds.
    pub(super) raised: Vec<(i64, Popup)>,
    pub(super) open: BTreeMap<PopupId, Popup>,
    /// How often a popup was changed in place.
    pub(super) replaced: usize,
    pub(super) updates: usize,
    pub(super) minute: u16,
    pub(super) woke: Option<Span>,
    started: Span,
    now: Span,
    /// From then on the wall clock reads so much more.
    jumps: Vec<(Span, Span)>,
}

/// A row that is made up.
pub(super) fn row(id: &str, status: Status, since: Time) -> Row {
    Row {
        id: id.into(),
        name: format!("Session {id}"),
        cwd: Some(format!("/code/{id}").into()),
        branch: None,
        kind: Kind::Terminal,
        status,
        since,
        last_progress: Some(since),
        because: format!("because of {status}"),
        unseen: status == Status::Idle,
        owner: None,
        background: Background::default(),
        actions: vec!["reconnect", "stop", "resume", "show-terminal", "mute"],
        label: Label { who: id.into(), title: Some(format!("Session {id}").into()) },
        turn: None,
        ended_denied: false,
        gist: Gist::default(),
        looked_at: false,
        question: None,
    }
}

pub(super) fn key(id: &str) -> Key {
    (0, id.into())
}

impl Stage {
    /// A stage without sessions, on which the program has run for a while.
    pub(super) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self::started(settings, Span::ZERO - BEFORE)
    }

    /// The program is started at this offset; its first look is taken with the first step.
    pub(super) fn starting() -> Self {
        Self { now: Span::ZERO, started: Span::ZERO, ..Self::blank(Settings::default()) }
    }

    fn started(settings: Settings, at: Span) -> Self {
        let mut stage = Self { now: at, started: at, ..Self::blank(settings) };
        stage.look();
        stage.now = Span::ZERO;
        stage.look();
        stage
    }

    fn blank(settings: Settings) -> Self {
        Self {
            alerts: Alerts::new(settings, Quiet::default()),
            actors: BTreeMap::new(),
            raised: Vec::new(),
            open: BTreeMap::new(),
            replaced: 0,
            updates: 0,
            minute: 12 * 60,
            woke: None,
            started: Span::ZERO,
            now: Span::ZERO,
            jumps: Vec::new(),
        }
    }

    /// From `at` on the wall clock reads `by` more: the machine slept, or somebody set it.
    pub(super) fn wall_jumps(&mut self, at: i64, by: Span) {
        self.jumps.push((Span::seconds(at), by));
    }

    pub(super) fn moment(&self) -> Moment {
        let jumped = self.jumps.iter().filter(|(from, _)| *from <= self.now).map(|(_, by)| by.0).sum();
        Moment { wall: START + self.now + Span(jumped), awake: START + self.now }
    }

    fn actor(&mut self, id: &str) -> &mut Actor {
        let row = row(id, Status::Working, self.moment().wall);
        self.actors.entry(key(id)).or_insert_with(|| Actor {
            key: key(id),
            row,
            request: None,
            question: None,
            completed: None,
            seen: false,
            cli_notifies: false,
            story: None,
        })
    }

    /// A session that follows a story from now on.
    pub(super) fn tells(&mut self, id: &str, story: &Story) -> &mut Self {
        self.actor(id).story = Some(story.clone());
        self.look();
        self
    }

    /// Sessions are so, since now.
    pub(super) fn are(&mut self, ids: &[&str], status: Status) -> &mut Self {
        let since = self.moment().wall;
        for id in ids {
            let actor = self.actor(id);
            let progress = if status == Status::Stuck { actor.row.last_progress } else { Some(since) };
            let actions = actor.row.actions.clone();
            actor.row = Row { last_progress: progress, actions, ..row(id, status, since) };
            actor.seen = false;
            if status != Status::NeedsPermission {
                actor.request = None;
            }
        }
        self.look();
        self
    }

    /// A session is so, since now.
    pub(super) fn is(&mut self, id: &str, status: Status) -> &mut Self {
        self.are(&[id], status)
    }

    /// A session asks for a permission, since now. The text is known where it can be answered from here.
    pub(super) fn asks(&mut self, id: &str, request: u64, what: Option<&str>) -> &mut Self {
        self.actor(id).request = Some((request, what.map(str::to_owned), what.is_some()));
        self.is(id, Status::NeedsPermission)
    }

    /// A session completes a turn that took so long.
    pub(super) fn completes(&mut self, id: &str, took: Span) -> &mut Self {
        let at = self.moment().wall;
        self.actor(id).completed = Some(Completed { at, took });
        self.is(id, Status::Idle)
    }

    /// Something of a session is otherwise.
    pub(super) fn but(&mut self, id: &str, change: impl FnOnce(&mut Actor)) -> &mut Self {
        change(self.actor(id));
        self.look();
        self
    }

    pub(super) fn goes(&mut self, id: &str) -> &mut Self {
        self.actors.remove(&key(id));
        self.look();
        self
    }

    /// Lets time pass up to an offset.
    pub(super) fn at(&mut self, until: impl Into<At>) -> &mut Self {
        let At(until) = until.into();
        while self.now < until {
            let wake = self.alerts.wake_at().map(|at| at - START);
            assert!(wake.is_none_or(|at| at > self.now), "to be woken at {wake:?}, in the past");
            let next = self.actors.values().flat_map(|actor| self.next_of(actor)).chain(wake);
            self.now = next.fold(until, Span::min);
            self.look();
        }
        self
    }

    /// When a story goes on by itself.
    fn next_of(&self, actor: &Actor) -> Vec<Span> {
        let Some(story) = &actor.story else { return Vec::new() };
        let lines = story.written.iter().map(|(at, _)| *at).filter(|at| *at > self.now);
        lines.min().into_iter().chain(story.verdict(self.now).recheck_at.map(|at| at - START)).collect()
    }

    /// The machine woke from sleep now.
    pub(super) fn wakes(&mut self) -> &mut Self {
        self.woke = Some(self.now);
        self.look();
        self
    }

    /// The user or the server closes the popup of a session.
    pub(super) fn closes(&mut self, id: &str, by_user: bool) -> Popup {
        let popup = self.popup(id).expect("a popup to close");
        self.open.remove(&popup.id);
        let told = self.alerts.closed(popup.id, by_user);
        assert_eq!(told.as_ref(), Some(&popup));
        assert_eq!(self.alerts.closed(popup.id, by_user), None, "it was open once");
        self.look();
        popup
    }

    /// The open popup that is about a session.
    pub(super) fn popup(&self, id: &str) -> Option<Popup> {
        self.open.values().find(|popup| popup.about.keys().contains(&key(id))).cloned()
    }

    /// What was raised so far: when, in milliseconds, and what for.
    pub(super) fn told(&self) -> Vec<(i64, Cause)> {
        self.raised.iter().map(|(at, popup)| (*at, popup.cause)).collect()
    }

    /// An update now.
    pub(super) fn look(&mut self) {
        let at = self.moment();
        for actor in self.actors.values_mut() {
            actor.follow_story(self.now, at);
        }
        let now = Now { at, minute: self.minute, started: START + self.started, woke: self.woke.map(|at| START + at) };
        let changes = self.alerts.update(self.actors.values().map(Actor::alertable), &now);
        self.updates += 1;
        for change in changes {
            match change {
                Change::Raise(popup) => {
                    self.raised.push((self.now.0, popup.clone()));
                    let before = self.open.insert(popup.id, popup);
                    assert_eq!(before, None, "raised under the name of an open one");
                }
                Change::Replace(popup) => {
                    self.replaced += 1;
                    assert!(matches!(popup.about, About::Summary(_)), "nothing that answers is changed in place");
                    assert!(self.open.insert(popup.id, popup).is_some(), "replaced, and not open");
                }
                Change::Withdraw(id) => assert!(self.open.remove(&id).is_some(), "withdrawn, and not open"),
            }
        }
        let alone = self.open.values().filter(|popup| matches!(popup.about, About::One(_))).count();
        assert!(alone <= 3 && self.open.len() - alone <= 1, "more than three and a summary: {:#?}", self.open);
        self.check(at);
    }

    /// What must hold after every update.
    fn check(&self, at: Moment) {
        assert!(self.alerts.open().eq(self.open.values()));
        assert!(self.alerts.remembered() <= self.actors.len(), "what is gone is remembered");
        assert!(self.alerts.wake_at().is_none_or(|wake| wake > at.awake), "to be woken in the past");
        let mut about = BTreeSet::new();
        for popup in self.open.values() {
            assert!(!popup.about.keys().is_empty());
            for key in popup.about.keys() {
                assert!(about.insert(key.clone()), "two popups about {key:?}: {:#?}", self.open);
                let row = &self.actors.get(key).expect("a popup about a session that is gone").row;
                let holds = Cause::of_row(row).or((row.status == Status::Idle && row.unseen).then_some(Cause::Done));
                let cause = holds.expect("a popup for a cause that is over");
                match popup.about {
                    About::One(_) => assert_eq!(cause, popup.cause, "of {key:?}"),
                    About::Summary(_) => assert!(popup.cause <= cause, "the summary tells the most pressing"),
                }
            }
            if let Some(asked) = &popup.asked {
                let actor = &self.actors[&popup.about.keys()[0]];
                if popup.cause == Cause::NeedsInput {
                    // One that can be answered no longer keeps its buttons, and refuses.
                    if let Some(form) = &actor.question {
                        assert_eq!((asked.request, &*asked.text), (form.mark(), &*form.text));
                        let choices = form.choices.iter().map(|choice| &*choice.words);
                        assert!(choices.eq(asked.choices.iter().map(|it| &**it)));
                    }
                } else {
                    let request = actor.request.as_ref().expect("Approve without a request");
                    assert_eq!(asked.request, request.0);
                    assert!(!request.2 || request.1.as_ref().is_none_or(|text| *text == asked.text));
                }
                assert!(popup.body.contains(&asked.text));
            }
            assert!(popup.title.chars().count() <= 200 && popup.body.chars().count() <= 1000, "{popup:#?}");
        }
    }
}

impl Actor {
    /// What the session's story comes to by now.
    fn follow_story(&mut self, now: Span, at: Moment) {
        let Some(story) = &self.story else { return };
        let session = Session {
            id: (*self.key.1).into(),
            facts: story.facts(now),
            owner: story.owner.clone(),
            live: story.live.clone(),
            seen: story.seen.filter(|seen| *seen <= at.wall),
            touched: START,
            ..Session::default()
        };
        self.row = session.row(at, &story.limits).0;
        self.request = session.facts.requests.first().map(|request| (request.at.wall.0.unsigned_abs(), None, false));
        let closed = session.facts.closed.filter(|closed| closed.ending == Ending::Completed);
        self.completed = closed.map(|closed| Completed { at: closed.at.wall, took: closed.at.wall - START });
    }

    fn alertable(&self) -> Alertable<'_> {
        let request = self.request.as_ref();
        let request = request.map(|(id, what, answerable)| Request {
            id: *id,
            kind: "shell",
            what: what.as_deref(),
            answerable: *answerable,
        });
        Alertable {
            key: &self.key,
            row: &self.row,
            request,
            question: self.question.as_ref().map(|form| Posed { mark: form.mark(), form }),
            completed: self.completed,
            seen: self.seen,
            cli_notifies: self.cli_notifies,
        }
    }
}
