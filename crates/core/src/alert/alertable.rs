//! A session, and the time, as notifications see them.

use crate::fleet::Row;
use crate::form::Form;
use crate::session::Key;
use crate::time::{Moment, Span, Time};

/// A session as seen by notifications.
#[derive(Clone, Copy, Debug)]
pub struct Alertable<'a> {
    pub key: &'a Key,
    pub row: &'a Row,
    /// Its oldest open permission request. Always set when it needs a permission, even if little is known about the
    /// request.
    pub request: Option<Request<'a>>,
    /// Its oldest open question that can be answered from here.
    pub question: Option<OpenQuestion<'a>>,
    /// Its last turn, if complete: it ended with an answer, and was not stopped, failed or only presumed over.
    pub completed: Option<Completed>,
    /// How its last message begins, if that is to be shown.
    pub last_message: Option<&'a str>,
    /// The CLI itself notifies about the end of its turns.
    pub cli_notifies: bool,
    /// A terminal that the user may look at shows it.
    pub has_terminal: bool,
}

/// An open permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Unique within its session.
    pub id: u64,
    /// What kind of thing is asked for: `shell`, `read`, `write`...
    pub kind: &'a str,
    /// The request's text, unaltered, if known.
    pub what: Option<&'a str>,
    /// It is not certain that it is open.
    pub probable: bool,
    /// It can be answered from here.
    pub answerable: bool,
    /// Its user can let Pilotlight answer the next ones in that terminal.
    pub can_be_let: bool,
    /// A command that may not be a person's wants to approve it.
    pub approval_requested: bool,
}

/// An open question that can be answered from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenQuestion<'a> {
    /// Unique within its session; a question that is worded differently has another mark.
    pub mark: u64,
    /// The question, whole and unaltered.
    pub form: &'a Form,
}

/// A complete turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// When it ended, by the log. Unique within its session.
    pub at: Time,
    /// How long it took.
    pub took: Span,
}

/// The current time, and the interruptions that matter to notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Both clocks.
    pub at: Moment,
    /// Minutes since local midnight.
    pub minute: u16,
    /// When we started, by the awake clock.
    pub started: Time,
    /// When the machine last woke from sleep, by the awake clock, if it did.
    pub woke: Option<Time>,
}
