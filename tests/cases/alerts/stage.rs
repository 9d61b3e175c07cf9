//! A stage: sessions that change over simulated time, and the popups that they cause.
//!
//! The stage updates as the engine does: when a line is written, when a verdict or the notifications are due for a
//! recheck, and when the test changes something. After every update it checks the invariants.

use super::super::story::{At, START, Story};
use pilotlight_core::action::Action;
use pilotlight_core::agent::Agent;
use pilotlight_core::alert::{
    About, Alertable, Alerts, Cause, Change, Completed, Now, OpenQuestion, Popup, PopupId, Quiet, Request, Settings,
    Triggers,
};
use pilotlight_core::fleet::{BackgroundView, Kind, Label, Row, Session};
use pilotlight_core::form::Form;
use pilotlight_core::session::{HomeId, Key, Observed};
use pilotlight_core::short_reason::ShortReason;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::turn::Ending;
use pilotlight_core::verdict::Status;
use std::collections::{BTreeMap, BTreeSet};

/// How long before a stage begins the program was started, so that its grace period is over.
const BEFORE: Span = Span::minutes(1);

/// A session on the stage.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) key: Key,
    pub(super) row: Row,
    pub(super) request: Option<(u64, Option<String>, bool)>,
    pub(super) question: Option<Form>,
    pub(super) completed: Option<Completed>,
    /// A command wants to approve its request.
    pub(super) wanted: bool,
    pub(super) cli_notifies: bool,
    pub(super) has_terminal: bool,
    /// What the desktop says about that terminal.
    has_focus: Option<bool>,
    story: Option<Story>,
}

/// The sessions, the time, and what was shown.
pub(super) struct Stage {
    pub(super) alerts: Alerts,
    /// When commands are run; on a stage that runs none, they are not updated.
    pub(super) triggers: Option<Triggers>,
    /// What commands were told so far: the offset in milliseconds, the session and the trigger.
    pub(super) told: Vec<(i64, String, &'static str)>,
    pub(super) actors: BTreeMap<Key, Actor>,
    /// All popups raised so far, with their offsets in milliseconds.
    pub(super) raised: Vec<(i64, Popup)>,
    pub(super) open: BTreeMap<PopupId, Popup>,
    /// How often a popup was replaced in place.
    pub(super) replaced: usize,
    pub(super) updates: usize,
    /// The sessions of which it was asked whether their terminals have the focus, with the offsets in milliseconds.
    pub(super) queries: Vec<(i64, String)>,
    pub(super) minute: u16,
    pub(super) woke: Option<Span>,
    started: Span,
    now: Span,
    /// Jumps of the wall clock: when, and by how much.
    jumps: Vec<(Span, Span)>,
}

/// A made-up row.
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
        because: (&*format!("because of {status}")).into(),
        unseen: status == Status::Idle,
        owner: None,
        background: BackgroundView::default(),
        actions: vec![Action::Reconnect, Action::Stop, Action::Resume, Action::ShowTerminal],
        label: Label { who: id.into(), agent: None, title: Some(format!("Session {id}").into()) },
        host: None,
        reached: true,
        turn: None,
        short_reason: ShortReason::default(),
        is_seen: false,
        wakes_at: None,
        limit_until: None,
        context: None,
        request: None,
        question: None,
        agent: Agent::default(),
    }
}

pub(super) fn key(id: &str) -> Key {
    Key::new(HomeId::default(), id)
}

