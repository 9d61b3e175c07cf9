//! The control socket on Windows: a named pipe.
//!
//! Pipes of all users share one room of names, so the name is made of the folder's path, which is below the user's own. A pipe
//! that is made without saying who may use it may be written to by its user, by administrators and by the system; others can
//! open it to read, and there is nothing to read before an order. Remote machines are turned away.
#![allow(unsafe_code)]

use crate::system::runtime::Runtime;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::time::Duration;
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;
use windows_sys::Win32::System::Pipes::{GetNamedPipeClientProcessId, GetNamedPipeServerProcessId};

/// A name has at most 256 characters, with what stands before it.
const NAME_MAX: usize = 200;
/// Where all ends of the pipe are taken, the next try is so much later: nothing tells when one is free.
const PAUSE: Duration = Duration::from_millis(50);

/// A client's end.
pub(super) type ClientStream = NamedPipeClient;
/// The tray's end.
pub(super) type ServerStream = NamedPipeServer;

/// Lets clients in.
pub(super) struct Listener {
    name: String,
    /// The end that the next client gets.
    waiting: NamedPipeServer,
}

/// Nothing to remove: a pipe goes with its last end.
#[derive(Debug)]
pub(super) struct Mark;

/// Where it is, for the user.
pub(super) fn shown(folder: &Path) -> String {
    let path: String = folder.to_string_lossy().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    // The end of a path tells more than its beginning.
    let end = path.char_indices().rev().nth(NAME_MAX).map_or(0, |(at, _)| at);
    format!(r"\\.\pipe\pilotlight-{}", &path[end..])
}

/// Makes the pipe.
pub(super) fn bind(folder: &Path) -> io::Result<(Listener, Mark)> {
    let name = shown(folder);
    let waiting = ServerOptions::new()
        .first_pipe_instance(true)
        .reject_remote_clients(true)
        .create(&name)
        .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    Ok((Listener { name, waiting }, Mark))
}

impl Listener {
    /// The next client, and its process, where the system tells.
    pub(super) async fn accept(&mut self) -> io::Result<Option<(ServerStream, Option<u32>)>> {
        self.waiting.connect().await?;
        let next = match ServerOptions::new().reject_remote_clients(true).create(&self.name) {
            Ok(next) => next,
            Err(error) => {
                // The end that waits must be free again for the next client.
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
    // SAFETY: the pipe is open, and the number is ours to write to.
    let told = unsafe { GetNamedPipeClientProcessId(pipe.as_raw_handle(), &raw mut pid) };
    (told != 0 && pid != 0).then_some(pid)
}

/// Whether a tray serves the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// There is no pipe.
    Nobody,
    /// Never told here: a pipe goes with its last end.
    LeftBehind,
    /// One serves it, or hangs.
    Served,
}

/// Looks whether a tray serves the pipe, by its note: to open the pipe would take an end from a command.
///
/// # Errors
/// Where the folder cannot be looked at.
pub(crate) fn probe(folder: &Path) -> io::Result<Probe> {
    let noted = Runtime::open(folder)?.is_some_and(|runtime| !runtime.note().is_empty());
    Ok(if noted { Probe::Served } else { Probe::Nobody })
}

/// There is no limit of handles that could be reached.
pub(super) fn is_scarce(_stream: &ServerStream) -> bool {
    false
}

/// The process that serves this connection, where the system tells.
pub(super) fn server_of(pipe: &ClientStream) -> Option<u32> {
    let mut pid = 0;
    // SAFETY: the pipe is open, and the number is ours to write to.
    let told = unsafe { GetNamedPipeServerProcessId(pipe.as_raw_handle(), &raw mut pid) };
    (told != 0 && pid != 0).then_some(pid)
}

/// A connection to the tray; `None` where none serves.
pub(super) async fn connect(folder: &Path) -> io::Result<Option<ClientStream>> {
    let name = shown(folder);
    loop {
        match ClientOptions::new().open(&name) {
            Ok(pipe) => return Ok(Some(pipe)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error().map(i32::unsigned_abs) == Some(ERROR_PIPE_BUSY) => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}
