//! What the rest of the program asks of the engine.

use crate::control::{PendingOrder, Request};
use crate::core::live_state::LiveState;
use crate::core::session::Key;
use tokio::sync::oneshot;

/// What the user, or another part of the program, asks of the engine.
#[derive(Debug)]
pub(crate) enum Command {
    /// Carry out an order.
    Act(PendingOrder),
    /// Report what is known about the sessions beyond their logs.
    ReportLiveStates(oneshot::Sender<Vec<LiveState>>),
    /// Start or stop listening for bridges, because the bridge key was created or removed.
    RestartBridgeListener(oneshot::Sender<()>),
    /// The user has seen these sessions.
    Seen(Vec<Key>),
    /// The user has seen all sessions.
    SeenAll,
    /// Rescan everything now.
    Refresh,
    /// Call the view again even if nothing changed.
    Redraw,
    /// Exit.
    Quit,
}

impl From<Request> for Command {
    fn from(request: Request) -> Self {
        match request {
            Request::Order(pending) => Self::Act(*pending),
            Request::LiveStates(reply) => Self::ReportLiveStates(reply),
            Request::ListenToBridges(reply) => Self::RestartBridgeListener(reply),
        }
    }
}
