//! Messages from tasks to the loop, and the connections that tasks make.

use crate::parts::looks::LookId;
use crate::parts::probe::ProbedSession;
use pilotlight_agents::channel::connection_event::ConnectionEvent;
use pilotlight_agents::channel::fault::{Fault, Place};
use pilotlight_agents::channel::{Connection, ServiceReport};
use pilotlight_core::order::{Outcome, Report};
use pilotlight_core::reception::Word;
use pilotlight_core::session::{Key, SourceId};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Identifies a task, and the connection that it may leave behind. Never reused.
pub(crate) type TaskId = u64;

/// A message from a task or a kept connection to the loop.
pub(crate) enum TaskMessage {
    /// What it does, or shows.
    Report(TaskId, Report),
    /// Something is about to be sent: asks for permission.
    MaySend(TaskId, oneshot::Sender<Result<(), String>>),
    /// The session's model is answering.
    Receives(TaskId),
    End(TaskId, TaskEnd),
    /// An event of a kept connection, or of one that may be kept.
    Connection(ConnectionEvent),
    /// What servers report about silent sessions.
    Probed(Vec<ProbedSession>),
    /// What the service of a source's sessions reports of one of them.
    ServiceReports(SourceId, ServiceReport),
    /// What a session's server or bridge says about its answer.
    Heard(Key, LookId, Option<Word>),
}

/// How a task ended.
pub(crate) struct TaskEnd {
    pub(crate) outcome: Outcome,
    pub(crate) connection: Option<Arc<dyn Connection>>,
    /// Whether the session continues.
    pub(crate) continuation: Continuation,
    /// What failed, and at which server.
    pub(crate) faults: Vec<Fault>,
    /// The servers over which all succeeded.
    pub(crate) healthy: Vec<Place>,
    /// Why the session's server refused us, if it did.
    pub(crate) refused: Option<Box<str>>,
}

/// Whether a session that was reconnected continues with what it had been told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// Nothing was sent.
    None,
    /// A prompt was sent, and the session accepted it.
    Sent,
    /// It continues when the turn that still runs is over.
    Waiting,
}
