//! All listening TCP sockets from the kernel's socket monitor, over netlink, in 30 us; sock_diag(7).
//!
//! Requests and responses are C structs, read and written here by offset. All numbers are in native byte order except
//! addresses and ports, which are in network byte order.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

/// Length of a message's header: length, type, flags, sequence number, sender.
const HEADER: usize = 16;
/// Type of the request and of each response: `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// Types of an error and of the end of the responses.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST` and `NLM_F_DUMP`: every matching socket.
const ALL: u16 = 0x1 | 0x300;
const TCP: u8 = 6;
/// The state `TCP_LISTEN`, as a bit.
const LISTENS: u32 = 1 << 10;
/// Length of `struct inet_diag_req_v2`: family, protocol, two bytes, states, and an address that may be all zero.
const REQUEST: usize = 56;
/// The most bytes that the kernel sends at once.
const CHUNK: usize = 32 * 1024;
/// The most chunks that are received: room for some 100,000 sockets.
const CHUNKS_MAX: usize = 512;

/// Every listening socket of this network namespace, with its inode.
pub(super) fn listening() -> io::Result<Vec<(SocketAddr, u64)>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    let mut buffer = vec![0; CHUNK];
    let mut found = Vec::new();
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        send(&socket, &request(family), SendFlags::empty())?;
        let mut chunks = 0..CHUNKS_MAX;
        loop {
            // The kernel responds before `send` and `recv` return, so this never waits.
            let (length, _) = recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
            if read(&buffer[..length.min(CHUNK)], &mut found)? == Left::None {
                break;
            }
            chunks.next().ok_or(io::ErrorKind::FileTooLarge)?;
        }
    }
    Ok(found)
}

fn request(family: AddressFamily) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(ALL.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family.as_raw() as u8, TCP, 0, 0]);
    bytes.extend(LISTENS.to_ne_bytes());
    bytes.resize(HEADER + REQUEST, 0);
    bytes
}

/// Whether more responses follow.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    Some,
    None,
}

/// Reads the messages of a chunk, each of which begins at a multiple of four.
fn read(mut bytes: &[u8], found: &mut Vec<(SocketAddr, u64)>) -> io::Result<Left> {
    while !bytes.is_empty() {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let length = take::<4>(bytes, 0).map(u32::from_ne_bytes).ok_or_else(broken)? as usize;
        let kind = take::<2>(bytes, 4).map(u16::from_ne_bytes).ok_or_else(broken)?;
        let body = bytes.get(HEADER..length).ok_or_else(broken)?;
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
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Left::Some)
}

/// `struct inet_diag_msg`: family at 0, port at 4, address at 8 (16 bytes, of which IPv4 uses 4), inode at 68.
fn response(body: &[u8]) -> Option<(SocketAddr, u64)> {
    let port = u16::from_be_bytes(take(body, 4)?);
    let inode = u32::from_ne_bytes(take(body, 68)?);
    let ip = match AddressFamily::from_raw(u16::from(*body.first()?)) {
        AddressFamily::INET => IpAddr::from(take::<4>(body, 8)?),
        AddressFamily::INET6 => IpAddr::from(take::<16>(body, 8)?),
        _ => return None,
    };
    Some((SocketAddr::new(ip, port), u64::from(inode)))
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
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
        assert_eq!(found, expected);
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
