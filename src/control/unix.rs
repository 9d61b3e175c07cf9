//! The control socket on Linux and macOS: a Unix socket beside the lock of the running tray.
//!
//! It is made under another name, closed to others, and only then given its own: there is no moment at which it stands there
//! open, and none at which a dead tray's socket was removed and the new one is not there yet.

use crate::system::descriptors;
use crate::system::runtime::{NEW_SOCKET, Runtime, SOCKET};
use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};

/// Where the socket takes no more clients, the next try is so much later.
const PAUSE: Duration = Duration::from_millis(50);

/// A client's end, and the tray's.
pub(super) type ClientStream = UnixStream;
/// The tray's end.
pub(super) type ServerStream = UnixStream;

/// Lets clients in.
pub(super) struct Listener(UnixListener);

/// The socket's file, removed with this value.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    file: (u64, u64),
}

impl Drop for Mark {
    fn drop(&mut self) {
        // It may be the next tray's by now, where nobody held the lock.
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| identity(&meta) == self.file) {
            let _ = fs::remove_file(&self.path); // what stays is replaced by the next one
        }
    }
}

fn identity(meta: &fs::Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Where it is, for the user.
pub(super) fn shown(folder: &Path) -> String {
    folder.join(SOCKET).display().to_string()
}

/// Makes the socket, in place of one that stands there.
pub(super) fn bind(folder: &Path) -> io::Result<(Listener, Mark)> {
    Runtime::open(folder)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", folder.display())))?;
    let (new, path) = (folder.join(NEW_SOCKET), folder.join(SOCKET));
    let made = || {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&new)?;
        fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        let file = identity(&fs::symlink_metadata(&new)?);
        fs::rename(&new, &path)?;
        Ok((Listener(listener), file))
    };
    let (listener, file) =
        made().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok((listener, Mark { path, file }))
}

impl Listener {
    /// The next client, and its process, where the system tells; `None` where it was another user's, and its connection is
    /// closed.
    pub(super) async fn accept(&mut self) -> io::Result<Option<(ServerStream, Option<u32>)>> {
        let (stream, _) = self.0.accept().await?;
        let Ok(peer) = stream.peer_cred() else { return Ok(None) }; // it has gone already
        if peer.uid() != geteuid().as_raw() {
            tracing::warn!("another user (number {}) tried the control socket", peer.uid());
            return Ok(None);
        }
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        Ok(Some((stream, pid)))
    }
}

/// Whether a tray serves the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// There is no socket.
    Nobody,
    /// A tray that has ended without a word left its socket behind.
    LeftBehind,
    /// One serves it, or hangs.
    Served,
}

/// Looks whether a tray serves the socket in `folder`, without waiting for it.
///
/// # Errors
/// Where the folder is not ours alone, or the socket cannot be used. In words for the user.
pub(crate) fn probe(folder: &Path) -> io::Result<Probe> {
    use rustix::io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    if Runtime::open(folder)?.is_none() {
        return Ok(Probe::Nobody);
    }
    let Ok(address) = SocketAddrUnix::new(folder.join(SOCKET)) else { return Ok(Probe::Nobody) }; // too long for any tray
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&socket, true)?;
    match connect(&socket, &address) {
        // As many wait to be let in as the system allows.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Ok(Probe::Served),
        Err(Errno::NOENT) => Ok(Probe::Nobody),
        Err(Errno::CONNREFUSED) => Ok(Probe::LeftBehind),
        Err(error) => Err(error.into()),
    }
}

/// Whether this connection takes a descriptor that is reserved for others.
pub(super) fn is_scarce(stream: &ServerStream) -> bool {
    descriptors::is_scarce(stream)
}

/// The process that serves this connection, where the system tells.
pub(super) fn server_of(stream: &ClientStream) -> Option<u32> {
    stream.peer_cred().ok()?.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0)
}

/// A connection to the tray; `None` where none serves.
pub(super) async fn connect(folder: &Path) -> io::Result<Option<ClientStream>> {
    use io::ErrorKind::{ConnectionRefused, InvalidInput, NotFound, WouldBlock};
    if Runtime::open(folder)?.is_none() {
        return Ok(None);
    }
    let stream = loop {
        match UnixStream::connect(folder.join(SOCKET)).await {
            Ok(stream) => break stream,
            // As many wait to be let in as the system allows, and nothing tells when one is.
            Err(error) if error.kind() == WouldBlock => tokio::time::sleep(PAUSE).await,
            // No socket, one that a dead tray left, or a path that is too long for any tray to serve it.
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
