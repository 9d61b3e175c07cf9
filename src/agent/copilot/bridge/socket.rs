//! Our side of the bridge: a socket that extensions connect to, and one conversation each.
//!
//! On Linux and macOS a Unix socket (`unix`); elsewhere nobody listens, and there are no bridges.

#[cfg(not(unix))]
mod nowhere;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use nowhere::{Served, is_listened_to, serve};
#[cfg(unix)]
pub(crate) use unix::{Served, is_listened_to, serve};

use super::wire::{self, Hello, Order, Told};
use tokio::sync::{mpsc, oneshot};

/// Names a conversation: no two have the same number.
pub(crate) type Line = u64;

/// What is heard over the socket, in order for each line.
#[derive(Debug)]
pub(crate) enum Heard {
    /// An extension has joined a session, and has proved that it knows the key.
    Joined(Line, Hello, Bridge),
    /// It tells something.
    Told(Line, Told),
    /// It has gone.
    Gone(Line),
}

/// The way to one extension. The conversation ends when this is dropped.
#[derive(Clone, Debug)]
pub struct Bridge {
    orders: mpsc::Sender<(Order, oneshot::Sender<wire::Result>)>,
}

impl Bridge {
    /// Orders, and waits for what came of it.
    ///
    /// # Errors
    /// Where the extension has gone before it said.
    pub(crate) async fn order(&self, order: Order) -> Result<wire::Result, Gone> {
        let (tell, told) = oneshot::channel();
        self.orders.send((order, tell)).await.map_err(|_| Gone)?;
        told.await.map_err(|_| Gone)
    }
}

/// The extension has gone: with its session, or by itself. What it was told before may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;
