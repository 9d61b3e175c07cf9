//! Notes, which are notifications about what was done, with one button: as values, apart from who shows them.

use crate::tray::icon::State;
use crate::tray::view::Effect;
use pilotlight_core::action::Action;
use pilotlight_core::order::Outcome;

/// What a click on a note leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The label of the button.
    pub label: Box<str>,
    /// What the button does.
    pub effect: Effect,
    /// What a click beside the button does, which may be an accident.
    pub on_body: Effect,
}

impl Offer {
    /// An offer that does no harm to who clicks by accident.
    pub(crate) fn new(label: &str, effect: Effect) -> Self {
        Self { label: label.into(), on_body: effect.clone(), effect }
    }

    /// The table of all sessions.
    pub(crate) fn all() -> Self {
        Self::new("Show all sessions", Effect::LiveTable)
    }
}

/// What is done with the effect that a click on a note chose.
pub type OfferTaken = Box<dyn FnOnce(Effect) + Send>;

/// A notification about something that was done, or was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// One line.
    pub title: String,
    /// A few lines.
    pub body: String,
    /// The colour of its picture.
    pub tone: State,
    /// What a click leads to.
    pub offer: Offer,
}

impl Note {
    /// The test notification.
    pub fn test() -> Self {
        let body = "Notifications are shown here. Sessions that need you look like this.";
        Self::new("Pilotlight: a test", body)
    }

    /// A note that all is well.
    pub(crate) fn new(title: impl Into<String>, body: impl Into<String>) -> Self {
        Self { title: title.into(), body: body.into(), tone: State::Well, offer: Offer::all() }
    }

    /// A note that something was not done, or that something is to be looked at.
    pub(crate) fn not_done(title: impl Into<String>, body: impl Into<String>) -> Self {
        Self { tone: State::NeedsYou, ..Self::new(title, body) }
    }

    /// A note that something failed.
    pub(crate) fn failed(title: impl Into<String>, body: impl Into<String>) -> Self {
        Self { tone: State::Trouble, ..Self::new(title, body) }
    }

    /// The same note with another offer.
    #[must_use]
    pub(crate) fn offering(self, offer: Offer) -> Self {
        Self { offer, ..self }
    }

    /// The outcome of an order for this action to the session called `who`.
    pub(crate) fn after(who: &str, action: Action, outcome: &Outcome) -> Self {
        let words = outcome.words();
        match outcome {
            // What the title says is not said again.
            Outcome::Done(_) if words.starts_with(action.done()) => Self::new(format!("{who}: {words}"), ""),
            Outcome::Done(_) => Self::new(format!("{who}: {}", action.done()), words),
            Outcome::Failed(_) => Self::failed(format!("{who}: that did not work"), words),
            Outcome::Unconfirmed(_) => Self::not_done(format!("{who}: that may have happened"), words),
            Outcome::Refused(_) | Outcome::Unknown => Self::refused(who, outcome),
        }
    }

    /// A click on the session called `who` that was not carried out.
    pub(crate) fn refused(who: &str, outcome: &Outcome) -> Self {
        Self::not_done(format!("{who}: nothing was done"), outcome.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_170_a_note_has_the_colour_and_the_words_of_its_outcome() {
        for (action, outcome, title, tone) in [
            (Action::Approve, Outcome::Done("x".into()), "work: approved", State::Well),
            (Action::Stop, Outcome::Done("x".into()), "work: stopped", State::Well),
            (Action::Continue, Outcome::Done("x".into()), "work: continues its work", State::Well),
            (Action::Resume, Outcome::Failed("x".into()), "work: that did not work", State::Trouble),
            (Action::Stop, Outcome::Unconfirmed("x".into()), "work: that may have happened", State::NeedsYou),
            (Action::Deny, Outcome::Refused("x".into()), "work: nothing was done", State::NeedsYou),
            (Action::Deny, Outcome::Unknown, "work: nothing was done", State::NeedsYou),
        ] {
            let note = Note::after("work", action, &outcome);
            assert_eq!((&*note.title, note.tone), (title, tone));
        }
        assert!(Action::ALL.iter().all(|action| action.done() != "done"), "a session works on after most of them");
    }

    #[test]
    fn case_705_a_note_says_nothing_twice() {
        for (action, words, title, body) in [
            (Action::Approve, "approved 1 request", "work: approved 1 request", ""),
            (Action::Stop, "stopped", "work: stopped", ""),
            (
                Action::Reconnect,
                "attached, and took over 1 request",
                "work: reconnected",
                "attached, and took over 1 request",
            ),
        ] {
            let note = Note::after("work", action, &Outcome::Done(words.into()));
            assert_eq!((&*note.title, &*note.body), (title, body));
        }
    }
}
