//! Listening sockets on macOS and Windows, through `listeners`.
//!
//! It lists those of every process that may be looked into: on macOS the user's own.

use std::io;

use listeners::{Protocol, SocketState};

use super::Socket;
use crate::agent::copilot::process::exits::has_ended;

/// All sockets that listen, and which of them are the process's.
pub(super) fn sockets(pid: u32) -> io::Result<Vec<Socket>> {
    if has_ended(pid) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let all = listeners::get_all().map_err(|error| io::Error::other(error.to_string()))?;
    let listen = all.iter().filter(|one| one.protocol == Protocol::TCP && one.state == SocketState::Listen);
    Ok(listen.map(|one| Socket { address: one.socket, ours: one.process.pid == pid }).collect())
}
