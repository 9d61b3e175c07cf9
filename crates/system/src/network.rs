//! Tells when this machine has a new address: it may be in another network, where more is reached.
//!
//! On Linux, the kernel tells it over a socket that exists only while somebody waits. Elsewhere nobody does: whoever waits
//! must look for himself now and then.

/// New addresses of this machine.
#[derive(Debug, Default)]
pub struct Network {
    #[cfg(target_os = "linux")]
    watch: linux::Watch,
}

impl Network {
    /// Waits until this machine has an address that it had not before, and a moment longer, so that it can be used.
    /// Cancel-safe.
    pub async fn changed(&mut self) {
        #[cfg(target_os = "linux")]
        if self.watch.changed().await.is_ok() {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Nobody waits any more.
    pub fn rest(&mut self) {
        #[cfg(target_os = "linux")]
        self.watch.rest();
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::netlink::{attribute, message};
    use crate::readiness::wait_for;
    use rustix::io::Errno;
    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
    use std::collections::HashSet;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::time::{Instant, sleep_until};

    /// The groups of messages about addresses: `RTMGRP_IPV4_IFADDR` and `RTMGRP_IPV6_IFADDR` (rtnetlink(7)).
    const GROUPS: u32 = 0x10 | 0x100;
    /// `RTM_NEWADDR` and `RTM_DELADDR`.
    const NEW: u16 = 20;
    const GONE: u16 = 21;
    /// `IFA_ADDRESS`.
    const ADDRESS: u16 = 1;
    /// `RT_SCOPE_LINK`: an address of this or a greater scope leads nowhere else.
    const SCOPE_LINK: u8 = 253;
    /// How long after a new address it can be used: until its routes are there, and nobody else has it.
    const SETTLES: Duration = Duration::from_secs(1);
    /// At most this often a change is told.
    const INTERVAL: Duration = Duration::from_secs(10);
    /// Maximum number of addresses that are remembered.
    const KNOWN_MAX: usize = 256;
    /// Maximum number of bytes that are read at a time.
    const BUFFER: usize = 16 << 10;

    #[derive(Debug, Default)]
    pub(super) struct Watch {
        socket: Option<AsyncFd<Arc<OwnedFd>>>,
        known: HashSet<Box<[u8]>>,
        /// When a change is told.
        due: Option<Instant>,
        told: Option<Instant>,
    }

    impl Watch {
        pub(super) async fn changed(&mut self) -> io::Result<()> {
            loop {
                let socket = match &mut self.socket {
                    Some(socket) => socket,
                    none => none.insert(wait_for(Arc::new(connect()?), Interest::READABLE)?),
                };
                tokio::select! {
                    () = sleep_until(self.due.unwrap_or_else(Instant::now)), if self.due.is_some() => {
                        (self.due, self.told) = (None, Some(Instant::now()));
                        return Ok(());
                    }
                    ready = socket.readable() => {
                        let mut ready = ready?;
                        let mut buffer = vec![0; BUFFER];
                        let read = recv(ready.get_inner(), &mut buffer, RecvFlags::DONTWAIT);
                        let is_new = match read {
                            Ok((read, _)) => take(&mut self.known, &buffer[..read]),
                            // More happened than it has room for.
                            Err(Errno::NOBUFS) => true,
                            Err(Errno::AGAIN) => {
                                ready.clear_ready();
                                false
                            }
                            Err(Errno::INTR) => false,
                            Err(error) => return Err(error.into()),
                        };
                        if is_new && self.due.is_none() {
                            let soon = Instant::now() + SETTLES;
                            self.due = Some(self.told.map_or(soon, |told| soon.max(told + INTERVAL)));
                        }
                    }
                }
            }
        }

        pub(super) fn rest(&mut self) {
            (self.socket, self.due) = (None, None);
            self.known.clear();
        }
    }

    fn connect() -> io::Result<OwnedFd> {
        // Its protocol 0 is about routes, addresses and interfaces.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(socket)
    }

    /// Takes up what the kernel says. Returns whether there is an address that is not known. Each is told again and again:
    /// whenever how long it is valid was prolonged.
    fn take(known: &mut HashSet<Box<[u8]>>, mut told: &[u8]) -> bool {
        let mut is_new = false;
        while let Some((kind, body, rest)) = message(told) {
            told = rest;
            let Some(address) = address(body) else { continue };
            if kind == GONE {
                known.remove(&*address);
            } else if kind == NEW && known.len() < KNOWN_MAX {
                is_new |= known.insert(address);
            }
        }
        is_new
    }

    /// The address that a message is about, with its interface. `None` if it leads nowhere else.
    fn address(body: &[u8]) -> Option<Box<[u8]>> {
        const HEADER: usize = 8;
        let header = body.get(..HEADER)?;
        let (scope, interface) = (header[3], &header[4..]);
        if scope >= SCOPE_LINK {
            return None;
        }
        let address = attribute(&body[HEADER..], ADDRESS)?;
        Some([interface, address].concat().into())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// A message about an address, as the kernel sends it.
        fn message_about(kind: u16, scope: u8, address: &[u8]) -> Vec<u8> {
            let mut attributes = Vec::new();
            for (kind, value) in [(6, &[0; 5][..]), (ADDRESS, address)] {
                attributes.extend(u16::try_from(4 + value.len()).unwrap().to_ne_bytes());
                attributes.extend(u16::to_ne_bytes(kind));
                attributes.extend(value);
                attributes.resize(attributes.len().next_multiple_of(4), 0);
            }
            let length = u32::try_from(24 + attributes.len()).unwrap();
            let mut message = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10]].concat();
            message.extend([2, 24, 0, scope, 1, 0, 0, 0]);
            message.extend(attributes);
            message
        }

        #[test]
        fn case_451_an_address_is_new_once_until_it_is_gone() {
            let mut known = HashSet::new();
            let at = [10, 0, 0, 1];
            let (new, again) = (message_about(NEW, 0, &at), message_about(NEW, 0, &at));
            assert!(take(&mut known, &[new, again].concat()));
            assert!(!take(&mut known, &message_about(NEW, 0, &at)), "it is only prolonged");
            assert!(take(&mut known, &message_about(NEW, 0, &[10, 0, 0, 2])));
            assert!(!take(&mut known, &message_about(GONE, 0, &at)));
            assert!(take(&mut known, &message_about(NEW, 0, &at)), "it is here again");
            assert!(!take(&mut known, &message_about(NEW, 254, &[127, 0, 0, 1])), "it leads nowhere");
        }

        #[test]
        fn case_451_what_is_no_message_is_nothing() {
            let whole = message_about(NEW, 0, &[10, 0, 0, 1]);
            for length in 0..whole.len() {
                assert!(!take(&mut HashSet::new(), &whole[..length]));
            }
            for at in 0..whole.len() {
                let mut broken = whole.clone();
                broken[at] = 0xff;
                take(&mut HashSet::new(), &broken);
                broken[at] = 0;
                take(&mut HashSet::new(), &broken);
            }
        }
    }
}
