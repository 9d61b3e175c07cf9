//! Turns the engine's updates into popups, and clicks on popups into orders.
//!
//! [`alert`](pilotlight_core::alert) decides which popups to raise, and [`notify`](super::notify) shows them; this connects
//! the two. It runs on the engine's thread, in the [`feed`](super::feed). Clicks, mutes and pauses arrive as
//! [`NotifierEvent`]s and are handled at the next update, which their sender requests. A click is carried out against
//! the current state of the sessions (`clicks`): a request that is over is not approved.

mod clicks;

use super::click_handler::ClickHandler;
use super::focus::{FocusFinder, process_in_terminal};
use super::messages::{NotifierEvent, PopupEvent};
use super::mute::{Mute, MuteChange};
use super::next;
use super::notifications::NotificationState;
use super::notify::{Note, Offer, Popups};
use super::on_change::OnChange;
use super::trust::DesktopTrust;
use super::view::Effect;
use clicks::{ClickAction, question};
use pilotlight_core::action::{Action, ServerState, is_bridged, offer};
use pilotlight_core::alert::{
    Alertable, Alerts, Completed, Kinds, Now, OpenQuestion, PopupId, Quiet, Request, Settings,
};
use pilotlight_core::fleet::{Kind as Use, Row, Session};
use pilotlight_core::order::Outcome;
use pilotlight_core::session::Key;
use pilotlight_core::text::{NAME_MAX, plain};
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::turn::Ending;
use pilotlight_core::verdict::Status;
use pilotlight_core::words::refusal::Refusal;
use pilotlight_engine::config::{Config, Notifications};
use pilotlight_engine::{Fleet, Shown};
use pilotlight_system::clock::{WallClock, slept};
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::state_file::{self, Unusable};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

/// The file in the state folder that stores mutes and a pause.
pub(crate) const FILE: &str = "quiet.json";
/// The version of its format. Version 0 had no version.
const VERSION: u32 = 1;
/// Between two updates, less sleep than this does not count as a wake-up: the machine was only about to sleep.
const SLEEP_MIN: Span = Span::seconds(5);

/// A turn that was observed while it was open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedTurn {
    opened: Time,
    /// Copilot itself notifies its user when the turn is done.
    cli_notifies: bool,
    /// When it ended, according to the log.
    ended: Option<Time>,
}

impl ObservedTurn {
    /// The duration of the turn that ended at this time. Zero for a turn that was never observed open: it was short.
    fn duration(self, ended: Time) -> Span {
        if self.ended == Some(ended) { (ended - self.opened).max(Span::ZERO) } else { Span::ZERO }
    }
}

/// Whether a session approves everything.
#[derive(Clone, Copy)]
struct Approvals {
    all: bool,
    /// By its log.
    logged: bool,
    /// By the word of its bridge or server.
    reported: Option<bool>,
}

/// Raises popups, and carries out clicks on them.
pub(crate) struct Notifier {
    alerts: Alerts,
    popups: Popups,
    on_change: OnChange,
    focus_finder: FocusFinder,
    events: Receiver<NotifierEvent>,
    click_handler: ClickHandler,
    trust: DesktopTrust,
    /// The state of notifications, for the menu and as it is saved.
    notifications: NotificationState,
    state_file: Option<PathBuf>,
    /// The last turn of each session that was observed open.
    turns: BTreeMap<Key, ObservedTurn>,
    /// Whether each session approves everything.
    approving: BTreeMap<Key, Approvals>,
    started: Option<Time>,
    /// The total time that the machine had slept at the last update.
    asleep: Option<Span>,
    woke: Option<Time>,
    /// Whether popups tell how a session's last message begins.
    shows_messages: bool,
}