impl Stage {
    /// A stage without sessions; the program has run for a while.
    pub(super) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self::started(settings, Span::ZERO - BEFORE)
    }

    /// The program starts at offset 0; its first update is the test's first step.
    pub(super) fn starting() -> Self {
        Self { now: Span::ZERO, started: Span::ZERO, ..Self::blank(Settings::default()) }
    }

    fn started(settings: Settings, at: Span) -> Self {
        let mut stage = Self { now: at, started: at, ..Self::blank(settings) };
        stage.update();
        stage.now = Span::ZERO;
        stage.update();
        stage
    }

    fn blank(settings: Settings) -> Self {
        Self {
            alerts: Alerts::new(settings, Quiet::default()),
            triggers: None,
            told: Vec::new(),
            actors: BTreeMap::new(),
            raised: Vec::new(),
            open: BTreeMap::new(),
            replaced: 0,
            updates: 0,
            queries: Vec::new(),
            minute: 12 * 60,
            woke: None,
            started: Span::ZERO,
            now: Span::ZERO,
            jumps: Vec::new(),
        }
    }

    /// Sets the wall clock `by` ahead at `at` seconds: the machine slept, or somebody set the clock.
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
            wanted: false,
            cli_notifies: false,
            has_terminal: false,
            has_focus: None,
            story: None,
        })
    }

    /// Lets a session follow a story from now on.
    pub(super) fn follows(&mut self, id: &str, story: &Story) -> &mut Self {
        self.actor(id).story = Some(story.clone());
        self.update();
        self
    }

    /// Gives sessions a status from now on.
    pub(super) fn are(&mut self, ids: &[&str], status: Status) -> &mut Self {
        let since = self.moment().wall;
        for id in ids {
            let actor = self.actor(id);
            let progress = if status == Status::Stuck { actor.row.last_progress } else { Some(since) };
            let actions = actor.row.actions.clone();
            actor.row = Row { last_progress: progress, actions, ..row(id, status, since) };
            if status != Status::NeedsPermission {
                actor.request = None;
            }
        }
        self.update();
        self
    }

    /// Gives a session a status from now on.
    pub(super) fn is(&mut self, id: &str, status: Status) -> &mut Self {
        self.are(&[id], status)
    }

    /// Opens a permission request. `what` is its text, which is known only if it can be answered from here.
    pub(super) fn asks(&mut self, id: &str, request: u64, what: Option<&str>) -> &mut Self {
        self.actor(id).request = Some((request, what.map(str::to_owned), what.is_some()));
        self.is(id, Status::NeedsPermission)
    }

    /// Completes a turn that took `took`.
    pub(super) fn completes(&mut self, id: &str, took: Span) -> &mut Self {
        let at = self.moment().wall;
        self.actor(id).completed = Some(Completed { at, took });
        self.is(id, Status::Idle)
    }

    /// Changes anything about a session.
    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut Actor)) -> &mut Self {
        change(self.actor(id));
        self.update();
        self
    }

    pub(super) fn disappears(&mut self, id: &str) -> &mut Self {
        self.actors.remove(&key(id));
        self.update();
        self
    }

    /// Lets time pass up to an offset.
    pub(super) fn at(&mut self, until: impl Into<At>) -> &mut Self {
        let At(until) = until.into();
        while self.now < until {
            let wake = self.alerts.wake_at().map(|at| at - START);
            assert!(wake.is_none_or(|at| at > self.now), "a wakeup in the past: {wake:?}");
            let told = self.triggers.as_ref().and_then(Triggers::wake_at).map(|at| at - START);
            assert!(told.is_none_or(|at| at > self.now), "a wakeup in the past: {told:?}");
            let next = self.actors.values().flat_map(|actor| self.changes_of(actor)).chain(wake).chain(told);
            self.now = next.fold(until, Span::min);
            self.update();
        }
        self
    }

    /// The next times at which a story changes by itself.
    fn changes_of(&self, actor: &Actor) -> Vec<Span> {
        let Some(story) = &actor.story else { return Vec::new() };
        let lines = story.written.iter().map(|(at, _)| *at).filter(|at| *at > self.now);
        lines.min().into_iter().chain(story.verdict(self.now).recheck_at.map(|at| at - START)).collect()
    }

    /// A session has a terminal from now on. The desktop says at once whether that has the focus, or nothing at all.
    pub(super) fn in_terminal(&mut self, id: &str, has_focus: Option<bool>) -> &mut Self {
        let actor = self.actor(id);
        (actor.has_terminal, actor.has_focus) = (true, has_focus);
        self
    }

    /// Answers what the last update wants to know. Returns whether there was anything to answer.
    fn answer_queries(&mut self) -> bool {
        let of_commands = self.triggers.as_ref().map(Triggers::queries).unwrap_or_default();
        let keys: BTreeSet<Key> = self.alerts.queries().iter().chain(of_commands).cloned().collect();
        let mut is_answered = false;
        for key in keys {
            let actor = &self.actors[&key];
            assert!(actor.has_terminal, "{key:?} has no terminal");
            self.queries.push((self.now.0, key.id.to_string()));
            if let Some(has_focus) = actor.has_focus {
                self.alerts.focus(&key, has_focus);
                if let Some(triggers) = &mut self.triggers {
                    triggers.focus(&key, has_focus);
                }
                is_answered = true;
            }
        }
        is_answered
    }

    /// The machine wakes from sleep now.
    pub(super) fn wakes(&mut self) -> &mut Self {
        self.woke = Some(self.now);
        self.update();
        self
    }

    /// The user or the server closes a session's popup.
    pub(super) fn closes(&mut self, id: &str, by_user: bool) -> Popup {
        let popup = self.popup(id).expect("a popup to close");
        self.open.remove(&popup.id);
        let closed = self.alerts.closed(popup.id, by_user);
        assert_eq!(closed.as_ref(), Some(&popup));
        assert_eq!(self.alerts.closed(popup.id, by_user), None, "it closes only once");
        self.update();
        popup
    }

    /// The open popup about a session.
    pub(super) fn popup(&self, id: &str) -> Option<Popup> {
        self.open.values().find(|popup| popup.about.keys().contains(&key(id))).cloned()
    }

    /// The offset in milliseconds and the cause of each popup raised so far.
    pub(super) fn notified(&self) -> Vec<(i64, Cause)> {
        self.raised.iter().map(|(at, popup)| (*at, popup.cause)).collect()
    }

    /// Runs an update now.
    pub(super) fn update(&mut self) {
        let at = self.moment();
        for actor in self.actors.values_mut() {
            actor.follow_story(self.now, at);
        }
        let now = Now { at, minute: self.minute, started: START + self.started, woke: self.woke.map(|at| START + at) };
        let changes = self.alerts.update(self.actors.values().map(Actor::alertable), &now);
        if let Some(triggers) = &mut self.triggers {
            let sessions: Vec<_> = self.actors.values().map(Actor::alertable).collect();
            let told = triggers.update(&sessions, &self.alerts.quiet, &now);
            self.told.extend(told.into_iter().map(|(key, it)| (self.now.0, key.id.to_string(), it.name())));
        }
        self.updates += 1;
        for change in changes {
            match change {
                Change::Raise(popup) => {
                    self.raised.push((self.now.0, popup.clone()));
                    let before = self.open.insert(popup.id, popup);
                    assert_eq!(before, None, "raised with the id of an open one");
                }
                Change::Replace(popup) => {
                    self.replaced += 1;
                    assert!(
                        matches!(popup.about, About::Summary(_)),
                        "a popup that can answer is never changed in place"
                    );
                    assert!(self.open.insert(popup.id, popup).is_some(), "replaced, but not open");
                }
                Change::Withdraw(id) => assert!(self.open.remove(&id).is_some(), "withdrawn, but not open"),
            }
        }
        let single = self.open.values().filter(|popup| matches!(popup.about, About::One(_))).count();
        assert!(single <= 3 && self.open.len() - single <= 1, "more than three and a summary: {:#?}", self.open);
        self.check(at);
        if self.answer_queries() {
            self.update();
        }
    }

    /// The invariants.
    fn check(&self, at: Moment) {
        assert!(self.alerts.open().eq(self.open.values()));
        assert!(self.alerts.remembered() <= self.actors.len(), "a session that is gone is remembered");
        assert!(self.alerts.wake_at().is_none_or(|wake| wake > at.awake), "a wakeup in the past");
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
                    About::Summary(_) => assert!(popup.cause <= cause, "a summary has its most pressing cause"),
                }
            }
            if let Some(asked) = &popup.asked {
                let actor = &self.actors[&popup.about.keys()[0]];
                if popup.cause == Cause::NeedsInput {
                    // A question that can no longer be answered keeps its buttons; clicks are refused.
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
    /// Updates the row and the rest from the session's story.
    fn follow_story(&mut self, now: Span, at: Moment) {
        let Some(story) = &self.story else { return };
        let session = Session {
            id: (*self.key.id).into(),
            liveness: story.liveness.clone(),
            seen: story.seen.filter(|seen| *seen <= at.wall),
            observed: Observed {
                facts: story.facts(now),
                owner: story.owner.clone(),
                touched: START,
                ..Observed::default()
            },
            ..Session::default()
        };
        self.row = session.row(at, &story.limits).0;
        self.request =
            session.observed.facts.requests.first().map(|request| (request.at.wall.0.unsigned_abs(), None, false));
        let closed = session.observed.facts.closed.filter(|closed| closed.ending == Ending::Completed);
        self.completed = closed.map(|closed| Completed { at: closed.at.wall, took: closed.at.wall - START });
    }

    fn alertable(&self) -> Alertable<'_> {
        let request = self.request.as_ref();
        let request = request.map(|(id, what, answerable)| Request {
            id: *id,
            kind: "shell",
            what: what.as_deref(),
            probable: false,
            answerable: *answerable,
            can_be_let: false,
            approval_requested: self.wanted,
        });
        Alertable {
            key: &self.key,
            row: &self.row,
            request,
            question: self.question.as_ref().map(|form| OpenQuestion { mark: form.mark(), form }),
            completed: self.completed,
            last_message: None,
            cli_notifies: self.cli_notifies,
            has_terminal: self.has_terminal,
        }
    }
}
