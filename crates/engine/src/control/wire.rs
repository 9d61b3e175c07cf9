//! What a client sends: one line of JSON. An order is an object; what concerns no session is a string, or an object of one
//! key that no order has.

use pilotlight_core::order::Order;
use serde::{Deserialize, Serialize};

/// Maximum length of a request in bytes, including its line break: ids, and at most one permission request's text.
pub const ORDER_MAX: usize = 64 << 10;
/// The first line that a client gets: its request has arrived.
pub(super) const ACK: &[u8] = b"\"heard\"\n";

/// What a client asks for.
pub(super) enum ClientRequest {
    /// To act on a session.
    Order(Order),
    /// Something of the tray itself.
    Tray(TrayRequest),
}

/// What a client may ask of the tray itself. It is answered by one line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TrayRequest {
    /// Its sessions.
    Sessions,
    /// What it knows of other machines.
    Hosts,
    /// To start or stop listening for bridges, because the bridge key was created or removed.
    ListenToBridges,
    /// To tell of all its sessions as they change, and to take orders, for a Pilotlight on another machine.
    /// With how their last messages begin only if `messages`.
    Serve { messages: bool },
    /// To try to reach another machine again now, by another connection if `anew`, and to tell what came of it.
    RetryHost { host: Box<str>, anew: bool },
    /// To know that the window has come in which the caller runs, which the tray opened at a click.
    HoldWindow,
}

impl ClientRequest {
    /// Reads a line.
    ///
    /// # Errors
    /// If it is neither an order nor a request of this version.
    pub(super) fn read(line: &[u8]) -> serde_json::Result<Self> {
        match serde_json::from_slice(line) {
            Ok(request) => Ok(Self::Tray(request)),
            Err(error) if line.first() == Some(&b'"') => Err(error),
            Err(_) => serde_json::from_slice(line).map(Self::Order),
        }
    }
}