impl Notifier {
    /// Creates a notifier, with the mutes and the pause that `state_folder` stores.
    #[expect(clippy::too_many_arguments, reason = "each has a different owner, and only this type needs them all")]
    pub(crate) fn new(
        config: &Notifications,
        popups: Popups,
        on_change: OnChange,
        focus_finder: FocusFinder,
        events: Receiver<NotifierEvent>,
        click_handler: ClickHandler,
        state_folder: Option<&Path>,
        trust: DesktopTrust,
    ) -> Self {
        let mut state_file = state_folder.map(|folder| folder.join(FILE));
        let quiet = state_file.as_deref().map_or(Ok(Quiet::default()), read).unwrap_or_else(|error| {
            let path = state_file.take_if(|_| matches!(error, Unusable::Later(_))).or_else(|| state_file.clone());
            let path = path.unwrap_or_default();
            log::warn!("{} cannot be used: {}; nothing is muted or paused", private(&path.display()), cause(&error));
            Quiet::default()
        });
        Self {
            alerts: Alerts::new(rules_of(config), quiet.clone()),
            popups,
            on_change,
            focus_finder,
            events,
            click_handler,
            trust,
            notifications: NotificationState {
                enabled: config.enabled,
                quiet_hours: config.rules.quiet_hours,
                is_quiet_hour: false,
                quiet,
                detail: config.rules.detail,
            },
            state_file,
            turns: BTreeMap::new(),
            approving: BTreeMap::new(),
            started: None,
            asleep: None,
            woke: None,
            shows_messages: true,
        }
    }

    /// Applies new settings, from the next update on.
    pub(crate) fn configure(&mut self, config: &Config, homes: &[PathBuf]) {
        self.shows_messages = config.list.last_message;
        let (terminal, on_change, config) = (&config.actions.terminal, &config.on_change, &config.notifications);
        self.on_change.configure(on_change, &config.rules);
        self.alerts.settings = rules_of(config);
        self.notifications.enabled = config.enabled;
        self.notifications.quiet_hours = config.rules.quiet_hours;
        self.notifications.detail = config.rules.detail;
        self.click_handler.configure(homes, terminal, config.rules.detail);
    }

    /// These homes are followed as well, from now on.
    pub(crate) fn follow_also(&self, homes: &[PathBuf]) {
        self.click_handler.follow_also(homes);
    }

    /// Shows a notification that is not about a session.
    pub(crate) fn note(&self, note: &Note) {
        self.click_handler.note(note);
    }

    /// The same. `failed` is called if it cannot be shown.
    pub(crate) fn note_or(&self, note: &Note, failed: impl FnOnce() + Send + 'static) {
        self.click_handler.note_or(None, note, failed);
    }

    /// The state of notifications, for the menu.
    pub(crate) const fn notifications(&self) -> &NotificationState {
        &self.notifications
    }

    /// Whether popups cannot approve, because their server was started after a session.
    pub(crate) fn is_server_young(&self) -> bool {
        self.trust.is_server_young()
    }

