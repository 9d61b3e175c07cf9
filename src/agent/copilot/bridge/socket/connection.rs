//! Connections of extensions: their events, and the handle that sends orders to one.

use crate::agent::copilot::bridge::wire::{Hello, Message, Order, OrderResult};
use tokio::sync::{mpsc, oneshot};

/// A connection's number, never reused.
pub(crate) type ConnectionId = u64;

/// An event on the socket. Events of one connection arrive in order.
#[derive(Debug)]
pub(crate) enum BridgeEvent {
    /// An extension has joined a session, and has proved that it knows the key.
    Joined(ConnectionId, Hello, Bridge),
    /// It has sent a message.
    Message(ConnectionId, Message),
    /// It has disconnected.
    Gone(ConnectionId),
}

/// Sends orders to one extension. The connection ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Bridge {
    pub(super) orders: mpsc::Sender<(Order, oneshot::Sender<OrderResult>)>,
}

impl Bridge {
    /// Sends an order and waits for its result.
    ///
    /// # Errors
    /// Where the extension disconnects before it reports one.
    pub(crate) async fn order(&self, order: Order) -> Result<OrderResult, Gone> {
        let (reply, result) = oneshot::channel();
        self.orders.send((order, reply)).await.map_err(|_| Gone)?;
        result.await.map_err(|_| Gone)
    }
}

/// The extension has disconnected, with its session or alone. Its last order may have been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;
