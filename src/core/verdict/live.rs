//! What is known about a session beyond its log: from its processes, its server, its bridge and our own actions.

use crate::core::facts::Facts;
use crate::core::form::Form;
use crate::core::question::Question;
use crate::core::time::{Moment, Time};

/// What is known about a session beyond its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The last sample of the CPU use of the owner's descendants.
    pub busy: Option<Sample>,
    /// Whether the session has active work, according to the server that we are attached to. `None`: not attached.
    pub has_active_work: Option<bool>,
    /// When we last attached with a permission handler, by the wall clock. Earlier denials no longer count.
    pub attached: Option<Time>,
    /// When we last stopped one of its turns, by the wall clock.
    pub stopped: Option<Time>,
    /// Its server's latest answer to a query without attaching.
    pub answer: Option<Answer>,
    /// Its server is being queried. Until that is done, no silence counts as `stuck`.
    pub asking: bool,
    /// The questions that its server or bridge reports as open, oldest first.
    pub questions: Vec<Asking>,
    /// When we reconnected it without having it continue its work, by the wall clock.
    pub left_undone: Option<Time>,
}

impl Live {
    /// The server's answer, if nothing has happened since the query.
    pub fn answer(&self, facts: &Facts) -> Option<&Answer> {
        self.answer.as_ref().filter(|answer| facts.progress.is_some_and(|progress| progress.wall == answer.progress))
    }
}

/// A server's answer to a query without attaching. Valid until the next event. Covers permission requests but not
/// questions, which servers report to attached clients only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The last progress in the log at the time of the query, by the wall clock.
    pub progress: Time,
    /// It has active work.
    pub active: bool,
    /// Number of open permission requests.
    pub requests: usize,
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The question.
    pub question: Question,
    /// When it was asked, by the wall clock.
    pub since: Time,
    /// How to answer it, or why it cannot be answered from here, without quoting it.
    pub form: Result<Form, Box<str>>,
}

/// A sample of the CPU use of an owner's descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// They used CPU.
    pub busy: bool,
    /// When the sample ended.
    pub at: Moment,
}