    /// When [`update`](Self::update) must be called even if nothing changed, by the awake clock.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        self.alerts.wake_at().into_iter().chain(self.on_change.wake_at()).min()
    }

    /// Handles events, and raises, replaces or withdraws popups for the current state of the sessions.
    pub(crate) fn update(&mut self, fleet: &Fleet, now: Moment) {
        while let Ok(event) = self.events.try_recv() {
            match event {
                NotifierEvent::Mute(mute) => mute.apply(&mut self.alerts.quiet, now.wall),
                NotifierEvent::Popup(id, event) => self.handle_popup(id, event, fleet, now),
                NotifierEvent::Note { about, note, became, failed } => {
                    self.note_about(&about, note, became, failed, fleet);
                }
                NotifierEvent::Focus { about, has_focus } => {
                    self.alerts.focus(&about, has_focus);
                    self.on_change.focus(&about, has_focus);
                }
            }
        }
        self.trust.observe(fleet);
        self.observe_turns(fleet);
        self.observe_approvals(fleet);
        let now = self.timing(now);
        self.notifications.is_quiet_hour = self.alerts.is_quiet_hour(now.minute);
        let sessions: Vec<_> = fleet
            .shown()
            .map(|shown| {
                let turn = self.turns.get(shown.key).copied();
                alertable(shown.key, shown.row, shown.session, turn, self.shows_messages)
            })
            .collect();
        for change in self.alerts.update(sessions.iter().copied(), &now) {
            self.popups.apply(change);
        }
        self.on_change.update(&sessions, &self.alerts.quiet, &now);
        self.find_focus(fleet);
        self.save();
    }

    /// Finds out whether the terminals have the focus of which popups or commands want to know it.
    fn find_focus(&self, fleet: &Fleet) {
        let keys: BTreeSet<_> = self.alerts.queries().iter().chain(self.on_change.queries()).collect();
        for key in keys {
            let Some(shown) = fleet.shown_as(key) else { continue };
            if let Some(pid) = process_in_terminal(shown.session, shown.row.status) {
                self.focus_finder.find(key.clone(), pid, shown.session.observed.pane.clone());
            }
        }
    }

    /// Closes all popups, at exit.
    pub(crate) async fn close(self) {
        self.popups.close().await;
    }

    fn timing(&mut self, now: Moment) -> Now {
        let asleep = slept(now);
        if self.asleep.replace(asleep).is_some_and(|before| asleep - before > SLEEP_MIN) {
            self.woke = Some(now.awake);
        }
        let started = *self.started.get_or_insert(now.awake);
        Now { at: now, minute: WallClock::at(now.wall).minute, started, woke: self.woke }
    }

    fn observe_turns(&mut self, fleet: &Fleet) {
        self.turns.retain(|key, _| fleet.shown_as(key).is_some());
        for Shown { key, row, session, reader, .. } in fleet.shown() {
            let facts = &session.observed.facts;
            let opened = match &session.remote {
                Some(_) => row.turn.map(|turn| turn.since),
                None => facts.turn.as_ref().map(|turn| turn.opened.wall),
            };
            let Some(opened) = opened else {
                // The first end after an observed turn is its own; a later one is that of a turn that was not observed.
                let ended = match &session.remote {
                    Some(remote) => remote.completed,
                    None => facts.closed.as_ref().filter(|closed| !closed.is_guess()).map(|closed| closed.at.wall),
                };
                if let Some(turn) = self.turns.get_mut(key) {
                    turn.ended = turn.ended.or(ended);
                }
                continue;
            };
            if self.turns.get(key).is_none_or(|turn| turn.opened != opened) {
                let is_notified = session.observed.about.kind == Use::Terminal && self.alerts.settings.kinds.done;
                // On another machine, nobody hears that.
                let cli_notifies = is_notified && reader.is_some_and(|reader| reader.agent_notifies());
                self.turns.insert(key.clone(), ObservedTurn { opened, cli_notifies, ended: None });
            }
        }
    }

    /// Tells when a session begins to approve everything while it runs. One that was started so has no prompt yet, and no
    /// bridge that said otherwise before.
    fn observe_approvals(&mut self, fleet: &Fleet) {
        self.approving.retain(|key, _| fleet.get(key).is_some());
        for (key, entry) in fleet.entries() {
            let session = entry.session();
            let now = Approvals {
                all: session.approves_all(),
                logged: session.observed.facts.approves_all.is_some(),
                reported: session.reported_approvals(),
            };
            let Some(before) = self.approving.insert(key.clone(), now) else { continue };
            // The first word of a bridge or a server says nothing of when it began.
            let has_begun = !before.logged && now.logged && session.observed.facts.marks.prompt.is_some();
            let has_begun = has_begun || before.reported == Some(false);
            let is_shown = self.notifications.enabled && self.alerts.quiet.paused().is_none();
            if now.all && !before.all && has_begun && is_shown {
                let who = plain(&entry.row.label.who, NAME_MAX);
                let body = "Approvals were switched off. If that was not you, stop it, and end the session";
                let note = Note::not_done(format!("{who} approves everything now"), body);
                self.note_about(key, note, false, None, fleet);
            }
        }
    }

    /// Saves mutes and pauses if they changed.
    fn save(&mut self) {
        if self.alerts.quiet == self.notifications.quiet {
            return;
        }
        self.notifications.quiet = self.alerts.quiet.clone();
        let Some(path) = &self.state_file else { return };
        let text = state_file::text_of(VERSION, &self.notifications.quiet);
        if let Err(error) = text.and_then(|text| state_file::replace(path, &text)) {
            log::warn!(
                "mutes and pauses cannot be saved in {}: {}; they end with the program",
                private(&path.display()),
                cause(&*error)
            );
        }
    }

    /// Shows a note about a session, with what became of it and the next thing to do, which is not what `failed`.
    fn note_about(&self, key: &Key, mut note: Note, became: bool, failed: Option<Action>, fleet: &Fleet) {
        let offer = fleet.shown_as(key).map(|source| {
            let Shown { row, session, .. } = source;
            if became {
                note.body = format!("{}\n{}", note.body, next::became(row, session, self.notifications.detail));
            }
            next::next(&source, failed)
        });
        self.click_handler.note_for(Some(key), &note.offering(offer.unwrap_or_else(Offer::all)));
    }

    /// Carries out a click on a popup, unless the popup was withdrawn in the meantime.
    fn handle_popup(&mut self, id: PopupId, event: PopupEvent, fleet: &Fleet, now: Moment) {
        let Some(popup) = self.alerts.closed(id, clicks::settles(event)) else { return };
        let button = match event {
            PopupEvent::Closed { .. } => return,
            PopupEvent::Default => None,
            PopupEvent::Action(button) => Some(button),
        };
        let present = popup.about.keys().iter().filter_map(|key| fleet.shown_as(key));
        let Some(shown) = present.min_by(|a, b| a.row.sort_key().cmp(&b.row.sort_key())) else {
            let gone = Outcome::Refused("the session is gone".into());
            return self.click_handler.note(&Note::refused("Pilotlight", &gone));
        };
        let (key, row) = (shown.key, shown.row);
        match clicks::resolve(&popup, button, &shown) {
            ClickAction::Do(effect) => self.click_handler.act(Some(key), effect),
            ClickAction::Mute => {
                Mute::Session(row.id.clone(), MuteChange::Mute).apply(&mut self.alerts.quiet, now.wall);
                self.click_handler.act(Some(key), Effect::Seen);
            }
            ClickAction::Refuse(why) => {
                self.click_handler.report_refusal(key, &row.label.who, why);
            }
        }
    }
}

