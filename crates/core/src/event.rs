//! One event of a session's log, as the rules know it, whoever wrote it. How an agent writes its log is known to its
//! folder (`pilotlight_agents`, `<name>/log_format`).

mod body;

pub use body::{Body, SessionInfo, ToolResult};

use super::scan::Text;
use super::time::Time;

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
}

impl<'a> Event<'a> {
    /// An event of the root, in a log whose lines have no ids.
    pub const fn of(kind: &'a [u8], at: Time, body: Body<'a>) -> Self {
        Self { kind, at: Some(at), id: b"", parent: b"", round: b"", sub_agent: None, body }
    }
}
