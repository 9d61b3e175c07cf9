//! What is heard of an attached session, between orders.

use super::fault::Fault;
use pilotlight_core::verdict::Asking;

/// What is heard of an attached session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// The generation given to the attachment. It tells late events of an attachment that was replaced.
    pub generation: u64,
    /// The session's id.
    pub id: Box<str>,
    /// What happened.
    pub kind: ConnectionEventKind,
}

/// What happened in an attached session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEventKind {
    /// The turn is over, and the session waits.
    Idle,
    /// Whether the session works. Sent at the start and on each change.
    Active(bool),
    /// Whether it approves everything without asking. Sent at the start, and on each change. Older servers do not tell.
    Approves(bool),
    /// The open questions. Sent at the start if there are any, and on each change.
    Asks(Vec<Asking>),
    /// Any event, including those that never reach the disk. Sent at most a few times a second.
    Activity,
    /// The attachment is over. No event follows.
    Lost(Fault),
}
