//! The control socket on Linux and macOS: a Unix socket beside the lock of the running tray.
//!
//! It is made under another name, closed to others, and only then given its own: there is no moment at which it stands there
//! open, and none at which a dead tray's socket was removed and the new one is not there yet.

use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// The socket's name.
pub(super) const SOCKET: &str = "pilotlight.sock";
/// Its name while it is made; no longer than the other, as the system bounds the path of a socket (108 bytes on Linux, 104
/// on macOS).
const NEW: &str = "pilotlight.new";

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
    check(folder)?;
    let (new, path) = (folder.join(NEW), folder.join(SOCKET));
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

/// Whether the folder is the user's own, and nobody else's to write to.
fn check(folder: &Path) -> io::Result<()> {
    let shown = folder.display();
    let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    let meta =
        fs::symlink_metadata(folder).map_err(|error| io::Error::new(error.kind(), format!("{shown}: {error}")))?;
    if !meta.is_dir() {
        return refuse(format!("{shown} is not a folder"));
    }
    if meta.uid() != geteuid().as_raw() {
        return refuse(format!("the folder {shown} belongs to another user (number {})", meta.uid()));
    }
    if meta.mode() & 0o022 != 0 {
        return refuse(format!(
            "others may write to the folder {shown}: take that from them with `chmod go-w {shown}`"
        ));
    }
    Ok(())
}

impl Listener {
    /// The next client, and its process, where the system tells; `None` where it was another user's, and its connection is
    /// closed.
    pub(super) async fn accept(&mut self) -> io::Result<Option<(ServerStream, Option<u32>)>> {
        let (stream, _) = self.0.accept().await?;
        let Ok(peer) = stream.peer_cred() else { return Ok(None) }; // it has gone already
        if peer.uid() != geteuid().as_raw() {
            tracing::warn!("the control socket was tried by another user (number {})", peer.uid());
            return Ok(None);
        }
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        Ok(Some((stream, pid)))
    }
}

/// A connection to the tray; `None` where none serves.
pub(super) async fn connect(folder: &Path) -> io::Result<Option<ClientStream>> {
    use io::ErrorKind::{ConnectionRefused, InvalidInput, NotFound};
    let stream = match UnixStream::connect(folder.join(SOCKET)).await {
        Ok(stream) => stream,
        // No socket, one that a dead tray left, or a path that is too long for any tray to serve it.
        Err(error) if matches!(error.kind(), NotFound | ConnectionRefused | InvalidInput) => return Ok(None),
        Err(error) => return Err(error),
    };
    let owner = stream.peer_cred()?.uid();
    if owner != geteuid().as_raw() {
        let words = format!("another user (number {owner}) serves it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
    }
    Ok(Some(stream))
}
