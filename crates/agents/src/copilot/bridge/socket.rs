//! Our end of the bridge: a socket that extensions connect to, their events, and the handle that sends orders to one.
//!
//! A Unix socket on Linux and macOS (`unix`). There are no bridges on other systems.

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod unsupported;

#[cfg(unix)]
pub use unix::{BridgeSocket, SOCKET, is_listened_to, serve};
#[cfg(not(unix))]
pub use unsupported::{BridgeSocket, is_listened_to, serve};

use crate::copilot::bridge::wire::{Hello, Message, Order, OrderResult};
use tokio::sync::{mpsc, oneshot};

/// A connection's number, never reused.
pub type ConnectionId = u64;

/// An event on the socket. Events of one connection arrive in order.
#[derive(Debug)]
pub enum BridgeEvent {
    /// An extension has joined a session, and has proved that it knows the key.
    Joined(ConnectionId, Hello, Bridge),
    /// It has sent a message.
    Message(ConnectionId, Message),
    /// It has disconnected.
    Gone(ConnectionId),
}

/// What an extension says about an order.
#[derive(Debug)]
pub enum Reply {
    /// It asks whether the order still stands: right before it carries it out (`ready`), or because it has to wait. No
    /// answer means no.
    Asks { ready: bool, answer: oneshot::Sender<bool> },
    /// How it ended.
    Result(OrderResult),
}

/// Receives what the extension says about an order, up to its result; nothing more once the extension has disconnected.
/// The order no longer stands when this is dropped.
pub(crate) type Replies = mpsc::UnboundedReceiver<Reply>;

/// Sends orders to one extension. The connection ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Bridge {
    orders: mpsc::Sender<(Order, mpsc::UnboundedSender<Reply>)>,
}

impl Bridge {
    /// A bridge whose orders are carried out by whoever receives them here.
    pub const fn new(orders: mpsc::Sender<(Order, mpsc::UnboundedSender<Reply>)>) -> Self {
        Self { orders }
    }

    /// Sends an order.
    ///
    /// # Errors
    /// Where the extension has disconnected. Nothing was done.
    pub(crate) async fn order(&self, order: Order) -> Result<Replies, Gone> {
        let (reply, replies) = mpsc::unbounded_channel();
        self.orders.send((order, reply)).await.map_err(|_| Gone)?;
        Ok(replies)
    }
}

/// The extension has disconnected, with its session or alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;
