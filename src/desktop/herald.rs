//! From what the engine sees to popups, and from what the user does with them to orders.
//!
//! What is to be told is decided in [`alert`](crate::core::alert), how it is shown in [`notify`](super::notify); this is
//! what lies between. It lives on the engine's thread, in the [`feed`](super::feed): clicks, mutes and pauses come in as
//! [`Word`]s and are taken up at the next look, which each of them asks for. A click is carried out by what the sessions
//! are then: a request that is over is not approved.

use super::details::Source;
use super::hush::{Hush, Notices, Voice};
use super::lamp::Hands;
use super::menu::Menu;
use super::notify::{Clicked, Note, Popups};
use super::view::Effect;
use crate::act::{Ask, Order, Reply, Which};
use crate::clock::{WallClock, slept};
use crate::config::Notifications;
use crate::core::action::{Action, Reach, offer, questions};
use crate::core::alert::{
    About, Alertable, Alerts, Asked, Button, Cause, Completed, Kinds, Now, Popup, PopupId, Posed, Quiet, Request,
    Settings,
};
use crate::core::fleet::{Kind as Use, Row, Session};
use crate::core::form::{Form, With};
use crate::core::time::{Moment, Span, Time};
use crate::core::turn::Ending;
use crate::core::verdict::Status;
use crate::engine::{Entry, Fleet, Key};
use crate::kept;
use crate::watch::settings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

/// The file in the state folder that holds mutes and a pause.
pub const FILE: &str = "quiet.json";
/// A machine that slept for less than this, between two looks, was only about to.
const SLEEP: Span = Span::seconds(5);

