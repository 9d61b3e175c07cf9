//! Our end of the bridge: a socket that extensions connect to.
//!
//! A Unix socket on Linux and macOS (`unix`). There are no bridges on other systems.

mod connection;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod unsupported;

pub use connection::Bridge;
pub use connection::{BridgeEvent, ConnectionId, Reply};
#[cfg(unix)]
pub use unix::{BridgeSocket, is_listened_to, serve};
#[cfg(not(unix))]
pub use unsupported::{BridgeSocket, is_listened_to, serve};
