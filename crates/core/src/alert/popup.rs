//! A popup: what it is about, its text and its buttons.

use super::cause::Cause;
use crate::action::Action;
use crate::session::Key;

/// A popup's id, unique within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PopupId(pub u64);

/// A change to the popups on screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Show a new popup.
    Raise(Popup),
    /// Replace the open summary, because its sessions changed. A summary has no answer buttons, so replacing it in
    /// place is safe.
    Replace(Popup),
    /// Close an open popup.
    Withdraw(PopupId),
}

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Popup {
    pub id: PopupId,
    /// The sessions it is about.
    pub about: About,
    /// Its cause; the most urgent one of a summary.
    pub cause: Cause,
    /// The request that Approve and Deny answer, or the question whose choices are buttons. Without it the popup has no
    /// such buttons.
    pub asked: Option<ShownRequest>,
    /// One line.
    pub title: String,
    /// A few lines, or empty.
    pub body: String,
    /// It may make a sound.
    pub sound: bool,
    /// Its buttons: the answers or the next step first, muting last.
    pub buttons: Vec<Button>,
}

/// The sessions a popup is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    One(Key),
    /// Several sessions without room for a popup each, ordered by key.
    Summary(Vec<Key>),
}

impl About {
    pub fn keys(&self) -> &[Key] {
        match self {
            Self::One(key) => std::slice::from_ref(key),
            Self::Summary(keys) => keys,
        }
    }
}

/// A permission request, or a question, as a popup shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRequest {
    /// [`Request::id`](super::Request::id), or [`OpenQuestion::mark`](super::OpenQuestion::mark).
    pub request: u64,
    /// The whole text, as the user sees it.
    pub text: String,
    /// The labels of the buttons that answer a question, in the order of its choices.
    pub choices: Vec<String>,
}

/// A button of a popup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Button {
    /// Performs an action on the session, or on the request shown.
    Act(Action),
    /// Answers the question shown with the choice of this index.
    Choice(u8),
    /// Sends the session a prompt to continue, in its terminal.
    SendOn,
    /// Shows the session's details.
    Details,
    /// Shows the whole request in a terminal, to be answered there.
    Review,
    /// Mutes the session's popups.
    Mute,
}

impl Button {
    /// Its name, as used in a row's actions and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Choice(0) => "choice-1",
            Self::Choice(1) => "choice-2",
            Self::Choice(_) => "choice-3",
            Self::Act(action) => action.name(),
            Self::SendOn => "send-on",
            Self::Details => "details",
            Self::Review => "review",
            Self::Mute => "mute",
        }
    }

    /// Its label next to these buttons, in a popup that shows `asked`.
    pub fn label_among<'a>(self, buttons: &[Self], asked: Option<&'a ShownRequest>) -> &'a str {
        match (self, asked) {
            (Self::Choice(index), Some(asked)) => asked.choices.get(usize::from(index)).map_or("", String::as_str),
            (Self::Act(Action::Reconnect), _) if buttons.contains(&Self::Act(Action::Continue)) => "Reconnect only",
            _ => self.label(),
        }
    }

    /// Whether it answers what the popup shows, so that nobody should click it without having read that.
    pub const fn answers(self) -> bool {
        matches!(self, Self::Act(Action::Approve | Action::Deny) | Self::Choice(_))
    }

    /// Its label when it stands alone. Empty for a choice: the question supplies it.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Choice(_) => "",
            Self::Act(action) => action.label(),
            Self::SendOn => "Continue",
            Self::Details => "Details",
            Self::Review => "Review…",
            Self::Mute => "Mute",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn all() -> Vec<Button> {
        let others = [Button::SendOn, Button::Details, Button::Review, Button::Mute];
        (0..3).map(Button::Choice).chain(Action::ALL.map(Button::Act)).chain(others).collect()
    }

    #[test]
    fn no_two_buttons_of_a_popup_are_alike() {
        let choices = ["red", "green", "blue"].map(str::to_owned).to_vec();
        let asked = ShownRequest { request: 1, text: "Which color?".into(), choices };
        let buttons = all();
        let names: HashSet<_> = buttons.iter().map(|button| button.name()).collect();
        let labels: HashSet<_> = buttons.iter().map(|button| button.label_among(&buttons, Some(&asked))).collect();
        assert_eq!((names.len(), labels.len()), (buttons.len(), buttons.len()), "{names:?} {labels:?}");
        assert!(!names.contains("") && !labels.contains(""));
        assert_eq!(Button::Choice(1).label_among(&buttons, Some(&asked)), "green");
        for action in Action::ALL {
            assert_eq!(Button::Act(action).name(), action.name(), "as in a row's actions");
        }
    }

    /// Next to "Reconnect and continue", "Reconnect" alone would be unclear.
    #[test]
    fn reconnecting_is_labelled_by_what_else_is_offered() {
        let reconnect = Button::Act(Action::Reconnect);
        let label = |others: &[Button]| reconnect.label_among(others, None);
        assert_eq!(label(&[Button::Act(Action::Continue), reconnect]), "Reconnect only");
        assert_eq!(label(&[reconnect, Button::Act(Action::Stop)]), "Reconnect");
    }

    #[test]
    fn only_answers_need_what_the_popup_shows_to_be_read() {
        let answers: Vec<_> = all().into_iter().filter(|button| button.answers()).map(Button::name).collect();
        assert_eq!(answers, ["choice-1", "choice-2", "choice-3", "approve", "deny"]);
    }
}
