//! Who else is connected to a server. Servers do not tell; the system's table of connections does, on Linux.

use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Whether the connection from `local` is the only one to `server`. `Some(true)` or not known.
pub(super) fn is_alone(server: SocketAddr, local: SocketAddr) -> Option<bool> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let table = if server.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let table = std::fs::read_to_string(table).ok()?;
    // Where even we are not found, the table is not of the network that the server is in.
    (peers(&table, server.port()) == [local.port()].into()).then_some(true)
}

/// The clients of a server but for the one at `local`, by their ports; `None` where that cannot be told.
pub(super) fn others(server: SocketAddr, local: SocketAddr) -> Option<BTreeSet<u16>> {
    let table = if server.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
    let table = std::fs::read_to_string(table).ok()?;
    let mut peers = peers(&table, server.port());
    peers.remove(&local.port()).then_some(peers)
}

/// The ports that are connected to this port of this machine. The table has a row for each end of a connection; where others come
/// and go while it is read, a row may stand in it twice, or not at all.
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
    fn the_only_connection_is_told_from_one_of_several() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = listener.local_addr().unwrap();
        let ours = TcpStream::connect(server).unwrap();
        let _accepted = listener.accept().unwrap();
        // Other tests connect while the table is read, which may cost it a row; and who has connected is there a moment later.
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
        eventually(&|| is_alone(server, ours.local_addr().unwrap()) == Some(true));
        let other = TcpStream::connect(server).unwrap();
        let port = other.local_addr().unwrap().port();
        eventually(&|| others(server, ours.local_addr().unwrap()) == Some([port].into()));
        eventually(&|| is_alone(server, ours.local_addr().unwrap()).is_none());
        assert_eq!(is_alone("127.0.0.1:1".parse().unwrap(), ours.local_addr().unwrap()), None);
    }
}
