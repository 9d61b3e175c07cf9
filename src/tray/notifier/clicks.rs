//! Decides what a click on a popup does.
//!
//! The popup shows what was true when it was raised, and the session may have moved on. So its request is looked up
//! among those open now, by id and text; if it is over, nothing is done, and the user is notified.

use crate::tray::actions::looking_at;
use crate::tray::messages::PopupEvent;
use crate::tray::view::{Effect, Reviewed};
use pilotlight_core::action::{Action, ActionFlag, questions};
use pilotlight_core::alert::{About, Button, Cause, Popup, ShownRequest};
use pilotlight_core::fleet::{Row, Session};
use pilotlight_core::form::{Form, FormAnswer};
use pilotlight_core::order::{Operation, Order, Reply, Which};
use pilotlight_engine::Shown;

#[derive(Debug)]
pub(super) enum ClickAction {
    Do(Effect),
    /// Mutes the session.
    Mute,
    /// Does nothing, for this reason.
    Refuse(String),
}

/// Decides what a click on this button does; `None` is a click outside the buttons.
pub(super) fn resolve(popup: &Popup, button: Option<Button>, shown: &Shown<'_>) -> ClickAction {
    let Shown { row, session, .. } = *shown;
    // What is offered because of a silence must not end an answer.
    let order = |operation| {
        act(shown, Order::new(&row.id, operation).on(session.observed.facts.turn_id.as_deref()).unless_receiving())
    };
    let button = button.or_else(|| default_button(popup));
    if let Some(reason) = button.and_then(|button| stale_reason(popup, button, row)) {
        return ClickAction::Refuse(reason);
    }
    let look = || ClickAction::Do(look(popup, row, session));
    match button {
        Some(Button::Act(Action::Approve)) => answer(popup, shown, Operation::Approve),
        Some(Button::Act(Action::Deny)) => answer(popup, shown, Operation::Deny),
        Some(Button::Choice(index)) => choose(popup, shown, index),
        Some(Button::Act(Action::Answer)) => match question(session).filter(|_| is_one(popup)) {
            Some(form) => ClickAction::Do(Effect::review(Reviewed::Question, row, &form.request)),
            None => ClickAction::Refuse("that question is no longer open".into()),
        },
        Some(Button::Act(action)) => action.spec().operation.clone().map_or_else(look, order),
        Some(Button::SendOn) => order(Operation::Continue),
        Some(Button::Mute) => ClickAction::Mute,
        Some(Button::Details | Button::Review) | None => look(),
    }
}

/// What a click leads to that chooses no action. A summary is about several sessions, which only the table shows.
fn look(popup: &Popup, row: &Row, session: &Session) -> Effect {
    if is_one(popup) { looking_at(row, session) } else { Effect::LiveTable }
}

/// The oldest open question that can be answered from here.
pub(super) fn question(session: &Session) -> Option<&Form> {
    questions(session).iter().find_map(|asking| asking.form.as_ref().ok())
}

/// Whether this event settles what the popup was about. An answer does not: it may fail, and if the request is still
/// open long after it, a popup is raised again.
pub(super) const fn settles(event: PopupEvent) -> bool {
    match event {
        PopupEvent::Closed { by_user } => by_user,
        PopupEvent::Action(button) => !button.answers(),
        PopupEvent::Default => true,
    }
}

const fn is_one(popup: &Popup) -> bool {
    matches!(popup.about, About::One(_))
}

fn act(shown: &Shown<'_>, order: Order) -> ClickAction {
    ClickAction::Do(Effect::Act(Box::new(order.at(shown.row.host.as_deref()).to(&shown.row.label))))
}

/// The button that a click outside the buttons triggers, as some servers show no buttons. Only one that does no harm if
/// the click was accidental.
fn default_button(popup: &Popup) -> Option<Button> {
    let is_harmless = |button: &Button| match button {
        Button::Act(Action::Resume) => true,
        Button::Act(Action::Reconnect) => popup.cause == Cause::Crashed,
        _ => false,
    };
    popup.buttons.first().copied().filter(is_harmless)
}

/// Why a button no longer does anything: the cause of the popup is over.
fn stale_reason(popup: &Popup, button: Button, row: &Row) -> Option<String> {
    // Answers are checked against the request or question that was shown.
    let acts = match button {
        Button::Act(action) => action.spec().operation.is_some() && !action.is(ActionFlag::OnlyShows),
        Button::SendOn => true,
        Button::Choice(_) | Button::Details | Button::Review | Button::Mute => false,
    };
    let is_over = acts && popup.cause != Cause::Done && Cause::of_row(row) != Some(popup.cause);
    is_over.then(|| format!("it is no longer {}: it is {} now", popup.cause.name(), row.status))
}

