//! From what the engine sees to popups, and from what the user does with them to orders.
//!
//! What is to be told is decided in [`alert`](crate::core::alert), how it is shown in [`notify`](super::notify); this is
//! what lies between. It lives on the engine's thread, in the [`feed`](super::feed): clicks, mutes and pauses come in as
//! [`Word`]s and are taken up at the next look, which each of them asks for. A click is carried out by what the sessions
//! are then: a request that is over is not approved. What each comes to is in `clicks`.

mod clicks;

use super::controller::ClickHandler;
use super::details::Source;
use super::menu::Menu;
use super::mute::{Mute, Notices, Voice};
use super::notify::{Clicked, Note, Popups};
use super::view::Effect;
use crate::agent::copilot::user_settings;
use crate::config::Notifications;
use crate::core::action::{Action, ServerState, is_bridged, offer};
use crate::core::alert::{Alertable, Alerts, Completed, Kinds, Now, PopupId, Posed, Quiet, Request, Settings};
use crate::core::fleet::{Kind as Use, Row, Session};
use crate::core::order::Outcome;
use crate::core::time::{Moment, Span, Time};
use crate::core::turn::Ending;
use crate::core::verdict::Status;
use crate::engine::{Fleet, Key};
use crate::system::clock::{WallClock, slept};
use crate::system::state_file;
use clicks::{Step, question};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

/// The file in the state folder that holds mutes and a pause.
pub(crate) const FILE: &str = "quiet.json";
/// A machine that slept for less than this, between two looks, was only about to.
const SLEEP: Span = Span::seconds(5);

/// What the notifier is told.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    /// What became of a popup.
    Clicked(PopupId, Clicked),
    /// What the user wants to hear, or no longer.
    Mute(Mute),
}

/// A turn that was seen open.
#[derive(Clone, Copy, Debug)]
struct Opened {
    at: Time,
    /// Its terminal tells by itself that it is done.
    told_there: bool,
    /// When it ended, by the log.
    ended: Option<Time>,
}

impl Opened {
    /// How long the turn took that ended then: one that nobody saw open was short.
    fn took(self, ended: Time) -> Span {
        if self.ended == Some(ended) { (ended - self.at).max(Span::ZERO) } else { Span::ZERO }
    }
}

/// Raises popups, and does what is clicked on them.
pub(crate) struct Notifier {
    alerts: Alerts,
    popups: Popups,
    words: Receiver<Word>,
    click_handler: ClickHandler,
    /// What the menu says of notifications, and what is kept.
    notices: Notices,
    /// Whether it is told that a turn is done.
    tells_done: bool,
    kept_at: Option<PathBuf>,
    /// The last turn of each session that was seen open.
    opened: BTreeMap<Key, Opened>,
    started: Option<Time>,
    /// How long the machine had slept at the last look.
    asleep: Option<Span>,
    woke: Option<Time>,
}

impl Notifier {
    /// Raises nothing yet. What is kept in `state_folder` is read now.
    pub(crate) fn new(
        config: &Notifications,
        popups: Popups,
        words: Receiver<Word>,
        click_handler: ClickHandler,
        state_folder: Option<&Path>,
    ) -> Self {
        let kept_at = state_folder.map(|folder| folder.join(FILE));
        let quiet = kept_at.as_deref().map(load).unwrap_or_default();
        let rules = rules_of(config);
        Self {
            tells_done: rules.kinds.done,
            alerts: Alerts::new(rules, quiet.clone()),
            popups,
            words,
            click_handler,
            notices: Notices {
                enabled: config.enabled,
                quiet_hours: config.rules.quiet_hours,
                is_quiet_hour: false,
                quiet,
                detail: config.rules.detail,
            },
            kept_at,
            opened: BTreeMap::new(),
            started: None,
            asleep: None,
            woke: None,
        }
    }

    /// Goes by these settings from the next update on.
    pub(crate) fn configure(&mut self, config: &Notifications, homes: &[PathBuf], terminal: &[String]) {
        self.alerts.settings = rules_of(config);
        self.tells_done = self.alerts.settings.kinds.done;
        self.notices.enabled = config.enabled;
        self.notices.quiet_hours = config.rules.quiet_hours;
        self.notices.detail = config.rules.detail;
        self.click_handler.configure(homes, terminal, config.rules.detail);
    }

    /// Shows a notification that is about no session.
    pub(crate) fn note(&self, note: &Note) {
        self.click_handler.note(note);
    }

