//! The control socket as the system provides it: a Unix socket, or a named pipe on Windows.

mod probe_result;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use probe_result::Probe;
pub use system::probe;
pub(super) use system::{
    ClientStream, Listener, ServerStream, SocketFile, bind, connect, display_path, is_scarce, server_of,
};
