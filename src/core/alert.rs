//! Notifications: from the sessions as they are now, and what is remembered of them, to what is to be raised or withdrawn.
//!
//! What a session is notified for is its *cause*, and the time in which one cause holds is an *episode*. An episode waits
//! until it is ripe (a permission may be given within 2 s, a cause is not told twice in 5 minutes, nothing is told right
//! after a start or a sleep), then for what else comes together with it, and is told once, or is silent for good. It is over
//! when the session does something else, is gone, or asks for another thing; then its popup is withdrawn. What became silent
//! is not told later: the menu has it.
//!
//! A session has one popup, three stand at most, and what comes on top is in one summary. A popup says what it said when it was
//! raised; one that can offer its answers only later is raised once more.
//!
//! Everything follows from the sessions, the settings and the time that [`Alerts::update`] is given. Nothing is queued: a
//! mute, a pause or a changed setting holds from the next update on, and every span is measured on the awake clock, so that
//! neither sleep nor a hand at the clock brings anything about. Only quiet hours and the end of a pause go by the wall.
//!
//! - `rules` is the state and its one step; `episode` what is remembered of one session.
//! - `quiet` is what must survive a restart: mutes, and a pause.
//! - `settings` is what the user sets; `words` what a popup says, and which buttons it may carry.

mod episode;
mod quiet;
mod rules;
mod settings;
mod words;

pub use quiet::{Pause, Quiet};
pub use rules::Alerts;
pub use settings::{Detail, Kinds, Settings};

use super::action::Action;
use super::fleet::Row;
use super::form::Form;
use super::time::{Moment, Span, Time};
use super::verdict::Status;
use std::sync::Arc;

/// A session: the index of its home, and its id.
pub type Key = (usize, Arc<str>);

/// What a session is notified for, the most pressing first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It waits for a permission.
    NeedsPermission,
    /// It waits for an answer.
    NeedsInput,
    /// Its tools are refused because nobody can be asked.
    PermissionLost,
    /// A turn is open, and silence passed its limit.
    Stuck,
    /// Its owner is gone, with work still open.
    Crashed,
    /// Its last turn ended in an error.
    Failed,
    /// A turn that took long is complete.
    Done,
}

impl Cause {
    /// Every cause, in their order.
    pub(crate) const ALL: [Self; 7] = [
        Self::NeedsPermission,
        Self::NeedsInput,
        Self::PermissionLost,
        Self::Stuck,
        Self::Crashed,
        Self::Failed,
        Self::Done,
    ];

    /// The cause that a status is by itself; a turn that is done is known by more than its status.
    pub(crate) const fn of(status: Status) -> Option<Self> {
        match status {
            Status::NeedsPermission => Some(Self::NeedsPermission),
            Status::NeedsInput => Some(Self::NeedsInput),
            Status::PermissionLost => Some(Self::PermissionLost),
            Status::Stuck => Some(Self::Stuck),
            Status::Crashed => Some(Self::Crashed),
            Status::Failed => Some(Self::Failed),
            Status::Quiet | Status::Finishing | Status::Working | Status::Idle | Status::Ended => None,
        }
    }

    /// The cause that a row is by itself. A run that ended denied is told as lost permissions.
    pub const fn of_row(row: &Row) -> Option<Self> {
        if row.ended_denied { Some(Self::PermissionLost) } else { Self::of(row.status) }
    }

    /// Its name: that of the status, and `done`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NeedsPermission => Status::NeedsPermission.name(),
            Self::NeedsInput => Status::NeedsInput.name(),
            Self::PermissionLost => Status::PermissionLost.name(),
            Self::Stuck => Status::Stuck.name(),
            Self::Crashed => Status::Crashed.name(),
            Self::Failed => Status::Failed.name(),
            Self::Done => "done",
        }
    }

    /// The user's look at the session settles it, though its status stays.
    const fn is_settled_by_a_look(self) -> bool {
        matches!(self, Self::PermissionLost | Self::Crashed | Self::Failed)
    }

    /// Whether the session waits for an answer, so that its popup waits as well.
    pub const fn awaits_an_answer(self) -> bool {
        matches!(self, Self::NeedsPermission | Self::NeedsInput)
    }
}

