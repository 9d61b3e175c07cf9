//! Listening sockets on macOS and Windows, through `listeners`.
//!
//! It lists the sockets of every process that may be inspected, which on macOS are the user's own.

use std::io;

use listeners::{Protocol, SocketState};

use super::reachable::Socket;
use crate::process::exits::has_ended;

/// All listening sockets, and which of them belong to the process.
pub(super) fn sockets(pid: u32) -> io::Result<Vec<Socket>> {
    if has_ended(pid) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let all = listeners::get_all().map_err(|error| io::Error::other(error.to_string()))?;
    let listen = all.iter().filter(|one| one.protocol == Protocol::TCP && one.state == SocketState::Listen);
    Ok(listen.map(|one| Socket { address: one.socket, ours: one.process.pid == pid }).collect())
}
