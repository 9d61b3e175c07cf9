//! The answer to whether a tray serves the control socket.

/// Whether a tray serves the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// There is no socket.
    Absent,
    /// A tray that was killed left its socket behind. Never on Windows: a pipe disappears with its last handle.
    Stale,
    /// A tray serves it, or hangs.
    Served,
}
