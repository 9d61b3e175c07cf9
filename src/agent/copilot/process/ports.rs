//! Where a process can be reached over loopback.
//!
//! A Copilot server says its port to whoever started it and writes it down only sometimes; but the system knows it. What
//! counts is not that something listens on a port, but that *this* process does: a token is sent to it. So the sockets of
//! the process are matched with the system's table of listening ones, and of an address that several sockets could take
//! a connection to, only the one counts that does: the one bound most closely.
//!
//! `platform::sockets` reads, `reachable` is pure and holds the rules.

#[cfg(target_os = "linux")]
#[path = "ports/diag.rs"]
mod diag;
#[cfg(target_os = "linux")]
#[path = "ports/linux.rs"]
mod platform;
#[cfg(not(target_os = "linux"))]
#[path = "ports/elsewhere.rs"]
mod platform;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The TCP addresses on which exactly this process listens and that can be reached over loopback from here, in order:
/// those in 127.0.0.0/8, and ::1. A socket bound to no address (0.0.0.0, ::) counts as 127.0.0.1 and ::1, whichever it
/// takes. Not those where another process's socket takes the connections, and on Linux not those of another network
/// namespace, as a container has.
///
/// About 0.3 ms on Linux for a process with 60 open files, whatever other processes do; some milliseconds elsewhere, where
/// everything that listens is listed.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where there is no such process; `PermissionDenied` on Linux for another user's, or one that
/// does not let itself be looked into; else where the system does not tell what listens.
pub fn listening(pid: u32) -> io::Result<Vec<SocketAddr>> {
    Ok(reachable(&platform::sockets(pid)?))
}

/// A TCP socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    address: SocketAddr,
    /// Whether it is the process's that was asked for.
    ours: bool,
}

/// The addresses on loopback where a connection goes to a socket of ours.
fn reachable(sockets: &[Socket]) -> Vec<SocketAddr> {
    let ours = sockets.iter().filter(|socket| socket.ours).map(|socket| socket.address);
    let candidates: BTreeSet<SocketAddr> = ours.flat_map(on_loopback).collect();
    let taken_by = |candidate: SocketAddr, ours: bool| {
        let those = sockets.iter().filter(|socket| socket.ours == ours && socket.address.port() == candidate.port());
        those.map(|socket| closeness(socket.address.ip(), candidate.ip())).max().unwrap_or(0)
    };
    candidates.into_iter().filter(|address| taken_by(*address, true) > taken_by(*address, false)).collect()
}

/// Under which addresses on loopback a socket bound to this one may be reached.
fn on_loopback(bound: SocketAddr) -> impl Iterator<Item = SocketAddr> {
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    let ips = match bound.ip().to_canonical() {
        ip if ip.is_loopback() => [Some(ip), None],
        IpAddr::V4(ip) if ip.is_unspecified() => [Some(v4), None],
        // Where such a socket is for IPv6 alone and nobody else listens, 127.0.0.1 refuses connections: no harm.
        IpAddr::V6(ip) if ip.is_unspecified() => [Some(v4), Some(v6)],
        _ => [None, None],
    };
    ips.into_iter().flatten().map(move |ip| SocketAddr::new(ip, bound.port()))
}

/// How closely a socket bound to `bound` fits a connection to `asked`: the closest takes it. 0 where it does not.
fn closeness(bound: IpAddr, asked: IpAddr) -> u8 {
    match (bound.to_canonical(), asked) {
        (bound, asked) if bound == asked => 3,
        (IpAddr::V4(bound), IpAddr::V4(_)) if bound.is_unspecified() => 2,
        (IpAddr::V6(bound), IpAddr::V6(_)) if bound.is_unspecified() => 2,
        (IpAddr::V6(bound), IpAddr::V4(_)) if bound.is_unspecified() => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ours: &[&str], others: &[&str]) -> Vec<String> {
        let socket = |ours| move |address: &&str| Socket { address: address.parse().unwrap(), ours };
        let sockets: Vec<_> = ours.iter().map(socket(true)).chain(others.iter().map(socket(false))).collect();
        reachable(&sockets).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn loopback_is_reachable_and_nothing_else() {
        let bound = ["[::1]:7", "127.0.0.1:9", "127.8.0.1:9", "192.168.1.2:9", "[fe80::1]:9", "[2001:db8::1]:9"];
        assert_eq!(found(&bound, &[]), ["127.0.0.1:9", "127.8.0.1:9", "[::1]:7"]);
    }

    #[test]
    fn a_socket_bound_to_no_address_counts_as_loopback() {
        assert_eq!(found(&["0.0.0.0:9"], &[]), ["127.0.0.1:9"]);
        assert_eq!(found(&["[::]:9"], &[]), ["127.0.0.1:9", "[::1]:9"]);
        assert_eq!(found(&["0.0.0.0:9", "[::]:9", "127.0.0.1:9"], &[]), ["127.0.0.1:9", "[::1]:9"]);
        assert_eq!(found(&["[::ffff:127.0.0.1]:9", "[::ffff:0.0.0.0]:8"], &[]), ["127.0.0.1:8", "127.0.0.1:9"]);
    }

    #[test]
    fn what_others_listen_on_is_not_ours() {
        assert_eq!(found(&[], &["127.0.0.1:9"]), [""; 0]);
        assert_eq!(found(&["127.0.0.1:9"], &["127.0.0.1:8", "[::1]:9", "127.0.0.2:9"]), ["127.0.0.1:9"]);
    }

    /// Some systems let two processes listen on one port, one on all addresses and one on a single one.
    #[test]
    fn case_107f_the_closest_socket_takes_the_connection() {
        assert_eq!(found(&["0.0.0.0:9"], &["127.0.0.1:9"]), [""; 0]);
        assert_eq!(found(&["[::]:9"], &["0.0.0.0:9"]), ["[::1]:9"]);
        assert_eq!(found(&["[::]:9"], &["[::1]:9"]), ["127.0.0.1:9"]);
        assert_eq!(found(&["0.0.0.0:9"], &["[::]:9"]), ["127.0.0.1:9"]);
        assert_eq!(found(&["127.0.0.1:9"], &["0.0.0.0:9", "[::]:9"]), ["127.0.0.1:9"]);
        assert_eq!(found(&["127.0.0.1:9"], &["127.0.0.1:9"]), [""; 0], "either may get it");
        assert_eq!(found(&["127.0.0.1:9"], &["[::ffff:127.0.0.1]:9"]), [""; 0]);
    }
}