/// A session, as far as notifications are concerned.
#[derive(Clone, Copy, Debug)]
pub struct Alertable<'a> {
    /// Which one.
    pub key: &'a Key,
    /// What is shown of it everywhere.
    pub row: &'a Row,
    /// Its oldest open permission request: always there where it needs a permission, though little may be known of it.
    pub request: Option<Request<'a>>,
    /// Its oldest open question that can be answered from here.
    pub question: Option<Posed<'a>>,
    /// Its last turn, if that is complete: it ended by its answer, neither stopped nor failed nor guessed over.
    pub completed: Option<Completed>,
    /// The user has looked at it since it came to be so.
    pub seen: bool,
    /// The CLI itself notifies of the end of a turn there.
    pub cli_notifies: bool,
}

/// An open permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Tells it from every other one of its session.
    pub id: u64,
    /// What kind of thing is asked for: `shell`, `read`, `write`...
    pub kind: &'a str,
    /// What is asked, unaltered, where that is known.
    pub what: Option<&'a str>,
    /// It can be answered from here.
    pub answerable: bool,
}

/// An open question that can be answered from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posed<'a> {
    /// Tells it from every other one of its session, and from the same one with other words.
    pub mark: u64,
    /// It, whole and unaltered.
    pub form: &'a Form,
}

/// A turn that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// When it ended, by the log: tells it from every other one of its session.
    pub at: Time,
    /// How long it took.
    pub took: Span,
}

/// The time, and when the world last stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Both clocks.
    pub at: Moment,
    /// Minutes since midnight, where the user is.
    pub minute: u16,
    /// When we were started, by the awake clock.
    pub started: Time,
    /// When the machine last woke from sleep, by the awake clock, if it did.
    pub woke: Option<Time>,
}

/// Names a popup. No two ever have the same name within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PopupId(pub u64);

/// What is to be done with the popups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new one is to be shown.
    Raise(Popup),
    /// The summary that is open is of other sessions now. It answers nothing, so it may change in its place.
    Replace(Popup),
    /// An open one is to go.
    Withdraw(PopupId),
}

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Popup {
    /// Its name.
    pub id: PopupId,
    /// Whom it is about.
    pub about: About,
    /// What for; the most pressing cause where there are several.
    pub cause: Cause,
    /// The request that Approve and Deny answer, or the question that has its choices as buttons; the popup has these buttons only
    /// with it.
    pub asked: Option<Asked>,
    /// One line.
    pub title: String,
    /// A few lines, or none.
    pub body: String,
    /// It may make a sound.
    pub sound: bool,
    /// What can be done from it: the answers, the next step first, and what quietens it last.
    pub buttons: Vec<Button>,
}

/// Whom a popup is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// One session.
    One(Key),
    /// Several, for which there was no room one by one. In the order of their keys.
    Summary(Vec<Key>),
}

impl About {
    /// The sessions.
    pub fn keys(&self) -> &[Key] {
        match self {
            Self::One(key) => std::slice::from_ref(key),
            Self::Summary(keys) => keys,
        }
    }
}

/// A permission request, or a question, as a popup shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// [`Request::id`], or [`Posed::mark`].
    pub request: u64,
    /// What the user is shown of it: all.
    pub text: String,
    /// What stands on the buttons that answer a question, in the order of its choices.
    pub choices: Vec<String>,
}

/// What can be done from a popup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Button {
    /// This is done with the session, or with the request that is shown.
    Act(Action),
    /// The question that is shown is answered, by its choice of this index.
    Choice(u8),
    /// The session is told in its terminal to go on.
    SendOn,
    /// What is known of the session is shown.
    Details,
    /// The request is shown whole in a terminal, and answered there.
    Review,
    /// The session's popups are muted.
    Mute,
}

impl Button {
    /// The action's name, as in a row's actions and in JSON.
    pub(crate) const fn name(self) -> &'static str {
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

    /// What stands on it, among these, in a popup that shows this.
    pub(crate) fn label_among<'a>(self, buttons: &[Self], asked: Option<&'a Asked>) -> &'a str {
        match (self, asked) {
            (Self::Choice(index), Some(asked)) => asked.choices.get(usize::from(index)).map_or("", String::as_str),
            (Self::Act(Action::Reconnect), _) if buttons.contains(&Self::Act(Action::Continue)) => "Reconnect only",
            _ => self.label(),
        }
    }

    /// Whether it answers what the popup shows: only who has read that may click it.
    pub(crate) const fn answers(self) -> bool {
        matches!(self, Self::Act(Action::Approve | Action::Deny) | Self::Choice(_))
    }

    /// What stands on it by itself.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Choice(_) => "",
            Self::Act(action) => action.label(),
            Self::SendOn => "Send on",
            Self::Details => "Details",
            Self::Review => "Review…",
            Self::Mute => "Mute",
        }
    }
}
