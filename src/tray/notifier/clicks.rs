//! What a click on a popup comes to.
//!
//! The popup says what it said when it was raised, and the session may have gone on: what it was for is looked for among what is
//! open now, by its id and its text, and where that is over nothing is done, which is said.

use crate::core::action::{Action, offer, questions};
use crate::core::alert::{About, Asked, Button, Cause, Popup};
use crate::core::fleet::{Row, Session};
use crate::core::form::{Form, With};
use crate::core::order::{Ask, Order, Reply, Which};
use crate::engine::Entry;
use crate::tray::notify::Clicked;
use crate::tray::view::Effect;

/// What a click comes to.
#[derive(Debug)]
pub(super) enum Step {
    Do(Effect),
    /// The session is muted.
    Mute,
    /// What is known of the session is shown.
    Show,
    /// Nothing is done, for this reason.
    Refuse(String),
}

/// What a click on this button, or beside the buttons, comes to.
pub(super) fn step(popup: &Popup, button: Option<Button>, entry: &Entry) -> Step {
    let (row, session) = (&entry.row, entry.session());
    let order = |ask| act(entry, Order::new(&row.id, ask).on(session.facts.root.as_deref()));
    let button = button.or_else(|| of_the_body(popup));
    if let Some(over) = button.and_then(|button| over(popup, button, row)) {
        return Step::Refuse(over);
    }
    match button {
        Some(Button::Act(Action::Approve)) => answer(popup, entry, Ask::Approve),
        Some(Button::Act(Action::Deny)) => answer(popup, entry, Ask::Deny),
        Some(Button::Choice(index)) => choose(popup, entry, index),
        Some(Button::Act(Action::Answer)) => match question(session).filter(|_| is_one(popup)) {
            Some(form) => Step::Do(Effect::Answer { id: row.id.clone(), request: form.request.clone() }),
            None => Step::Refuse("that question is no longer open".into()),
        },
        Some(Button::Act(action)) => Ask::of(action).map_or(Step::Show, order),
        Some(Button::SendOn) => order(Ask::Continue),
        Some(Button::Mute) => Step::Mute,
        Some(Button::Details | Button::Review) if popup.cause == Cause::NeedsPermission => {
            let can_answer = offer(Action::Approve, session, row.status).is_ok();
            let asked = session.facts.requests.iter().find(|request| !request.is_consent());
            match asked.filter(|_| can_answer && is_one(popup)) {
                Some(asked) => Step::Do(Effect::Details { id: row.id.clone(), request: asked.request.clone() }),
                None => Step::Show,
            }
        }
        None if is_one(popup) && offer(Action::ShowTerminal, session, row.status).is_ok() => order(Ask::ShowTerminal),
        Some(Button::Details | Button::Review) | None => Step::Show,
    }
}

/// The oldest open question that can be answered from here.
pub(super) fn question(session: &Session) -> Option<&Form> {
    questions(session).iter().find_map(|asking| asking.form.as_ref().ok())
}

/// Whether a popup that went so is done with. An answer may come to nothing; where the request is open for long after it, it is
/// told once more.
pub(super) const fn settles(clicked: Clicked) -> bool {
    match clicked {
        Clicked::Closed { by_user } => by_user,
        Clicked::Action(button) => !button.answers(),
        Clicked::Default => true,
    }
}

const fn is_one(popup: &Popup) -> bool {
    matches!(popup.about, About::One(_))
}

fn act(entry: &Entry, order: Order) -> Step {
    Step::Do(Effect::Act(Box::new(order.to(&entry.row.label))))
}

/// The button that a click beside the buttons stands for: some servers show none. Only what does no harm where nobody meant
/// it.
fn of_the_body(popup: &Popup) -> Option<Button> {
    let is_harmless = |button: &Button| match button {
        Button::Act(Action::Resume) => true,
        Button::Act(Action::Reconnect) => popup.cause == Cause::Crashed,
        _ => false,
    };
    popup.buttons.first().copied().filter(is_harmless)
}

/// Why a button does nothing any more: what the popup was raised for is over.
fn over(popup: &Popup, button: Button, row: &Row) -> Option<String> {
    // What answers is held to the very request or question that was shown.
    let acts = match button {
        Button::Act(Action::Approve | Action::Deny | Action::Answer | Action::ShowTerminal) => false,
        Button::Act(_) | Button::SendOn => true,
        Button::Choice(_) | Button::Details | Button::Review | Button::Mute => false,
    };
    let is_over = acts && popup.cause != Cause::Done && Cause::of_row(row) != Some(popup.cause);
    is_over.then(|| format!("it is no longer {}: it is {} now", popup.cause.name(), row.status))
}

/// Answers the request that the popup showed, if it is still open, and only if it still asks for what was shown.
fn answer(popup: &Popup, entry: &Entry, ask: fn(Which) -> Ask) -> Step {
    let requests = &entry.session().facts.requests;
    let shown = popup.asked.as_ref().and_then(|Asked { request, text, .. }| {
        let request = requests.iter().find(|one| one.id.number() == *request)?;
        Some(Which::Shown { id: request.request.to_string(), text: text.clone() })
    });
    match shown {
        Some(which) => act(entry, Order::new(&entry.row.id, ask(which))),
        None => Step::Refuse("that request is no longer open".into()),
    }
}

/// Answers the question that the popup showed, if it is still open, and only if it still asks what was shown.
fn choose(popup: &Popup, entry: &Entry, index: u8) -> Step {
    let mut open = questions(entry.session()).iter().filter_map(|asking| asking.form.as_ref().ok());
    let shown = popup.asked.as_ref().and_then(|asked| open.find(|form| form.mark() == asked.request));
    match shown {
        Some(form) => {
            let (request, with) = (form.request.to_string(), With::Choice(index.into()));
            let reply = Reply::Give { request, shown: form.mark(), with };
            act(entry, Order::new(&entry.row.id, Ask::Answer(reply)))
        }
        None => Step::Refuse("that question is no longer open".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::alert::PopupId;
    use crate::core::limits::Limits;
    use crate::core::time::Moment;
    use crate::core::verdict::Status;

    fn popup(cause: Cause, buttons: &[Button]) -> Popup {
        Popup {
            id: PopupId(1),
            about: About::One((0, "a".into())),
            cause,
            asked: None,
            title: String::new(),
            body: String::new(),
            sound: false,
            buttons: buttons.into(),
        }
    }

    /// An answer may fail, and the request be open still.
    #[test]
    fn an_answer_does_not_settle_what_it_answers() {
        for (clicked, is_settled) in [
            (Clicked::Action(Button::Act(Action::Approve)), false),
            (Clicked::Action(Button::Act(Action::Deny)), false),
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
        use Action::{Reconnect, Resume, ShowTerminal, Stop};
        use Button::{Act, Details, Mute};
        for (cause, buttons, best) in [
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
        assert_eq!(over(&stuck, Button::Act(Action::Stop), Status::Stuck), None);
        let why = over(&stuck, Button::Act(Action::Stop), Status::Working);
        assert_eq!(why.as_deref(), Some("it is no longer stuck: it is working now"));
        for button in [Button::Mute, Button::Details, Button::Act(Action::ShowTerminal)] {
            assert_eq!(over(&stuck, button, Status::Working), None, "{button:?}");
        }
        assert_eq!(over(&popup(Cause::Done, &[]), Button::Act(Action::Resume), Status::Ended), None);
    }
}
