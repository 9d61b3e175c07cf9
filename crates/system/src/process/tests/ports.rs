//! Listeners that really run, in this process and in children.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use crate::process::listening;
use crate::process::testing::{Running, alone, waiting};

fn listener(address: &str) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A process that has this socket open, and waits.
fn holding(socket: OwnedFd) -> Running {
    Running::start(Command::new("cat").stdin(Stdio::piped()).stdout(socket).stderr(Stdio::null()))
}

#[test]
fn a_listener_of_this_process_is_found_while_it_listens() {
    alone!();
    let ((one, address), (_all, everywhere)) = (listener("127.0.0.1:0"), listener("0.0.0.0:0"));
    let connection = TcpStream::connect(address).unwrap();
    let found = listening(std::process::id()).unwrap();
    assert!(found.contains(&address), "{found:?}");
    assert!(found.contains(&SocketAddr::from(([127, 0, 0, 1], everywhere.port()))), "{found:?}");
    assert!(!found.contains(&connection.local_addr().unwrap()), "a connection is no listener");
    drop(one);
    assert!(!listening(std::process::id()).unwrap().contains(&address));
}

#[test]
fn case_107f_exactly_the_process_that_listens_is_found() {
    alone!();
    let (ours, our_address) = listener("127.0.0.1:0");
    let (theirs, their_address) = listener("127.0.0.1:0");
    let child = holding(theirs.into());
    assert_eq!(listening(child.pid()).unwrap(), [their_address]);
    let found = listening(std::process::id()).unwrap();
    assert!(found.contains(&our_address) && !found.contains(&their_address), "{found:?}");
    drop(ours);
    assert_eq!(listening(child.pid()).unwrap(), [their_address]);
}

#[test]
fn other_sockets_are_no_listeners() {
    let (listener, address) = listener("127.0.0.1:0");
    let child = holding(TcpStream::connect(address).unwrap().into());
    assert_eq!(listening(child.pid()).unwrap(), []);
    drop(listener);
    assert_eq!(listening(waiting().pid()).unwrap(), [], "pipes");
}

#[test]
fn a_missing_process_is_an_error() {
    let mut child = waiting();
    child.end();
    for pid in [child.pid(), 0, i32::MAX as u32, u32::MAX] {
        assert_eq!(listening(pid).unwrap_err().kind(), io::ErrorKind::NotFound, "{pid}");
    }
}

/// A container's socket is not reachable from here, whatever its address.
#[cfg(target_os = "linux")]
#[test]
fn a_listener_of_another_network_is_not_found() {
    const LISTEN: &str =
        "import socket; s = socket.create_server(('0.0.0.0', 0)); print(s.getsockname()[1], flush=True); input()";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "python3", "-c", LISTEN]);
    let mut child = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut line = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(child.0.stdout.take().unwrap()), &mut line).unwrap();
    if line.is_empty() {
        return; // not every system has namespaces and python3
    }
    assert_eq!(listening(child.pid()).unwrap(), []);
}
