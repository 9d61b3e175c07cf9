//! A Unix socket of ours in the runtime folder: only its user can access it, and it is made again where its file was removed.
//!
//! It is created under another name, restricted to its user, and then renamed. So it is never accessible to others
//! under its own name, and there is no moment between a dead process's socket and the new one without a socket.

use crate::identity::Identity;
use crate::log::{self, cause};
use crate::runtime::{Runtime, is_listened_to};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The socket's file, removed with this value.
#[derive(Debug)]
pub struct OwnSocket {
    folder: PathBuf,
    name: &'static str,
    /// Its name while it is created.
    new_name: &'static str,
    file: Identity,
    renewed: UnboundedSender<UnixListener>,
}

/// Accepts connections at the socket, also after it was made again.
#[derive(Debug)]
pub struct Acceptor {
    listener: UnixListener,
    renewed: UnboundedReceiver<UnixListener>,
}

impl OwnSocket {
    /// Creates a socket of this name on the current Tokio runtime, replacing an existing one.
    ///
    /// # Errors
    /// Where there is no such folder, it is not ours alone, or the socket cannot be created there.
    pub fn bind(folder: &Path, name: &'static str, new_name: &'static str) -> io::Result<(Self, Acceptor)> {
        let (listener, file) = bind(folder, name, new_name)?;
        let (sender, renewed) = unbounded_channel();
        let socket = Self { folder: folder.to_owned(), name, new_name, file, renewed: sender };
        Ok((socket, Acceptor { listener, renewed }))
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.join(self.name)
    }

    /// Makes it again if it was removed, or if what is in its place is a dead process's. Those who are connected stay so. The log
    /// says what was done, or why it could not be.
    pub fn renew(&mut self) {
        match self.make_again() {
            Ok(true) => log::warn!("the socket {} was removed: it was made again", self.name),
            Ok(false) => {}
            Err(error) => {
                log::warn!("the socket {} was removed, and cannot be made again: {}", self.name, cause(&error));
            }
        }
    }

    /// Returns whether it was made.
    fn make_again(&mut self) -> io::Result<bool> {
        if self.is_there() || is_listened_to(&self.path()) {
            return Ok(false);
        }
        let (listener, file) = bind(&self.folder, self.name, self.new_name)?;
        self.file = file;
        Ok(self.renewed.send(listener).is_ok())
    }

    fn is_there(&self) -> bool {
        fs::symlink_metadata(self.path()).is_ok_and(|meta| Identity::of(&meta) == self.file)
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // Another process may have replaced it.
        if self.is_there() {
            let _ = fs::remove_file(self.path()); // a leftover is replaced by the next one
        }
    }
}

impl Acceptor {
    /// Accepts the next connection.
    ///
    /// # Errors
    /// Those of accepting: descriptors may have run out.
    pub async fn accept(&mut self) -> io::Result<(UnixStream, SocketAddr)> {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => return accepted,
                Some(listener) = self.renewed.recv() => self.listener = listener,
            }
        }
    }
}

fn bind(folder: &Path, name: &str, new_name: &str) -> io::Result<(UnixListener, Identity)> {
    let (new, path) = (folder.join(new_name), folder.join(name));
    let absent = || io::Error::new(io::ErrorKind::NotFound, format!("there is no folder {}", folder.display()));
    Runtime::open(folder)?.ok_or_else(absent)?;
    let made = || {
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {} // left by a dead process
        }
        let listener = UnixListener::bind(&new)?;
        fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        let file = Identity::of(&fs::symlink_metadata(&new)?);
        fs::rename(&new, &path)?;
        Ok((listener, file))
    };
    made().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn case_864_a_socket_that_was_removed_is_made_again_and_who_is_connected_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("runtime");
        Runtime::make(&folder).unwrap();
        let (mut socket, mut acceptor) = OwnSocket::bind(&folder, "a.sock", "a.new").unwrap();
        let path = socket.path();
        let mut first = UnixStream::connect(&path).await.unwrap();
        let (mut its, _) = acceptor.accept().await.unwrap();
        assert!(!socket.make_again().unwrap(), "it is there");
        fs::remove_file(&path).unwrap();
        assert!(socket.make_again().unwrap() && !socket.make_again().unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        let connecting = tokio::spawn(UnixStream::connect(path.clone()));
        acceptor.accept().await.unwrap();
        connecting.await.unwrap().unwrap();
        first.write_all(b"x").await.unwrap();
        assert_eq!(its.read_u8().await.unwrap(), b'x');
        // What a dead process left in its place gives way; what another one listens at does not.
        fs::remove_file(&path).unwrap();
        let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(!socket.make_again().unwrap());
        drop(other);
        assert!(socket.make_again().unwrap());
        drop(socket);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
}