/// Answers the request that the popup showed, if it is still open with the same text.
fn answer(popup: &Popup, shown: &Shown<'_>, operation: fn(Which) -> Operation) -> ClickAction {
    let requests = &shown.session.observed.facts.requests;
    let asked = popup.asked.as_ref().and_then(|ShownRequest { request, text, .. }| {
        let request = requests.iter().find(|one| one.id.number() == *request)?;
        Some(Which::Shown { id: request.request.to_string(), text: text.clone() })
    });
    match asked {
        Some(which) => act(shown, Order::new(&shown.row.id, operation(which))),
        None => ClickAction::Refuse("that request is no longer open".into()),
    }
}

/// Answers the question that the popup showed, if it is still open and unchanged.
fn choose(popup: &Popup, shown: &Shown<'_>, index: u8) -> ClickAction {
    let mut open = questions(shown.session).iter().filter_map(|asking| asking.form.as_ref().ok());
    let asked = popup.asked.as_ref().and_then(|asked| open.find(|form| form.mark() == asked.request));
    match asked {
        Some(form) => {
            let (request, with) = (form.request.to_string(), FormAnswer::Choice(index.into()));
            let reply = Reply::Give { request, shown: form.mark(), with: Box::new(with) };
            act(shown, Order::new(&shown.row.id, Operation::Answer(reply)))
        }
        None => ClickAction::Refuse("that question is no longer open".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tray::notifier::alertable;
    use pilotlight_agents::copilot::log_format;
    use pilotlight_core::action::ServerState;
    use pilotlight_core::agent::Agent;
    use pilotlight_core::alert::PopupId;
    use pilotlight_core::fleet::Kind;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::owner::Owner;
    use pilotlight_core::remote::RemoteHost;
    use pilotlight_core::remote::{Clocks, SessionReport, read};
    use pilotlight_core::session::{HomeId, Key, Observed};
    use pilotlight_core::time::{Moment, Time};
    use pilotlight_core::verdict::Status;
    use pilotlight_engine::LastProgress;

    fn popup(cause: Cause, buttons: &[Button]) -> Popup {
        Popup {
            id: PopupId(1),
            about: About::One(Key::new(HomeId::default(), "a")),
            cause,
            asked: None,
            title: String::new(),
            body: String::new(),
            sound: false,
            buttons: buttons.into(),
        }
    }

    /// It may fail, and the request still be open.
    #[test]
    fn an_answer_does_not_settle_its_request() {
        for (event, is_settled) in [
            (PopupEvent::Action(Button::Act(Action::Approve)), false),
            (PopupEvent::Action(Button::Act(Action::Deny)), false),
            (PopupEvent::Action(Button::Choice(1)), false),
            (PopupEvent::Closed { by_user: false }, false),
            (PopupEvent::Closed { by_user: true }, true),
            (PopupEvent::Action(Button::Details), true),
            (PopupEvent::Default, true),
        ] {
            assert_eq!(settles(event), is_settled, "{event:?}");
        }
    }

    /// Never to a note without a button.
    #[test]
    fn case_171_a_click_that_chooses_no_action_leads_to_something_that_acts() {
        let now = Moment::of(Time(1_700_000_000_000));
        let mut session = Session {
            id: "a".into(),
            observed: Observed { owner: Owner::Alive { pid: 1, started: None }, ..Observed::default() },
            ..Session::default()
        };
        session.observed.about.kind = Kind::Terminal;
        let row = |session: &Session, status| Row { status, ..session.row(now, &Limits::default()).0 };
        let one = popup(Cause::Stuck, &[]);
        let summary = Popup {
            about: About::Summary(vec![Key::new(HomeId::default(), "a"), Key::new(HomeId::default(), "b")]),
            ..one.clone()
        };
        let stuck = row(&session, Status::Stuck);
        let shown = Order::new("a", Operation::ShowTerminal).to(&stuck.label);
        assert_eq!(look(&one, &stuck, &session), Effect::Act(Box::new(shown)));
        assert_eq!(look(&summary, &stuck, &session), Effect::LiveTable);
        let requested = br#"{"type":"permission.requested","data":{"requestId":"r","permissionRequest":{"kind":"shell","fullCommandText":"make"}},"id":"e","timestamp":"2023-11-14T22:13:20.000Z"}"#;
        session.observed.facts.fold(&log_format::parse(requested).unwrap(), now, &Limits::default());
        session.control.server = ServerState::Listening;
        let asks = row(&session, Status::NeedsPermission);
        let details = Effect::Review { what: Reviewed::Permission, id: "a".into(), host: None, request: "r".into() };
        assert_eq!(look(&one, &asks, &session), details);
        session.observed.owner = Owner::Gone { pid: 1, at: None };
        let ended = row(&session, Status::Ended);
        assert_eq!(look(&one, &ended, &session), Effect::LiveTable);
    }

    #[test]
    fn case_419_a_popup_answers_on_the_machine_of_its_session_with_the_text_that_it_showed() {
        let now = Moment::of(Time(1_700_000_000_000));
        let mut there = Session { id: "a".into(), ..Session::default() };
        there.observed.owner = Owner::Alive { pid: 1, started: None };
        there.control.server = ServerState::Listening;
        let requested = br#"{"type":"permission.requested","data":{"requestId":"r","permissionRequest":{"kind":"shell","fullCommandText":"make"}},"id":"e","timestamp":"2023-11-14T22:13:20.000Z"}"#;
        there.observed.facts.fold(&log_format::parse(requested).unwrap(), now, &Limits::default());
        let row = there.row(now, &Limits::default()).0;
        let report = SessionReport::of(&there, &row, (&row.name, &row.label), now);
        let host = RemoteHost { name: "devbox".into(), has_terminal: true };
        let session = read(&host, report, &Clocks { now, ..Clocks::default() }, Agent::reported).unwrap();
        let (row, key) = (session.row(now, &Limits::default()).0, Key::remote("devbox", "a"));
        let told = alertable(&key, &row, &session, None, true);
        let request = told.request.unwrap();
        assert!(request.answerable && !told.has_terminal, "{request:?}");
        let last_progress = LastProgress::default();
        let shown = Shown { key: &key, row: &row, session: &session, last_progress: &last_progress, reader: None };
        let asked = ShownRequest { request: request.id, text: "make".into(), choices: Vec::new() };
        let popup = Popup { asked: Some(asked), ..popup(Cause::NeedsPermission, &[]) };
        let ClickAction::Do(Effect::Act(order)) = resolve(&popup, Some(Button::Act(Action::Approve)), &shown) else {
            panic!("an order")
        };
        assert_eq!(order.host.as_deref(), Some("devbox"));
        assert_eq!(order.operation, Operation::Approve(Which::Shown { id: "r".into(), text: "make".into() }));
        let review = Effect::Review {
            what: Reviewed::Permission,
            id: "a".into(),
            host: Some("devbox".into()),
            request: "r".into(),
        };
        let ClickAction::Do(effect) = resolve(&popup, None, &shown) else { panic!("an effect") };
        assert_eq!(effect, review);
    }

    #[test]
    fn a_click_outside_the_buttons_takes_the_next_step_only_if_that_is_harmless() {
        use Action::{Reconnect, Resume, ShowTerminal, Stop};
        use Button::{Act, Details, Mute};
        for (cause, buttons, default) in [
            (Cause::Crashed, [Act(Resume), Mute], Some(Act(Resume))),
            (Cause::Crashed, [Act(Reconnect), Mute], Some(Act(Reconnect))),
            (Cause::Failed, [Act(Resume), Mute], Some(Act(Resume))),
            (Cause::Stuck, [Act(Reconnect), Act(Stop)], None),
            (Cause::Stuck, [Act(Stop), Mute], None),
            (Cause::PermissionLost, [Act(Reconnect), Mute], None),
            (Cause::NeedsPermission, [Act(Action::Approve), Mute], None),
            (Cause::NeedsPermission, [Details, Mute], None),
            (Cause::NeedsInput, [Act(ShowTerminal), Mute], None),
        ] {
            assert_eq!(default_button(&popup(cause, &buttons)), default, "{cause:?}, {buttons:?}");
        }
    }

    #[test]
    fn a_popup_whose_cause_is_over_is_not_acted_on() {
        let reason = |popup: &Popup, button, status| {
            let row = Session::default().row(Moment::default(), &Limits::default()).0;
            stale_reason(popup, button, &Row { status, ..row })
        };
        let stuck = popup(Cause::Stuck, &[]);
        assert_eq!(reason(&stuck, Button::Act(Action::Stop), Status::Stuck), None);
        let why = reason(&stuck, Button::Act(Action::Stop), Status::Working);
        assert_eq!(why.as_deref(), Some("it is no longer stuck: it is working now"));
        for button in [Button::Mute, Button::Details, Button::Act(Action::ShowTerminal)] {
            assert_eq!(reason(&stuck, button, Status::Working), None, "{button:?}");
        }
        assert_eq!(reason(&popup(Cause::Done, &[]), Button::Act(Action::Resume), Status::Ended), None);
    }
}
