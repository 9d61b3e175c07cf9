//! Messages from tasks to the loop.

use super::order_task::OrderResult;
use crate::parts::probe::ProbedSession;
use crate::parts::stream_probes::ProbeId;
use pilotlight_agents::channel::ServiceReport;
use pilotlight_agents::channel::connection_event::ConnectionEvent;
use pilotlight_core::order::Report;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_core::stream_probe::Word;
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
    /// It is over.
    End(TaskId, OrderResult),
    /// An event of a kept connection, or of one that may be kept.
    Connection(ConnectionEvent),
    /// What servers report about silent sessions.
    Probed(Vec<ProbedSession>),
    /// What the service of a source's sessions reports of one of them.
    ServiceReports(HomeId, ServiceReport),
    /// What a session's server or bridge says about its answer.
    StreamProbed(Key, ProbeId, Option<Word>),
}