    /// What the menu says of notifications.
    pub(crate) const fn notices(&self) -> &Notices {
        &self.notices
    }

    /// When, by the awake clock, [`update`](Self::update) is to be called though nothing changed.
    pub(crate) const fn wake_at(&self) -> Option<Time> {
        self.alerts.wake_at()
    }

    /// Takes note of how the sessions are now, and of what the user did.
    pub(crate) fn update(&mut self, fleet: &Fleet, menu: &Menu, now: Moment) {
        while let Ok(word) = self.words.try_recv() {
            match word {
                Word::Mute(mute) => mute.apply(&mut self.alerts.quiet, now.wall),
                Word::Clicked(id, clicked) => self.clicked(id, clicked, fleet, menu, now),
            }
        }
        self.note_turns(fleet);
        let now = self.take_the_time(now);
        self.notices.is_quiet_hour = self.alerts.is_quiet_hour(now.minute);
        let sessions = fleet
            .entries()
            .map(|(key, entry)| alertable(key, &entry.row, entry.session(), self.opened.get(key).copied()));
        for change in self.alerts.update(sessions, &now) {
            self.popups.apply(change);
        }
        self.keep();
    }

    /// Takes all popups away, for the end of the program.
    pub(crate) async fn end(self) {
        self.popups.end().await;
    }

    fn take_the_time(&mut self, now: Moment) -> Now {
        let asleep = slept(now);
        if self.asleep.replace(asleep).is_some_and(|before| asleep - before > SLEEP) {
            self.woke = Some(now.awake);
        }
        let started = *self.started.get_or_insert(now.awake);
        Now { at: now, minute: WallClock::at(now.wall).minute, started, woke: self.woke }
    }

    fn note_turns(&mut self, fleet: &Fleet) {
        self.opened.retain(|key, _| fleet.get(key).is_some());
        for (key, entry) in fleet.entries() {
            let facts = &entry.session().facts;
            let Some(turn) = &facts.turn else {
                // The first end that is seen after it is its own; what ends next was not seen open.
                let ended = facts.closed.as_ref().filter(|closed| !closed.is_guess()).map(|closed| closed.at.wall);
                if let Some(opened) = self.opened.get_mut(key) {
                    opened.ended = opened.ended.or(ended);
                }
                continue;
            };
            let at = turn.opened.wall;
            if self.opened.get(key).is_none_or(|opened| opened.at != at) {
                let in_terminal = entry.session().about.kind == Use::Terminal;
                let home = entry.path().parent().and_then(Path::parent).filter(|_| in_terminal && self.tells_done);
                let opened = Opened { at, told_there: home.is_some_and(user_settings::notifies), ended: None };
                self.opened.insert(key.clone(), opened);
            }
        }
    }

    /// Writes down what must survive a restart, where it changed.
    fn keep(&mut self) {
        if self.alerts.quiet == self.notices.quiet {
            return;
        }
        self.notices.quiet = self.alerts.quiet.clone();
        let Some(path) = &self.kept_at else { return };
        let text = serde_json::to_vec_pretty(&self.notices.quiet).map_err(Into::into);
        if let Err(error) = text.and_then(|text| state_file::replace(path, &text)) {
            tracing::warn!(
                "mutes and pauses cannot be saved in {}: {error:#}; they end with the program",
                path.display()
            );
        }
    }

    /// Does what a click on a popup asks for. One that was withdrawn meanwhile is for nothing.
    fn clicked(&mut self, id: PopupId, clicked: Clicked, fleet: &Fleet, menu: &Menu, now: Moment) {
        let Some(popup) = self.alerts.closed(id, clicks::settles(clicked)) else { return };
        let button = match clicked {
            Clicked::Closed { .. } => return,
            Clicked::Default => None,
            Clicked::Action(button) => Some(button),
        };
        let there = popup.about.keys().iter().filter_map(|key| Some((key, fleet.get(key)?)));
        let Some((key, entry)) = there.min_by(|(_, a), (_, b)| a.row.place().cmp(&b.row.place())) else {
            let gone = Outcome::Refused("the session is gone".into());
            return self.click_handler.note(&Note::after("Pilotlight", &gone));
        };
        match clicks::step(&popup, button, entry) {
            Step::Do(effect) => self.click_handler.act(Some(key), effect),
            Step::Mute => {
                Mute::Session(entry.row.id.clone(), Voice::Muted).apply(&mut self.alerts.quiet, now.wall);
                self.click_handler.act(Some(key), Effect::Seen);
            }
            Step::Show => {
                let source = Source { key, row: &entry.row, session: entry.session(), path: entry.path() };
                let summary = menu.details(&source, now);
                self.click_handler.act(Some(key), Effect::Seen);
                self.click_handler.note(&Note { title: summary.title, body: summary.body });
            }
            Step::Refuse(why) => self.click_handler.tell(&entry.row.label.who, &Outcome::Refused(why)),
        }
    }
}

