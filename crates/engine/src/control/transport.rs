//! The control socket as the system provides it: a Unix socket, or a named pipe on Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use system::socket_state;
pub(super) use system::{
    ClientStream, Listener, ServerStream, SocketFile, bind, connect, display_path, is_scarce, server_of,
};

/// Whether a tray serves the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// There is no socket.
    Absent,
    /// A tray that was killed left its socket behind. Never on Windows: a pipe disappears with its last handle.
    Stale,
    /// A tray serves it, or hangs.
    Served,
}
