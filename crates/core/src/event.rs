//! One event of a session's log, as the rules know it, whoever wrote it. How an agent writes its log is known to its
//! folder (`pilotlight_agents`, `<name>/log_format`).

mod body;

pub use body::{Body, SessionInfo, ToolResult};

use super::scan::Text;
use super::time::{Span, Time};

/// One event of a session's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    /// Its type, as the line has it.
    pub kind: &'a [u8],
    /// When it was written, by the writer's wall clock. `None` for a line without a time.
    pub at: Option<Time>,
    /// The event's own id, for recognizing a line that was written twice. Empty if missing.
    pub id: &'a [u8],
    /// The id of the preceding event. Empty for the first.
    pub parent: &'a [u8],
    /// The response of the model that it is part of, by which it is told from those before and after it. Empty: it is part
    /// of none, or that is not known. A model is asked again only once it is given the results of all its tools.
    pub round: &'a [u8],
    /// The sub-agent that wrote it; `None` for the root.
    pub sub_agent: Option<Text<'a>>,
    /// What happened.
    pub body: Body<'a>,
    /// What the line says besides.
    pub besides: Besides<'a>,
}

/// What a line says besides what happened: no rule of the turn needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Besides<'a> {
    /// What became of a schedule of the session.
    pub schedule: Option<ScheduleChange<'a>>,
    /// What it counts in tokens.
    pub tokens: Option<Tokens>,
    /// Until when a limit of usage refuses requests, if it tells of limits.
    pub limit: Option<Limit>,
    /// What the agent says in it.
    pub message: Option<Text<'a>>,
    /// The sub-agent that it starts.
    pub sub_agent: Option<SubAgentInfo<'a>>,
}

/// What a line counts in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// What its last request to the model used of the context.
    pub context: Option<i64>,
    /// The size of the context, if the log tells it.
    pub window: Option<i64>,
    /// All of the session.
    pub total: Option<i64>,
}

/// What a line says of the limits of usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// None is reached.
    Free,
    /// One is, until then.
    Until(Time),
}

/// What a line says of a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubAgentInfo<'a> {
    /// Its name, or its kind.
    pub name: Text<'a>,
}

impl Besides<'_> {
    /// Nothing.
    pub const NONE: Self = Self { schedule: None, tokens: None, limit: None, message: None, sub_agent: None };
}

/// What became of a schedule, by which a session prompts itself later.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleChange<'a> {
    /// It is armed, or armed anew.
    Armed {
        /// Which it is.
        id: Text<'a>,
        /// When it fires next.
        at: Option<Time>,
        /// How long after this line it fires, if that is what is said; one that repeats does so again and again.
        after: Option<Span>,
        /// It fires more than once.
        repeats: bool,
        /// It outlives the session's process.
        persists: bool,
    },
    /// It has fired.
    Fired {
        /// Which it is.
        id: Text<'a>,
        /// When it fires again, after this, if it does and that is known.
        every: Option<Span>,
    },
    /// It was cancelled.
    Cancelled {
        /// Which it is.
        id: Text<'a>,
    },
}

impl<'a> Event<'a> {
    /// An event of the root, in a log whose lines have no ids.
    pub const fn of(kind: &'a [u8], at: Time, body: Body<'a>) -> Self {
        Self { kind, at: Some(at), id: b"", parent: b"", round: b"", sub_agent: None, body, besides: Besides::NONE }
    }
}