/// What the herald is told.
#[derive(Clone, Debug)]
pub enum Word {
    /// What became of a popup.
    Clicked(PopupId, Clicked),
    /// What the user wants to hear, or no longer.
    Hush(Hush),
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
pub struct Herald {
    alerts: Alerts,
    popups: Popups,
    words: Receiver<Word>,
    hands: Hands,
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

impl Herald {
    /// Raises nothing yet. What is kept in `state_folder` is read now.
    pub fn new(
        config: &Notifications,
        popups: Popups,
        words: Receiver<Word>,
        hands: Hands,
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
            hands,
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
    pub fn configure(&mut self, config: &Notifications, homes: &[PathBuf], terminal: &[String]) {
        self.alerts.settings = rules_of(config);
        self.tells_done = self.alerts.settings.kinds.done;
        self.notices.enabled = config.enabled;
        self.notices.quiet_hours = config.rules.quiet_hours;
        self.notices.detail = config.rules.detail;
        self.hands.configure(homes, terminal);
    }

    /// Shows a notification that is about no session.
    pub fn note(&self, note: &Note) {
        self.hands.note(note);
    }

    /// What the menu says of notifications.
    pub const fn notices(&self) -> &Notices {
        &self.notices
    }

    /// When, by the awake clock, [`update`](Self::update) is to be called though nothing changed.
    pub const fn wake_at(&self) -> Option<Time> {
        self.alerts.wake_at()
    }

    /// Takes note of how the sessions are now, and of what the user did.
    pub fn update(&mut self, fleet: &Fleet, menu: &Menu, now: Moment) {
        while let Ok(word) = self.words.try_recv() {
            match word {
                Word::Hush(hush) => hush.apply(&mut self.alerts.quiet, now.wall),
                Word::Clicked(id, clicked) => self.clicked(id, clicked, fleet, menu, now),
            }
        }
        self.note_turns(fleet);
        let now = self.take_the_time(now);
        self.notices.is_quiet_hour = self.alerts.is_quiet_hour(now.minute);
        let sessions = fleet.entries().map(|(key, entry)| alertable(key, entry, self.opened.get(key).copied()));
        for change in self.alerts.update(sessions, &now) {
            self.popups.apply(change);
        }
        self.keep();
    }

    /// Takes all popups away, for the end of the program.
    pub async fn end(self) {
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
                let opened = Opened { at, told_there: home.is_some_and(settings::notifies), ended: None };
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
        if let Err(error) = text.and_then(|text| kept::replace(path, &text)) {
            tracing::warn!(
                "mutes and pauses cannot be kept in {}: {error:#}; they end with the program",
                path.display()
            );
        }
    }

    /// Does what a click on a popup asks for. One that was withdrawn meanwhile is for nothing.
    fn clicked(&mut self, id: PopupId, clicked: Clicked, fleet: &Fleet, menu: &Menu, now: Moment) {
        let Some(popup) = self.alerts.closed(id, settles(clicked)) else { return };
        let button = match clicked {
            Clicked::Closed { .. } => return,
            Clicked::Default => None,
            Clicked::Action(button) => Some(button),
        };
        let there = popup.about.keys().iter().filter_map(|key| Some((key, fleet.get(key)?)));
        let Some((key, entry)) = there.min_by(|(_, a), (_, b)| a.row.place().cmp(&b.row.place())) else {
            return self.hands.note(&refused("that session is gone"));
        };
        match self.next_step(&popup, button, entry) {
            Step::Do(effect) => self.hands.act(Some(key), effect),
            Step::Show => {
                let source = Source { key, row: &entry.row, session: entry.session(), path: entry.path() };
                let summary = menu.details(&source, now);
                self.hands.act(Some(key), Effect::Seen);
                self.hands.note(&Note { title: summary.title, body: summary.body });
            }
            Step::Say(note) => self.hands.note(&note),
        }
    }

    fn next_step(&mut self, popup: &Popup, button: Option<Button>, entry: &Entry) -> Step {
        let (row, session) = (&entry.row, entry.session());
        let order = |ask| Step::Do(Effect::Act(Order::new(&row.id, ask).on(session.facts.root.as_deref())));
        let button = button.or_else(|| of_the_body(popup));
        if let Some(over) = button.and_then(|button| over(popup, button, row)) {
            return Step::Say(refused(&over));
        }
        match button {
            Some(Button::Approve) => answer(popup, entry, Ask::Approve, "approved"),
            Some(Button::Deny) => answer(popup, entry, Ask::Deny, "denied"),
            Some(Button::Choice(index)) => choose(popup, entry, index),
            Some(Button::Answer) => match question(session).filter(|_| is_one(popup)) {
                Some(form) => Step::Do(Effect::Answer { id: row.id.clone(), request: form.request.clone() }),
                None => Step::Say(refused("that question is no longer open: nothing was answered")),
            },
            Some(Button::Continue) => order(Ask::Continue),
            Some(Button::Reconnect) => order(Ask::Reconnect { resend: false }),
            Some(Button::Stop) => order(Ask::Stop),
            Some(Button::Resume) => order(Ask::Resume),
            Some(Button::ShowTerminal) => order(Ask::ShowTerminal),
            Some(Button::Mute) => {
                Hush::Session(row.id.clone(), Voice::Muted).apply(&mut self.alerts.quiet, Time::default());
                Step::Do(Effect::Seen)
            }
            Some(Button::Details | Button::Review) if popup.cause == Cause::NeedsPermission => {
                let can_answer = offer(Action::Approve, session, row.status).is_ok();
                match session.facts.requests.first().filter(|_| can_answer && is_one(popup)) {
                    Some(asked) => Step::Do(Effect::Details { id: row.id.clone(), request: asked.request.clone() }),
                    None => Step::Show,
                }
            }
            None if is_one(popup) && offer(Action::ShowTerminal, session, row.status).is_ok() => {
                order(Ask::ShowTerminal)
            }
            Some(Button::Details | Button::Review) | None => Step::Show,
        }
    }
}

fn rules_of(config: &Notifications) -> Settings {
    let kinds = if config.enabled { config.rules.kinds } else { NOTHING };
    Settings { kinds, ..config.rules.clone() }
}

/// What a click comes to.
enum Step {
    Do(Effect),
    /// What is known of the session is shown.
    Show,
    Say(Note),
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

const fn is_one(popup: &Popup) -> bool {
    matches!(popup.about, About::One(_))
}

/// Whether a popup that went so is done with. An answer may come to nothing; where the request is open for long after it, it is
/// told once more.
const fn settles(clicked: Clicked) -> bool {
    match clicked {
        Clicked::Closed { by_user } => by_user,
        Clicked::Action(button) => !button.answers(),
        Clicked::Default => true,
    }
}

/// The button that a click beside the buttons stands for: some servers show none. Only what does no harm where nobody meant
/// it.
fn of_the_body(popup: &Popup) -> Option<Button> {
    let is_harmless = |button: &Button| match button {
        Button::Resume => true,
        Button::Reconnect => popup.cause == Cause::Crashed,
        _ => false,
    };
    popup.buttons.first().copied().filter(is_harmless)
}

/// Why a button does nothing any more: what the popup was raised for is over.
fn over(popup: &Popup, button: Button, row: &Row) -> Option<String> {
    let acts = matches!(button, Button::Continue | Button::Reconnect | Button::Stop | Button::Resume);
    let is_over = acts && popup.cause != Cause::Done && Cause::of_row(row) != Some(popup.cause);
    let (was, is) = (popup.cause.name(), row.status);
    is_over.then(|| format!("that session is no longer {was}: it is {is} now, and nothing was done"))
}

/// Answers the request that the popup showed, if it is still open, and only if it still asks for what was shown.
fn answer(popup: &Popup, entry: &Entry, ask: fn(Which) -> Ask, done: &str) -> Step {
    let requests = &entry.session().facts.requests;
    let shown = popup.asked.as_ref().and_then(|Asked { request, text, .. }| {
        let request = requests.iter().find(|one| one.id.number() == *request)?;
        Some(Which::Shown { id: request.request.to_string(), text: text.clone() })
    });
    match shown {
        Some(which) => Step::Do(Effect::Act(Order::new(&entry.row.id, ask(which)))),
        None => Step::Say(refused(&format!("that request is no longer open: nothing was {done}"))),
    }
}

/// The oldest open question that can be answered from here.
fn question(session: &Session) -> Option<&Form> {
    questions(session).iter().find_map(|asking| asking.form.as_ref().ok())
}

/// Answers the question that the popup showed, if it is still open, and only if it still asks what was shown.
fn choose(popup: &Popup, entry: &Entry, index: u8) -> Step {
    let mut open = questions(entry.session()).iter().filter_map(|asking| asking.form.as_ref().ok());
    let shown = popup.asked.as_ref().and_then(|asked| open.find(|form| form.mark() == asked.request));
    match shown {
        Some(form) => {
            let (request, with) = (form.request.to_string(), With::Choice(index.into()));
            let reply = Reply::Give { request, shown: form.mark(), with };
            Step::Do(Effect::Act(Order::new(&entry.row.id, Ask::Answer(reply))))
        }
        None => Step::Say(refused("that question is no longer open: nothing was answered")),
    }
}

fn refused(why: &str) -> Note {
    Note { title: "Pilotlight did not do that".into(), body: why.into() }
}

/// What notifications need to know of a session; `opened` is its last turn, where that was seen.
fn alertable<'a>(key: &'a Key, entry: &'a Entry, opened: Option<Opened>) -> Alertable<'a> {
    let (row, session) = (&entry.row, entry.session());
    let asked = session.facts.requests.first();
    let request = asked.filter(|_| row.status == Status::NeedsPermission).map(|asked| Request {
        id: asked.id.number(),
        kind: &asked.kind,
        what: asked.asks.as_deref(),
        answerable: match session.dealings.reach {
            Reach::Refused(_) | Reach::Nowhere | Reach::Unknown => false,
            // What is under way now will be over when the user clicks, or is refused then, and said.
            Reach::Listens | Reach::Attached | Reach::Hosted(_) => {
                session.dealings.under_way.is_some() || offer(Action::Approve, session, row.status).is_ok()
            }
        },
    });
    let question = question(session).filter(|_| row.status == Status::NeedsInput);
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
    let text = kept::read(path);
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
    use crate::core::alert::Urgency;
    use crate::core::fleet::Session;
    use crate::core::limits::Limits;

    fn popup(cause: Cause, buttons: &[Button]) -> Popup {
        Popup {
            id: PopupId(1),
            about: About::One((0, "a".into())),
            cause,
            asked: None,
            title: String::new(),
            body: String::new(),
            urgency: Urgency::Normal,
            sound: false,
            buttons: buttons.into(),
            since: Time::default(),
        }
    }

    #[test]
    fn a_turn_took_as_long_as_it_was_seen_open() {
        let mut opened = Opened { at: Time(1000), told_there: false, ended: None };
        assert_eq!(opened.took(Time(5000)), Span::ZERO, "nobody saw it end");
        opened.ended = Some(Time(5000));
        assert_eq!((opened.took(Time(5000)), opened.took(Time(9000))), (Span(4000), Span::ZERO));
    }

    /// An answer may fail, and the request be open still.
    #[test]
    fn an_answer_does_not_settle_what_it_answers() {
        for (clicked, is_settled) in [
            (Clicked::Action(Button::Approve), false),
            (Clicked::Action(Button::Deny), false),
            (Clicked::Action(Button::Choice(1)), false),
            (Clicked::Closed { by_user: false }, false),
            (Clicked::Closed { by_user: true }, true),
            (Clicked::Action(Button::Details), true),
            (Clicked::Default, true),
        ] {
            assert_eq!(settles(clicked), is_settled, "{clicked:?}");
        }
    }

    #[test]
    fn a_click_beside_the_buttons_takes_the_next_step_where_that_is_harmless() {
        use Button::{Approve, Details, Mute, Reconnect, Resume, ShowTerminal, Stop};
        for (cause, buttons, best) in [
            (Cause::Crashed, [Resume, Mute], Some(Resume)),
            (Cause::Crashed, [Reconnect, Mute], Some(Reconnect)),
            (Cause::Failed, [Resume, Mute], Some(Resume)),
            (Cause::Stuck, [Reconnect, Stop], None),
            (Cause::Stuck, [Stop, Mute], None),
            (Cause::PermissionLost, [Reconnect, Mute], None),
            (Cause::NeedsPermission, [Approve, Mute], None),
            (Cause::NeedsPermission, [Details, Mute], None),
            (Cause::NeedsInput, [ShowTerminal, Mute], None),
        ] {
            assert_eq!(of_the_body(&popup(cause, &buttons)), best, "{cause:?}, {buttons:?}");
        }
    }

    #[test]
    fn what_is_over_is_not_acted_on() {
        let over = |popup: &Popup, button, status| {
            let row = Session::default().row(Moment::default(), &Limits::default()).0;
            over(popup, button, &Row { status, ..row })
        };
        let stuck = popup(Cause::Stuck, &[]);
        assert_eq!(over(&stuck, Button::Stop, Status::Stuck), None);
        let why = over(&stuck, Button::Stop, Status::Working);
        assert_eq!(why.as_deref(), Some("that session is no longer stuck: it is working now, and nothing was done"));
        for button in [Button::Mute, Button::Details, Button::ShowTerminal] {
            assert_eq!(over(&stuck, button, Status::Working), None, "{button:?}");
        }
        assert_eq!(over(&popup(Cause::Done, &[]), Button::Resume, Status::Ended), None);
    }
}