fn rules_of(config: &Notifications) -> Settings {
    let kinds = if config.enabled { config.rules.kinds } else { NO_KINDS };
    Settings { kinds, ..config.rules.clone() }
}

/// No popups at all.
const NO_KINDS: Kinds = Kinds {
    needs_permission: false,
    needs_input: false,
    permission_lost: false,
    stuck: false,
    crashed: false,
    failed: false,
    done: false,
};

/// What notifications depend on in a session; `turn` is its last turn, if that was observed open.
pub(crate) fn alertable<'a>(
    key: &'a Key,
    row: &'a Row,
    session: &'a Session,
    turn: Option<ObservedTurn>,
    shows_message: bool,
) -> Alertable<'a> {
    // An order under way will be over when the user clicks; if not, the click is refused with a reason.
    let may = |action| session.control.under_way.is_some() || offer(action, session, row.status).is_ok();
    let open = session.observed.facts.requests.iter().find(|request| !request.is_consent());
    let request = open.filter(|_| row.status == Status::NeedsPermission).map(|request| Request {
        id: request.id.number(),
        kind: &request.kind,
        what: request.asks.as_deref(),
        probable: request.is_probable,
        answerable: match session.control.server {
            ServerState::Refused(_) | ServerState::NotListening | ServerState::Unknown
                if session.remote.is_none() && !is_bridged(session) =>
            {
                false
            }
            _ => may(Action::Approve),
        },
        can_be_let: offer(Action::Approve, session, row.status) == Err(Refusal::AnswerThere),
        approval_requested: session.is_approval_requested(),
    });
    let question = question(session).filter(|_| row.status == Status::NeedsInput && may(Action::Answer));
    let closed = session.observed.facts.closed.as_ref().filter(|_| session.observed.facts.turn.is_none());
    let closed = closed.filter(|closed| closed.ending == Ending::Completed).map(|closed| closed.at.wall);
    let closed = session.remote.as_ref().map_or(closed, |remote| remote.completed);
    let completed = closed.map(|at| Completed { at, took: turn.map_or(Span::ZERO, |turn| turn.duration(at)) });
    Alertable {
        key,
        row,
        request,
        question: question.map(|form| OpenQuestion { mark: form.mark(), form }),
        completed,
        last_message: session.observed.facts.last_message.as_deref().filter(|_| shows_message),
        cli_notifies: turn.is_some_and(|turn| turn.cli_notifies),
        has_terminal: process_in_terminal(session, row.status).is_some(),
    }
}

