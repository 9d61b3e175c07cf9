//! What tasks beside the loop tell it, and the connections that come of them.

use crate::agent::copilot::server::attached::{Attached, Event};
use crate::agent::copilot::server::fault::{Fault, Place};
use crate::agent::copilot::server::hosted::Hosted;
use crate::core::form::Form;
use crate::core::order::{Outcome, Step};
use crate::engine::asking::Looked;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Names a task beside the loop, and the connection that may come of it: no two have the same number.
pub(in crate::engine) type Task = u64;

/// What a task beside the loop tells it.
pub(in crate::engine) enum Happening {
    /// Something is about to be done.
    Step(Task, Step, String),
    /// A request, whole, that is about to be answered.
    Request(Task, String),
    /// A question, whole.
    Question(Task, Box<Form>),
    /// Something is about to be sent: may it?
    MaySend(Task, oneshot::Sender<Result<(), String>>),
    /// It is over.
    Over(Task, Over),
    /// Something happened to a session that we are attached to.
    Live(Event),
    /// Servers were asked what sessions do.
    Looked(Vec<Looked>),
}

/// How a task ended.
pub(in crate::engine) struct Over {
    pub(in crate::engine) outcome: Outcome,
    pub(in crate::engine) connection: Option<Arc<Connection>>,
    /// Whether the session was sent on.
    pub(in crate::engine) sequel: Sequel,
    /// What went wrong with which server.
    pub(in crate::engine) faults: Vec<Fault>,
    /// Servers over which all went well.
    pub(in crate::engine) well: Vec<Place>,
    /// The session's server refused us: why.
    pub(in crate::engine) refused: Option<Box<str>>,
}

/// What became of what a session had been told to do, where it was reconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Sequel {
    /// Nothing was sent.
    None,
    /// A prompt was sent, and the session took it.
    Sent,
    /// It is to go on when the turn is over that still runs.
    Waits,
}

/// A connection that is kept.
#[allow(clippy::large_enum_variant, reason = "there are a few of them, each in an `Arc` of its own")]
pub(in crate::engine) enum Connection {
    /// To a server of somebody else's.
    Attached(Attached),
    /// To a server of our own.
    Hosted(Hosted),
}

impl Connection {
    /// What both have in common.
    pub(in crate::engine) fn attached(&self) -> &Attached {
        match self {
            Self::Attached(attached) => attached,
            Self::Hosted(hosted) => hosted,
        }
    }
}

/// Lets go of a connection, gently.
pub(super) async fn leave(connection: Arc<Connection>) {
    match Arc::try_unwrap(connection) {
        Ok(Connection::Attached(attached)) => attached.leave().await,
        Ok(Connection::Hosted(hosted)) => hosted.end().await,
        Err(_) => {} // a task still works on it, and lets go of it at its end
    }
}
