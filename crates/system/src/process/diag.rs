//! The TCP sockets of this network namespace, from the kernel's socket monitor, over netlink; sock_diag(7). Any user may
//! ask for everybody's.
//!
//! Requests and responses are C structs, read and written here by offset. All numbers are in native byte order except
//! addresses and ports, which are in network byte order.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::netlink::{HEADER, attribute, message, take};
use pilotlight_core::time::Span;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

/// Type of the request and of each response: `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// Types of an error and of the end of the responses.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST`: the socket with an address; with `NLM_F_DUMP`: every matching socket.
const ONE: u16 = 0x1;
const ALL: u16 = ONE | 0x300;
const TCP: u8 = 6;
/// The attribute of a response that has a `struct tcp_info` (`INET_DIAG_INFO`), and the bit that requests it.
const INFO: u16 = 2;
const WITH_INFO: u8 = 1 << (INFO - 1);
/// Length of `struct inet_diag_req_v2`: family, protocol, attributes, one byte, states, and an address, which is all zero
/// in a request for all sockets.
const REQUEST: usize = 8 + ADDRESS;
/// Length of `struct inet_diag_sockid`: the ports and addresses of both ends, the interface, and a cookie.
const ADDRESS: usize = 48;
/// Length of `struct inet_diag_msg`, which attributes follow.
const RESPONSE: usize = 72;
/// The most bytes that the kernel sends at once.
const CHUNK: usize = 32 * 1024;
/// The most chunks that are received: room for some 40,000 connections, or 100,000 listening sockets.
const CHUNKS_MAX: usize = 512;

/// The state of a socket, by the numbers of the kernel's `tcp_states.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Established = 1,
    Connecting = 2,
    Listens = 10,
    /// Any other: it is being closed, or was only half opened.
    Other = 0,
}

/// The states of a listening socket, and of a connection, as bits. `TIME_WAIT` (6) is left out: such a socket belongs to
/// no process any more.
pub(super) const LISTENING: u32 = 1 << State::Listens as u32;
pub(super) const CONNECTED: u32 = 0xfff & !(1 << 6) & !LISTENING & !1;

/// A TCP socket.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Socket {
    pub(super) local: SocketAddr,
    pub(super) inode: u64,
    pub(super) state: State,
    /// It has an unanswered keepalive probe, or waits to send one.
    pub(super) keeps_alive: bool,
    /// How many bytes have arrived that its process has not read.
    pub(super) unread: u32,
    /// What the kernel counted, for a connection of interest.
    pub(super) info: Option<Info>,
    /// Names it to the kernel.
    address: (u8, [u8; ADDRESS]),
}

/// What the kernel counted on a connection: fields of `struct tcp_info` in `linux/tcp.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    /// Something that was sent, data or a keepalive probe, is unanswered and was sent again.
    pub(super) unanswered: bool,
    pub(super) last_sent: Span,
    pub(super) last_received: Span,
    pub(super) last_acknowledged: Span,
    /// Bytes sent that the peer has acknowledged, and bytes received.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Segments received that had data.
    pub(super) segments: u64,
}

/// The sockets of this network namespace in one of these states that `is_wanted`, with what the kernel counted on them.
/// That takes the kernel half a microsecond a socket, so it is asked about these only.
pub(super) fn sockets(states: u32, is_wanted: impl Fn(&Socket) -> bool) -> io::Result<Vec<Socket>> {
    let monitor = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    let mut buffer = vec![0; CHUNK];
    let mut found = Vec::new();
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        let all = (family.as_raw() as u8, [0; ADDRESS]);
        send(&monitor, &request(ALL, &all, states), SendFlags::empty())?;
        let mut chunks = 0..CHUNKS_MAX;
        loop {
            // The kernel responds before `send` and `recv` return, so this never waits.
            let (length, _) = recv(&monitor, &mut buffer[..], RecvFlags::DONTWAIT)?;
            if read(&buffer[..length.min(CHUNK)], &mut found)? == Left::None {
                break;
            }
            chunks.next().ok_or(io::ErrorKind::FileTooLarge)?;
        }
    }
    found.retain(is_wanted);
    for socket in found.iter_mut().filter(|socket| socket.state != State::Listens) {
        send(&monitor, &request(ONE, &socket.address, states), SendFlags::empty())?;
        let (length, _) = recv(&monitor, &mut buffer[..], RecvFlags::DONTWAIT)?;
        let mut answer = Vec::new();
        // A socket that was closed in the meantime is not found.
        let _ = read(&buffer[..length.min(CHUNK)], &mut answer);
        socket.info = answer.first().and_then(|answer: &Socket| answer.info);
    }
    Ok(found)
}

