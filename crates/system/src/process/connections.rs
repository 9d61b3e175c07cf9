//! The connections that a process has opened, with what the kernel counted on each.
//!
//! Copilot keeps the connection to its model in the process that owns the session, and writes an answer to the log only
//! when it is whole. Meanwhile only the kernel knows, for any other process, whether the answer arrives.

use pilotlight_core::stream_probe::Sockets;
use std::io;

/// What a process has open right now. Half a millisecond on Linux with 1,000 sockets on the machine.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] if the process is in another network namespace, or if the system counts no bytes
/// (macOS and Windows: `proc_pidfdinfo` and `GetExtendedTcpTable` have no totals); `PermissionDenied` if the process is
/// another user's; `NotFound` if it has ended; otherwise the kernel's reason.
#[cfg(target_os = "linux")]
pub fn connections(pid: u32) -> io::Result<Sockets> {
    use super::diag::{CONNECTED, LISTENING, Socket, State, sockets};
    use super::files::socket_inodes;
    use pilotlight_core::stream_probe::{Connection, ConnectionState};
    use std::collections::HashSet;

    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net"));
    if namespace(&pid.to_string())? != namespace("self")? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let own = socket_inodes(pid)?;
    if own.is_empty() {
        return Ok(Sockets::default());
    }
    let held = sockets(CONNECTED | LISTENING, |socket| own.contains(&socket.inode))?;
    let (listening, connected): (Vec<_>, Vec<_>) = held.iter().partition(|socket| socket.state == State::Listens);
    let ports: HashSet<u16> = listening.iter().map(|socket| socket.local.port()).collect();
    let (accepted, opened): (Vec<_>, Vec<_>) =
        connected.into_iter().partition(|socket| ports.contains(&socket.local.port()));
    let connection = |socket: &&Socket| {
        let info = socket.info?;
        Some(Connection {
            id: socket.inode,
            state: match socket.state {
                State::Connecting => ConnectionState::Connecting,
                State::Established => ConnectionState::Open,
                State::Listens | State::Other => ConnectionState::Closing,
            },
            is_resent: info.unanswered,
            keeps_alive: socket.keeps_alive,
            last_sent: info.last_sent,
            last_received: info.last_received,
            last_acknowledged: info.last_acknowledged,
            sent: info.sent,
            received: info.received,
            segments: info.segments,
            unread: u64::from(socket.unread),
        })
    };
    Ok(Sockets { opened: opened.iter().filter_map(connection).collect(), serves: !accepted.is_empty() })
}

/// Nothing can be seen here: see above.
#[cfg(not(target_os = "linux"))]
pub fn connections(_: u32) -> io::Result<Sockets> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use pilotlight_core::stream_probe::ConnectionState;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// Our own process is at both ends here.
    #[test]
    fn the_bytes_of_an_opened_connection_are_counted() {
        crate::process::testing::alone!();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut ours = TcpStream::connect(address).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        ours.write_all(&[0; 10_000]).unwrap();
        accepted.read_exact(&mut [0; 10_000]).unwrap();
        for _ in 0..3 {
            accepted.write_all(&[1; 300]).unwrap();
            ours.read_exact(&mut [0; 300]).unwrap();
        }
        accepted.write_all(&[2; 50]).unwrap();
        // Other tests of this process have connections of their own. An acknowledgement takes a moment, and the kernel
        // counts the one that opens a connection as a byte.
        let counted =
            |sockets: &Sockets| sockets.opened.iter().find(|one| one.sent >= 10_000 && one.received == 950).copied();
        let seen = std::iter::repeat_with(|| connections(std::process::id()).unwrap());
        let (sockets, seen) = seen.take(10_000).find_map(|one| counted(&one).map(|seen| (one, seen))).unwrap();
        assert!(sockets.serves, "the accepted end is not an opened connection");
        assert_eq!((seen.state, seen.unread, seen.segments), (ConnectionState::Open, 50, 4));
        assert!(!seen.is_resent && seen.last_received.0 < 20_000 && seen.last_sent >= seen.last_received);
    }

    #[test]
    fn an_ended_process_has_no_connections() {
        assert_eq!(connections(u32::MAX / 2).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
