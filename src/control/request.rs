//! Requests that have arrived, each with the channel for its answer.

use crate::core::live_state::LiveState;
use crate::core::order::{Order, Report};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// A request that a client may make, on its way to the engine.
pub(crate) enum Request {
    /// Act on a session.
    Order(PendingOrder),
    /// Report what is known about the sessions beyond their logs.
    LiveStates(oneshot::Sender<Vec<LiveState>>),
    /// Start or stop listening for bridges, because the bridge key was created or removed.
    ListenToBridges(oneshot::Sender<()>),
}

/// An order on its way to the engine, with the channel for its reports.
#[derive(Clone, Debug)]
pub(crate) struct PendingOrder {
    /// The order.
    pub order: Order,
    /// Receives the reports; the last one is an end.
    pub reply: UnboundedSender<Report>,
    /// Drop the order if its reports have no receiver any more, unless something has already been sent. False for our
    /// own orders, which need no receiver.
    pub lapses: bool,
}

impl PendingOrder {
    /// An order from a client, dropped when the client disconnects.
    pub(crate) const fn by_caller(order: Order, reply: UnboundedSender<Report>) -> Self {
        Self { order, reply, lapses: true }
    }

    /// An order of our own.
    pub(crate) const fn by_us(order: Order, reply: UnboundedSender<Report>) -> Self {
        Self { order, reply, lapses: false }
    }

    /// Whether the client that gave it has disconnected.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lapses && self.reply.is_closed()
    }

    /// Sends a report, if it still has a receiver.
    pub(crate) fn report(&self, report: Report) {
        let _ = self.reply.send(report);
    }
}