fn request(flags: u16, (family, address): &(u8, [u8; ADDRESS]), states: u32) -> Vec<u8> {
    let attributes = if flags == ONE { WITH_INFO } else { 0 };
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([*family, TCP, attributes, 0]);
    bytes.extend(states.to_ne_bytes());
    bytes.extend(address);
    bytes
}

/// Whether more responses follow.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    Some,
    None,
}

/// Reads the messages of a chunk.
fn read(mut bytes: &[u8], found: &mut Vec<Socket>) -> io::Result<Left> {
    while !bytes.is_empty() {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let (kind, body, rest) = message(bytes).ok_or_else(broken)?;
        match kind {
            // The end may report an error too.
            ERROR | DONE => match take::<4>(body, 0).map(i32::from_ne_bytes) {
                Some(error @ ..0) => return Err(Errno::from_raw_os_error(error.saturating_neg()).into()),
                _ if kind == DONE => return Ok(Left::None),
                _ => return Err(broken()),
            },
            BY_FAMILY => found.extend(response(body)),
            _ => {}
        }
        bytes = rest;
    }
    Ok(Left::Some)
}

/// `struct inet_diag_msg`: family at 0, state at 1, timer at 2, port at 4, address at 8 (16 bytes, of which IPv4 uses 4),
/// unread bytes at 56, inode at 68; then attributes.
fn response(body: &[u8]) -> Option<Socket> {
    /// The timer of keepalive probes.
    const KEEPALIVE: u8 = 2;
    let port = u16::from_be_bytes(take(body, 4)?);
    let ip = match AddressFamily::from_raw(u16::from(*body.first()?)) {
        AddressFamily::INET => IpAddr::from(take::<4>(body, 8)?),
        AddressFamily::INET6 => IpAddr::from(take::<16>(body, 8)?),
        _ => return None,
    };
    Some(Socket {
        local: SocketAddr::new(ip, port),
        inode: u64::from(u32::from_ne_bytes(take(body, 68)?)),
        state: match *body.get(1)? {
            1 => State::Established,
            2 => State::Connecting,
            10 => State::Listens,
            _ => State::Other,
        },
        keeps_alive: *body.get(2)? == KEEPALIVE,
        unread: u32::from_ne_bytes(take(body, 56)?),
        info: attribute(body.get(RESPONSE..)?, INFO).and_then(info),
        address: (*body.first()?, take(body, 4)?),
    })
}

