//! What is known of a session beside its log: from its processes, its server, its bridge and what we did.

use crate::core::asked::Question;
use crate::core::form::Form;
use crate::core::session::Facts;
use crate::core::time::{Moment, Time};

/// What is known of a session beside its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Whether the owner's descendants used CPU, when last sampled.
    pub busy: Option<Sample>,
    /// Whether the server that runs the session says that it has active work. `None`: not attached.
    pub has_active_work: Option<bool>,
    /// When we last attached with a permission handler, by the wall clock: denials before that no longer count.
    pub attached: Option<Time>,
    /// When we last stopped a turn of it, by the wall clock.
    pub stopped: Option<Time>,
    /// What its server said when it was last asked without attaching.
    pub answer: Option<Answer>,
    /// Its server is being asked: until that is over, no silence is called `stuck`.
    pub asking: bool,
    /// What it asks its user, as an attached session's server tells, the oldest first.
    pub questions: Vec<Asking>,
    /// When we reconnected it without sending on what it had been told to do, by the wall clock.
    pub left_undone: Option<Time>,
}

impl Live {
    /// The server's answer, if nothing happened since it was asked.
    pub fn answer(&self, facts: &Facts) -> Option<&Answer> {
        self.answer.as_ref().filter(|answer| facts.progress.is_some_and(|progress| progress.wall == answer.progress))
    }
}

/// What a server said of a session when it was asked without attaching. Good until the next event: who is not attached is told
/// of nothing that a tool asks the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The last sign of life in the log when it was asked, by the wall clock.
    pub progress: Time,
    /// It has active work.
    pub active: bool,
    /// How many permission requests are open.
    pub requests: usize,
}

/// A question that waits for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// What is asked.
    pub question: Question,
    /// Since when, by the wall clock.
    pub since: Time,
    /// How it is answered; why it cannot be answered from here, in words that hold nothing of it.
    pub form: Result<Form, Box<str>>,
}

/// One look at the CPU use of an owner's descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// They used CPU.
    pub busy: bool,
    /// When the look was over.
    pub at: Moment,
}