fn rules_of(config: &Notifications) -> Settings {
    let kinds = if config.enabled { config.rules.kinds } else { NOTHING };
    Settings { kinds, ..config.rules.clone() }
}

/// Nothing is told.
const NOTHING: Kinds = Kinds {
    needs_permission: false,
    needs_input: false,
    permission_lost: false,
    stuck: false,
    crashed: false,
    failed: false,
    done: false,
};

/// What notifications need to know of a session; `opened` is its last turn, where that was seen.
fn alertable<'a>(key: &'a Key, row: &'a Row, session: &'a Session, opened: Option<Opened>) -> Alertable<'a> {
    // What is under way now will be over when the user clicks, or is refused then, and said.
    let may = |action| session.control.under_way.is_some() || offer(action, session, row.status).is_ok();
    let asked = session.facts.requests.iter().find(|request| !request.is_consent());
    let request = asked.filter(|_| row.status == Status::NeedsPermission).map(|asked| Request {
        id: asked.id.number(),
        kind: &asked.kind,
        what: asked.asks.as_deref(),
        answerable: match session.control.server {
            ServerState::Refused(_) | ServerState::Nowhere | ServerState::Unknown if !is_bridged(session) => false,
            _ => may(Action::Approve),
        },
    });
    let question = question(session).filter(|_| row.status == Status::NeedsInput && may(Action::Answer));
    let closed = session.facts.closed.as_ref().filter(|_| session.facts.turn.is_none());
    let completed = closed.filter(|closed| closed.ending == Ending::Completed).map(|closed| Completed {
        at: closed.at.wall,
        took: opened.map_or(Span::ZERO, |opened| opened.took(closed.at.wall)),
    });
    Alertable {
        key,
        row,
        request,
        question: question.map(|form| Posed { mark: form.mark(), form }),
        completed,
        seen: session.seen.is_some_and(|seen| seen >= row.since),
        cli_notifies: opened.is_some_and(|opened| opened.told_there),
    }
}

/// What is kept there; a file that is broken counts as empty.
fn load(path: &Path) -> Quiet {
    let text = state_file::read(path);
    if text.is_empty() {
        return Quiet::default();
    }
    serde_json::from_str(&text)
        .inspect_err(|error| tracing::warn!("{} is broken ({error}): nothing is muted or paused", path.display()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::action::Bridge;
    use crate::core::asked::Question;
    use crate::core::form::Form;
    use crate::core::limits::Limits;
    use crate::core::owner::Owner;
    use crate::core::verdict::Asking;

    /// A bridge that was not tried with this release only watches: a popup offers no answer that would be refused.
    #[test]
    fn a_question_that_cannot_be_answered_from_here_is_offered_no_answer() {
        let asked = serde_json::json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"]});
        let form = Form::read("user_input.requested", &asked).unwrap();
        let question = Question { text: "Which color?".into(), choices: Vec::new() };
        let mut session = Session { owner: Owner::Alive { pid: 1, started: None }, ..Session::default() };
        session.live.has_active_work = Some(true);
        session.live.questions = vec![Asking { question, since: Time(0), form: Ok(form) }];
        let row = session.row(Moment::of(Time(0)), &Limits::default()).0;
        let row = Row { status: Status::NeedsInput, ..row };
        for (bridge, is_offered) in [(Bridge::Watches, false), (Bridge::Joined, true)] {
            session.control.bridge = Some(bridge);
            let key = (0, "a".into());
            assert_eq!(alertable(&key, &row, &session, None).question.is_some(), is_offered, "{bridge:?}");
        }
    }

    #[test]
    fn a_turn_took_as_long_as_it_was_seen_open() {
        let mut opened = Opened { at: Time(1000), told_there: false, ended: None };
        assert_eq!(opened.took(Time(5000)), Span::ZERO, "nobody saw it end");
        opened.ended = Some(Time(5000));
        assert_eq!((opened.took(Time(5000)), opened.took(Time(9000))), (Span(4000), Span::ZERO));
    }
}
