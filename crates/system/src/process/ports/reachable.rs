//! Which of a process's sockets takes a connection over loopback.
//!
//! Of several listening sockets that fit an address, the one bound most specifically takes the connection.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A listening TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) address: SocketAddr,
    /// Whether it belongs to the process in question.
    pub(super) ours: bool,
}

/// The loopback addresses where a connection reaches one of our sockets, in order.
pub(super) fn addresses(sockets: &[Socket]) -> Vec<SocketAddr> {
    let ours = sockets.iter().filter(|socket| socket.ours).map(|socket| socket.address);
    let candidates: BTreeSet<SocketAddr> = ours.flat_map(on_loopback).collect();
    let taken_by = |candidate: SocketAddr, ours: bool| {
        let same = sockets.iter().filter(|socket| socket.ours == ours && socket.address.port() == candidate.port());
        same.map(|socket| specificity(socket.address.ip(), candidate.ip())).max().unwrap_or(0)
    };
    candidates.into_iter().filter(|address| taken_by(*address, true) > taken_by(*address, false)).collect()
}

/// The loopback addresses at which a socket bound to this address may be reached.
fn on_loopback(bound: SocketAddr) -> impl Iterator<Item = SocketAddr> {
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    let ips = match bound.ip().to_canonical() {
        ip if ip.is_loopback() => [Some(ip), None],
        IpAddr::V4(ip) if ip.is_unspecified() => [Some(v4), None],
        // If the socket accepts only IPv6 and no other one listens, 127.0.0.1 refuses connections, which is harmless.
        IpAddr::V6(ip) if ip.is_unspecified() => [Some(v4), Some(v6)],
        _ => [None, None],
    };
    ips.into_iter().flatten().map(move |ip| SocketAddr::new(ip, bound.port()))
}

/// How specifically a socket bound to `bound` matches a connection to `target`: the highest takes it. 0 for no match.
fn specificity(bound: IpAddr, target: IpAddr) -> u8 {
    match (bound.to_canonical(), target) {
        (bound, target) if bound == target => 3,
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
        addresses(&sockets).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_loopback_is_reachable() {
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
    fn sockets_of_other_processes_do_not_count() {
        assert_eq!(found(&[], &["127.0.0.1:9"]), [""; 0]);
        assert_eq!(found(&["127.0.0.1:9"], &["127.0.0.1:8", "[::1]:9", "127.0.0.2:9"]), ["127.0.0.1:9"]);
    }

    /// Some systems let two processes listen on one port, one on all addresses and one on a single address.
    #[test]
    fn case_107f_the_most_specific_socket_takes_the_connection() {
        assert_eq!(found(&["0.0.0.0:9"], &["127.0.0.1:9"]), [""; 0]);
        assert_eq!(found(&["[::]:9"], &["0.0.0.0:9"]), ["[::1]:9"]);
        assert_eq!(found(&["[::]:9"], &["[::1]:9"]), ["127.0.0.1:9"]);
        assert_eq!(found(&["0.0.0.0:9"], &["[::]:9"]), ["127.0.0.1:9"]);
        assert_eq!(found(&["127.0.0.1:9"], &["0.0.0.0:9", "[::]:9"]), ["127.0.0.1:9"]);
        assert_eq!(found(&["127.0.0.1:9"], &["127.0.0.1:9"]), [""; 0], "either may get it");
        assert_eq!(found(&["127.0.0.1:9"], &["[::ffff:127.0.0.1]:9"]), [""; 0]);
    }
}