/// Reads mutes and a pause.
fn read(path: &Path) -> Result<Quiet, Unusable> {
    let text = state_file::read(path);
    if text.is_empty() && !path.exists() {
        return Ok(Quiet::default());
    }
    state_file::parse(&text, VERSION)
}

/// Whether the file at `path` cannot be used.
pub(crate) fn is_broken(path: &Path) -> bool {
    matches!(read(path), Err(Unusable::Broken(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::action::Bridge;
    use pilotlight_core::form::Form;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::owner::Owner;
    use pilotlight_core::question::Question;
    use pilotlight_core::session::{HomeId, Observed};
    use pilotlight_core::verdict::Asking;

    /// A bridge that was not tested with this release only watches, and would refuse an answer.
    #[test]
    fn a_popup_offers_no_answer_to_a_question_that_cannot_be_answered_from_here() {
        let asked = serde_json::json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"]});
        let form = Form::read("user_input.requested", &asked).unwrap();
        let question = Question { id: None, text: "Which color?".into(), choices: Vec::new() };
        let mut session = Session {
            observed: Observed { owner: Owner::Alive { pid: 1, started: None }, ..Observed::default() },
            ..Session::default()
        };
        session.liveness.has_active_work = Some(true);
        session.liveness.questions = vec![Asking { question, since: Time(0), form: Ok(form) }];
        let row = session.row(Moment::of(Time(0)), &Limits::default()).0;
        let row = Row { status: Status::NeedsInput, ..row };
        for (bridge, is_offered) in [(Bridge::Watches, false), (Bridge::Joined, true)] {
            session.control.bridge = Some(bridge);
            let key = Key::new(HomeId::default(), "a");
            assert_eq!(alertable(&key, &row, &session, None, true).question.is_some(), is_offered, "{bridge:?}");
        }
    }

    #[test]
    fn case_624_mutes_of_other_versions_are_read_or_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(read(&path).unwrap(), Quiet::default(), "no file");
        let mut quiet = Quiet::default();
        quiet.mute_session("a");
        let content = r#"{"paused": null, "sessions": ["a"], "folders": []}"#;
        for text in [content.to_owned(), format!(r#"{{"version": 1, "content": {content}}}"#)] {
            std::fs::write(&path, &text).unwrap();
            assert_eq!((read(&path).unwrap(), is_broken(&path)), (quiet.clone(), false), "{text}");
        }
        std::fs::write(&path, format!(r#"{{"version": 2, "content": {content}}}"#)).unwrap();
        assert!(matches!(read(&path), Err(Unusable::Later(2))) && !is_broken(&path));
        std::fs::write(&path, "").unwrap();
        assert!(is_broken(&path));
    }

    #[test]
    fn only_an_observed_turn_has_a_duration() {
        let mut turn = ObservedTurn { opened: Time(1000), cli_notifies: false, ended: None };
        assert_eq!(turn.duration(Time(5000)), Span::ZERO, "its end was not observed");
        turn.ended = Some(Time(5000));
        assert_eq!((turn.duration(Time(5000)), turn.duration(Time(9000))), (Span(4000), Span::ZERO));
    }
}
