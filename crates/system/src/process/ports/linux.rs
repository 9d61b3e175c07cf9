//! Listening sockets on Linux: the process's own from `/proc/<pid>/fd`, all listening ones from the kernel's socket
//! monitor.
//!
//! Both identify a socket by its inode. The table is that of our own network namespace, so a socket in another
//! namespace, which cannot be reached from here, is not found. `/proc/self/net/tcp` has the same table, but to write it
//! the kernel walks its whole hash table of connections: 3 ms on a machine with 24 GB, even if it is empty. It is read
//! only if the socket monitor is unavailable.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use crate::log::{self, cause};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::reachable::Socket;
use crate::process::diag::{LISTENING, sockets as all_sockets};
use crate::process::files::socket_inodes;

/// All listening sockets, and which of them belong to the process.
pub(super) fn sockets(pid: u32) -> io::Result<Vec<Socket>> {
    let own = socket_inodes(pid)?;
    if own.is_empty() {
        return Ok(Vec::new());
    }
    let table = listening().or_else(|error| {
        log::debug!("the kernel does not list its sockets; reading /proc/self/net instead: {}", cause(&error));
        from_proc()
    })?;
    Ok(table.into_iter().map(|(address, inode)| Socket { address, ours: own.contains(&inode) }).collect())
}

/// Every listening socket, with its inode.
fn listening() -> io::Result<Vec<(SocketAddr, u64)>> {
    Ok(all_sockets(LISTENING, |_| true)?.into_iter().map(|socket| (socket.local, socket.inode)).collect())
}

/// The table in `/proc/self/net`.
fn from_proc() -> io::Result<Vec<(SocketAddr, u64)>> {
    let mut table = parse(&fs::read_to_string("/proc/self/net/tcp")?);
    match fs::read_to_string("/proc/self/net/tcp6") {
        Ok(text) => table.extend(parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {} // a kernel without IPv6
        Err(error) => return Err(error),
    }
    Ok(table)
}

/// The rows of listening sockets. A row begins `0: 0100007F:1F90 00000000:0000 0A`: its number, local and remote
/// address and port, state; the inode is field 10.
fn parse(text: &str) -> Vec<(SocketAddr, u64)> {
    const LISTENS: &str = "0A";
    let row = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (address, state) = (fields.nth(1)?, fields.nth(1)?);
        let inode = fields.nth(5)?.parse().ok()?;
        if state == LISTENS { Some((address_of(address)?, inode)) } else { None }
    };
    text.lines().filter_map(row).collect()
}

/// Parses an address, written as 32-bit words in hexadecimal in native byte order, and a port.
fn address_of(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(words.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match words.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(at * 8)?);
            }
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[cfg(target_endian = "little")]
    #[test]
    fn listening_rows_are_read() {
        let text = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                              \n\
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1473412 1 0000000092dfd38e 100 0 0 10 0\n\
   1: 0100007F:1F90 0100007F:9C42 01 00000000:00000000 00:00000000 00000000  1000        0 1473499 1 0000000092dfd38e 20 4 30 10 -1\n\
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 551 1 0 100 0 0 10 0\n\
   0: 00000000000000000000000001000000:9095 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1 0 100 0 0 10 0\n";
        let read: Vec<_> = parse(text).iter().map(|(address, inode)| format!("{address} {inode}")).collect();
        assert_eq!(read, ["127.0.0.1:8080 1473412", "0.0.0.0:22 551", "[::1]:37013 77"]);
    }

    #[test]
    fn broken_rows_are_skipped() {
        for row in [
            "",
            "0: 0100007F:1F90 00000000:0000 0A",
            "0: 0100007F:1F90 00000000:0000 0A 0 0 0 0 0 x",
            "0: 0100007F 00000000:0000 0A 0 0 0 0 0 7",
            "0: 0100007F:1F900 00000000:0000 0A 0 0 0 0 0 7",
            "0: 010000\u{e9}F:1F90 00000000:0000 0A 0 0 0 0 0 7",
            "0: 01007F:1F90 00000000:0000 0A 0 0 0 0 0 7",
        ] {
            assert_eq!(parse(row), [], "{row}");
        }
    }

    #[test]
    fn the_monitor_and_the_file_list_the_same_sockets() {
        crate::process::testing::alone!();
        let bound: Vec<_> =
            ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"].iter().flat_map(TcpListener::bind).collect();
        let own = socket_inodes(std::process::id()).unwrap();
        // Not every kernel has the monitor.
        for table in std::iter::once(from_proc().unwrap()).chain(listening()) {
            for socket in &bound {
                let address = socket.local_addr().unwrap();
                assert!(table.iter().any(|(other, inode)| *other == address && own.contains(inode)), "{address}");
            }
        }
    }
}
