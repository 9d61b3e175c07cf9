//! A network for one test: two network namespaces with a router between them, which can lose every packet.
//!
//! Only root can make one. A namespace belongs to a thread and to what the thread starts and opens, so a test enters one
//! and everything that it starts is there.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The address of the far side.
const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 2);

/// The near side, a router and the far side. Removed when dropped.
pub(crate) struct Network {
    name: String,
}

impl Network {
    /// Makes the network, if this user may.
    pub(crate) fn new() -> Option<Self> {
        // Several tests of one process have a network each.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let network = Self { name: format!("pilotlight-{}-{number}", std::process::id()) };
        for side in ["near", "router", "remote"] {
            if !run(&format!("ip netns add {}", network.side(side))) {
                return None;
            }
            network.run_in(side, "ip link set lo up");
        }
        let (near, router, remote) = (network.side("near"), network.side("router"), network.side("remote"));
        for (name, side, subnet) in [("near", &near, 1), ("remote", &remote, 2)] {
            assert!(run(&format!("ip link add out netns {side} type veth peer name {name} netns {router}")));
            network.run_in(name, &format!("ip address add 10.77.{subnet}.2/24 dev out"));
            network.run_in("router", &format!("ip address add 10.77.{subnet}.1/24 dev {name}"));
            network.run_in("router", &format!("ip link set {name} up"));
        }
        network.forward(true);
        network.plug("near");
        network.plug("remote");
        Some(network)
    }

    /// Moves this thread, and what it starts from now on, to the near side.
    pub(crate) fn enter(&self) {
        self.enter_side("near");
    }

    /// Calls `f` on the far side, with its address there.
    pub(crate) fn remote<T: Send>(&self, f: impl FnOnce(IpAddr) -> T + Send) -> T {
        let there = || {
            self.enter_side("remote");
            f(FAR.into())
        };
        std::thread::scope(|threads| threads.spawn(there).join().unwrap())
    }

    /// Whether the router forwards packets, or loses them.
    pub(crate) fn forward(&self, forward: bool) {
        self.run_in("router", &format!("sysctl -q net.ipv4.ip_forward={}", u8::from(forward)));
    }

    /// Takes the near side's interface down.
    pub(crate) fn unplug(&self) {
        self.run_in("near", "ip link set out down");
    }

    /// Gives the near side an address in another network.
    pub(crate) fn join_another(&self) {
        self.run_in("near", "ip address add 10.78.1.2/24 dev out");
    }

    fn plug(&self, side: &str) {
        self.run_in(side, "ip link set out up");
        let subnet = if side == "near" { 1 } else { 2 };
        self.run_in(side, &format!("ip route add default via 10.77.{subnet}.1"));
    }

    fn side(&self, side: &str) -> String {
        format!("{}-{side}", self.name)
    }

    fn enter_side(&self, side: &str) {
        let namespace = File::open(format!("/run/netns/{}", self.side(side))).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }

    fn run_in(&self, side: &str, command: &str) {
        assert!(run(&format!("ip netns exec {} {command}", self.side(side))), "{command}");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for side in ["near", "router", "remote"] {
            run(&format!("ip netns delete {}", self.side(side)));
        }
    }
}

/// Runs a command of words without spaces, and returns whether it succeeded.
fn run(command: &str) -> bool {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status();
    status.is_ok_and(|status| status.success())
}
