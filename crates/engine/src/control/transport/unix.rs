//! The control socket on Linux and macOS: a Unix socket next to the lock of the running tray.

use super::SocketState;
use pilotlight_system::descriptors;
use pilotlight_system::log::{self, private};
use pilotlight_system::own_socket::{Acceptor, OwnSocket};
use pilotlight_system::runtime::{NEW_SOCKET, Runtime, SOCKET};
use rustix::process::geteuid;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;

/// Delay before the next attempt when the socket's backlog is full.
const CONNECT_RETRY: Duration = Duration::from_millis(50);

/// The client's end.
pub(crate) type ClientStream = UnixStream;
/// The tray's end.
pub(crate) type ServerStream = UnixStream;

/// Accepts clients.
pub(crate) struct Listener(Acceptor);

/// The socket's file, removed with this value.
pub(crate) type SocketFile = OwnSocket;

/// The socket's path, for the user.
pub(crate) fn display_path(folder: &Path) -> String {
    folder.join(SOCKET).display().to_string()
}

/// Creates the socket, replacing an existing one.
pub(crate) fn bind(folder: &Path) -> io::Result<(Listener, SocketFile)> {
    let (socket, acceptor) = OwnSocket::bind(folder, SOCKET, NEW_SOCKET)?;
    Ok((Listener(acceptor), socket))
}

impl Listener {
    /// Accepts the next client; its process, if the system reports that. `None` for another user's client, whose
    /// connection is closed.
    pub(crate) async fn accept(&mut self) -> io::Result<Option<(ServerStream, Option<u32>)>> {
        let (stream, _) = self.0.accept().await?;
        let Ok(peer) = stream.peer_cred() else { return Ok(None) }; // it has already disconnected
        if peer.uid() != geteuid().as_raw() {
            log::warn!("another user (number {}) tried the control socket", private(&peer.uid()));
            return Ok(None);
        }
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        Ok(Some((stream, pid)))
    }
}

/// Checks whether a tray serves the socket in `folder`, without waiting for it.
///
/// # Errors
/// If the folder is not ours alone, or the socket cannot be used. The message is for the user.
pub fn socket_state(folder: &Path) -> io::Result<SocketState> {
    use rustix::io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    if Runtime::open(folder)?.is_none() {
        return Ok(SocketState::Absent);
    }
    let Ok(address) = SocketAddrUnix::new(folder.join(SOCKET)) else { return Ok(SocketState::Absent) }; // a path that is too long for any tray
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&socket, true)?;
    match connect(&socket, &address) {
        // The backlog is full.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Ok(SocketState::Served),
        Err(Errno::NOENT) => Ok(SocketState::Absent),
        Err(Errno::CONNREFUSED) => Ok(SocketState::Stale),
        Err(error) => Err(error.into()),
    }
}

/// Whether this connection uses a descriptor that is reserved for other purposes.
pub(crate) fn is_scarce(stream: &ServerStream) -> bool {
    descriptors::is_scarce(stream)
}

/// The process that serves this connection, if the system reports that.
pub(crate) fn server_of(stream: &ClientStream) -> Option<u32> {
    stream.peer_cred().ok()?.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0)
}

/// Connects to the tray; `None` if none serves the socket.
pub(crate) async fn connect(folder: &Path) -> io::Result<Option<ClientStream>> {
    use io::ErrorKind::{ConnectionRefused, InvalidInput, NotFound, WouldBlock};
    if Runtime::open(folder)?.is_none() {
        return Ok(None);
    }
    let stream = loop {
        match UnixStream::connect(folder.join(SOCKET)).await {
            Ok(stream) => break stream,
            // The backlog is full, and no event reports when it is not.
            Err(error) if error.kind() == WouldBlock => tokio::time::sleep(CONNECT_RETRY).await,
            // No socket, one that a dead tray left behind, or a path that is too long for any tray to serve.
            Err(error) if matches!(error.kind(), NotFound | ConnectionRefused | InvalidInput) => return Ok(None),
            Err(error) => return Err(error),
        }
    };
    let owner = stream.peer_cred()?.uid();
    if owner != geteuid().as_raw() {
        let words = format!("another user (number {owner}) serves it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
    }
    Ok(Some(stream))
}
