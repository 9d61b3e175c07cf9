//! The control socket as the system provides it: a Unix socket, or a named pipe on Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub(super) use system::{
    ClientStream, Listener, ServerStream, SocketFile, bind, connect, display_path, is_scarce, server_of,
};
pub(crate) use system::{Probe, probe};