/// `struct tcp_info`, of which older kernels send less: retransmits at 2, probes at 3, times in ms from 44, bytes
/// acknowledged at 120, bytes received at 128, segments with data at 152.
fn info(bytes: &[u8]) -> Option<Info> {
    let span = |at| Some(Span(i64::from(u32::from_ne_bytes(take(bytes, at)?))));
    let total = |at| Some(u64::from_ne_bytes(take(bytes, at)?));
    Some(Info {
        unanswered: *bytes.get(2)? > 0 || *bytes.get(3)? > 0,
        last_sent: span(44)?,
        last_received: span(52)?,
        last_acknowledged: span(56)?,
        sent: total(120)?,
        received: total(128)?,
        segments: u64::from(u32::from_ne_bytes(take(bytes, 152)?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    fn body(family: u8, port: u16, ip: &[u8], inode: u32) -> Vec<u8> {
        let mut bytes = vec![0; 72];
        bytes[0] = family;
        bytes[4..6].copy_from_slice(&port.to_be_bytes());
        bytes[8..8 + ip.len()].copy_from_slice(ip);
        bytes[68..].copy_from_slice(&inode.to_ne_bytes());
        bytes
    }

    #[test]
    fn responses_are_read_up_to_the_end() {
        let six = std::net::Ipv6Addr::LOCALHOST.octets();
        let mut bytes = message(BY_FAMILY, &body(2, 8080, &[127, 0, 0, 1], 77));
        bytes.extend(message(BY_FAMILY, &body(10, 22, &six, 78)));
        bytes.extend(message(BY_FAMILY, &body(1, 22, &six, 79)));
        let mut found = Vec::new();
        assert_eq!(read(&bytes, &mut found).unwrap(), Left::Some);
        bytes = message(DONE, &0i32.to_ne_bytes());
        assert_eq!(read(&bytes, &mut found).unwrap(), Left::None);
        let expected = [("127.0.0.1:8080", 77), ("[::1]:22", 78)].map(|(ip, inode)| (ip.parse().unwrap(), inode));
        assert_eq!(found.iter().map(|socket| (socket.local, socket.inode)).collect::<Vec<_>>(), expected);
    }

    /// `struct tcp_info` of a connection that received 950 bytes in 4 segments.
    fn tcp_info() -> Vec<u8> {
        let mut info = vec![0; 160];
        let mut put = |at: usize, bytes: &[u8]| info[at..at + bytes.len()].copy_from_slice(bytes);
        put(44, &9_000u32.to_ne_bytes());
        put(52, &4_000u32.to_ne_bytes());
        put(56, &3_000u32.to_ne_bytes());
        put(120, &40_000u64.to_ne_bytes());
        put(128, &950u64.to_ne_bytes());
        put(152, &4u32.to_ne_bytes());
        info
    }

    fn attribute_bytes(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn what_the_kernel_counted_is_read_from_its_attribute() {
        let mut connection = body(2, 40_000, &[127, 0, 0, 1], 77);
        (connection[1], connection[2]) = (1, 2);
        connection[56..60].copy_from_slice(&50u32.to_ne_bytes());
        connection.extend(attribute_bytes(8, &[1, 2, 3]));
        connection.extend(attribute_bytes(INFO, &tcp_info()));
        let socket = response(&connection).unwrap();
        assert_eq!((socket.state, socket.keeps_alive, socket.unread), (State::Established, true, 50));
        let expected = Info {
            unanswered: false,
            last_sent: Span(9_000),
            last_received: Span(4_000),
            last_acknowledged: Span(3_000),
            sent: 40_000,
            received: 950,
            segments: 4,
        };
        assert_eq!(socket.info, Some(expected));
        for at in [2, 3] {
            let mut resent = tcp_info();
            resent[at] = 1;
            assert!(info(&resent).unwrap().unanswered, "retransmissions, probes");
        }
        // An older kernel counts less, and an attribute may be cut off.
        assert_eq!(info(&tcp_info()[..140]), None);
        assert_eq!(response(&connection[..connection.len() - 8]).unwrap().info, None);
        assert_eq!(response(&body(2, 1, &[127, 0, 0, 1], 1)).unwrap().info, None);
    }

    #[test]
    fn errors_and_broken_messages_are_reported() {
        let error = |bytes: &[u8]| read(bytes, &mut Vec::new()).unwrap_err();
        let code = Errno::NOENT.raw_os_error();
        for kind in [ERROR, DONE] {
            assert_eq!(error(&message(kind, &(-code).to_ne_bytes())).raw_os_error(), Some(code));
        }
        let whole = message(BY_FAMILY, &body(2, 1, &[127, 0, 0, 1], 1));
        for broken in [&whole[..3], &whole[..HEADER], &whole[..40], &[0; 40]] {
            assert_eq!(error(broken).kind(), io::ErrorKind::InvalidData);
        }
    }
}
