//! A server's other clients. Servers do not report them; on Linux, the system's connection table does.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Whether the connection from `local` is the only one to `server`: `Some(true)`, or `None` if unknown.
pub(super) fn is_only_client(server: SocketAddr, local: SocketAddr) -> Option<bool> {
    other_clients(server, local)?.is_empty().then_some(true)
}

/// The ports of the server's clients other than `local`, `None` if unknown.
pub(super) fn other_clients(server: SocketAddr, local: SocketAddr) -> Option<BTreeSet<u16>> {
    let table = if server.is_ipv4() { "tcp" } else { "tcp6" };
    let table = std::fs::read_to_string(format!("/proc/net/{table}")).ok()?;
    let mut peers = peers(&table, server.port());
    // If we are missing as well, the table is of another network namespace than the server.
    peers.remove(&local.port()).then_some(peers)
}

/// The ports connected to this port of this machine. The table has a row for each end of a connection. If connections
/// come and go while it is read, a row may appear twice or not at all.
fn peers(table: &str, server: u16) -> BTreeSet<u16> {
    const ESTABLISHED: &str = "01";
    let port = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
    let peer = |row: &str| {
        let mut columns = row.split_ascii_whitespace().skip(1);
        let (local, remote, state) = (columns.next()?, columns.next()?, columns.next()?);
        (state == ESTABLISHED && port(local)? == server).then(|| port(remote))?
    };
    table.lines().skip(1).filter_map(peer).collect()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    #[test]
    fn the_only_client_is_recognised() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = listener.local_addr().unwrap();
        let ours = TcpStream::connect(server).unwrap();
        let _accepted = listener.accept().unwrap();
        // Other tests connect while the table is read, which may lose a row; and a new connection appears with a delay.
        let eventually = |holds: &dyn Fn() -> bool| {
            let begun = Instant::now();
            while !holds() {
                assert!(
                    begun.elapsed() < Duration::from_secs(30),
                    "{}",
                    std::fs::read_to_string("/proc/net/tcp").unwrap()
                );
                std::thread::yield_now();
            }
        };
        eventually(&|| is_only_client(server, ours.local_addr().unwrap()) == Some(true));
        let other = TcpStream::connect(server).unwrap();
        let port = other.local_addr().unwrap().port();
        eventually(&|| other_clients(server, ours.local_addr().unwrap()) == Some([port].into()));
        eventually(&|| is_only_client(server, ours.local_addr().unwrap()).is_none());
        assert_eq!(is_only_client("127.0.0.1:1".parse().unwrap(), ours.local_addr().unwrap()), None);
    }
}
