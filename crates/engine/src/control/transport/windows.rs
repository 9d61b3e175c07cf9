//! The control socket on Windows: a named pipe.
//!
//! Pipes of all users share one namespace, so the name is derived from the folder's path, which is below the user's
//! own. A pipe that is created without an access list can be written to by its user, by administrators and by the
//! system. Others can only open it for reading, and there is nothing to read before an order. Remote machines are
//! rejected.
#![allow(unsafe_code)]

use super::SocketState;
use pilotlight_system::runtime::Runtime;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::time::Duration;
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;
use windows_sys::Win32::System::Pipes::{GetNamedPipeClientProcessId, GetNamedPipeServerProcessId};

/// A pipe's name has at most 256 characters, including its prefix.
const NAME_MAX: usize = 200;
/// Delay before the next attempt when all instances of the pipe are in use: no event reports a free one.
const CONNECT_RETRY: Duration = Duration::from_millis(50);

/// The client's end.
pub(crate) type ClientStream = NamedPipeClient;
/// The tray's end.
pub(crate) type ServerStream = NamedPipeServer;

/// Accepts clients.
pub(crate) struct Listener {
    name: String,
    /// The instance for the next client.
    waiting: NamedPipeServer,
}

/// Nothing to remove: a pipe disappears with its last handle.
#[derive(Debug)]
pub(crate) struct SocketFile;

impl SocketFile {
    /// No file.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        std::path::PathBuf::new()
    }

    /// Nothing can remove a pipe that is served.
    pub(crate) const fn renew(&mut self) {}
}

/// The pipe's name, for the user.
pub(crate) fn display_path(folder: &Path) -> String {
    let path: String = folder.to_string_lossy().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    // The end of a path is more distinctive than its beginning.
    let end = path.char_indices().rev().nth(NAME_MAX).map_or(0, |(at, _)| at);
    format!(r"\\.\pipe\pilotlight-{}", &path[end..])
}

/// Creates the pipe.
pub(crate) fn bind(folder: &Path) -> io::Result<(Listener, SocketFile)> {
    let name = display_path(folder);
    let waiting = ServerOptions::new()
        .first_pipe_instance(true)
        .reject_remote_clients(true)
        .create(&name)
        .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    Ok((Listener { name, waiting }, SocketFile))
}

impl Listener {
    /// Accepts the next client; its process, if the system reports that.
    pub(crate) async fn accept(&mut self) -> io::Result<Option<(ServerStream, Option<u32>)>> {
        self.waiting.connect().await?;
        let next = match ServerOptions::new().reject_remote_clients(true).create(&self.name) {
            Ok(next) => next,
            Err(error) => {
                // The waiting instance must be free again for the next client.
                self.waiting.disconnect()?;
                return Err(error);
            }
        };
        let connected = std::mem::replace(&mut self.waiting, next);
        let pid = process_of(&connected);
        Ok(Some((connected, pid)))
    }
}

/// The process at the other end.
fn process_of(pipe: &NamedPipeServer) -> Option<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open, and `pid` is a valid place to write to.
    let succeeded = unsafe { GetNamedPipeClientProcessId(pipe.as_raw_handle(), &raw mut pid) };
    (succeeded != 0 && pid != 0).then_some(pid)
}

/// Checks whether a tray serves the pipe, by the tray's note. Opening the pipe would take an instance from a command.
///
/// # Errors
/// If the folder cannot be read.
pub fn socket_state(folder: &Path) -> io::Result<SocketState> {
    let noted = Runtime::open(folder)?.is_some_and(|runtime| runtime.note().is_some());
    Ok(if noted { SocketState::Served } else { SocketState::Absent })
}

/// Never: Windows has no limit of handles that could be reached.
pub(crate) fn is_scarce(_stream: &ServerStream) -> bool {
    false
}

/// The process that serves this connection, if the system reports that.
pub(crate) fn server_of(pipe: &ClientStream) -> Option<u32> {
    let mut pid = 0;
    // SAFETY: the handle is open, and `pid` is a valid place to write to.
    let succeeded = unsafe { GetNamedPipeServerProcessId(pipe.as_raw_handle(), &raw mut pid) };
    (succeeded != 0 && pid != 0).then_some(pid)
}

/// Connects to the tray; `None` if none serves the pipe.
pub(crate) async fn connect(folder: &Path) -> io::Result<Option<ClientStream>> {
    let name = display_path(folder);
    loop {
        match ClientOptions::new().open(&name) {
            Ok(pipe) => return Ok(Some(pipe)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error().map(i32::unsigned_abs) == Some(ERROR_PIPE_BUSY) => {
                tokio::time::sleep(CONNECT_RETRY).await;
            }
            Err(error) => return Err(error),
        }
    }
}
