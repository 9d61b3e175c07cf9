//! Whether this machine has an ssh connection to itself.
//!
//! What comes in over ssh is a user's who logs in from elsewhere, unless a program here connects to this very machine, or
//! has an open connection run one more command (`ControlMaster`). The system does not show which process of `sshd` serves
//! which connection, but it lists both ends of each connection within this machine.

#![allow(clippy::disallowed_methods, reason = "`/proc` holds no pipes")]

use crate::state_file;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The port of ssh, which `sshd` listens on unless its settings say otherwise.
const SSH: u16 = 22;
/// The settings of `sshd`, and the folder that they usually include.
const SETTINGS: [&str; 2] = ["/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d"];
/// The states in the kernel's tables in which nothing can be done over a connection any more, or not yet: `TIME_WAIT`, `CLOSE`
/// and `LISTEN`. One whose other end is gone may still have been told what to run.
const OVER: [&str; 3] = ["06", "07", "0A"];
/// The socket at which the system's `sshd` takes connections from this machine (systemd 256 and later), and the state of a
/// connection to it.
const UNIX_SOCKET: &str = "/ssh-unix-local/socket";
const CONNECTED: &str = "03";

/// One end of a connection: address and port, as the kernel writes them.
type End = (String, u16);

/// Whether an ssh connection is open of which both ends are in this machine, or more precisely in our network namespace.
/// `true` if that cannot be read.
pub fn has_ssh_to_itself() -> bool {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    if tables.iter().all(Result::is_err) {
        return true;
    }
    let tables: String = tables.into_iter().flatten().collect();
    has_both_ends(&tables, &ports()) || fs::read_to_string("/proc/net/unix").is_ok_and(|table| has_unix(&table))
}

/// Whether the kernel's table of Unix sockets lists a connection to `sshd`.
fn has_unix(table: &str) -> bool {
    let is_connected = |line: &str| line.split_ascii_whitespace().nth(5) == Some(CONNECTED);
    table.lines().any(|line| line.ends_with(UNIX_SOCKET) && is_connected(line))
}

/// Whether the kernel's tables list both ends of a connection to one of these ports.
fn has_both_ends(tables: &str, ports: &HashSet<u16>) -> bool {
    let connections: HashSet<(End, End)> = tables.lines().filter_map(connection).collect();
    let is_within =
        |(near, remote): &(End, End)| near.0 == remote.0 || connections.contains(&(remote.clone(), near.clone()));
    connections.iter().any(|ends| ports.contains(&ends.0.1) && is_within(ends))
}

/// The ends of the connection in a line of the kernel's table: ours, and the other.
fn connection(line: &str) -> Option<(End, End)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let ends = (end(fields.next()?)?, end(fields.next()?)?);
    (!OVER.contains(&fields.next()?)).then_some(ends)
}

fn end(text: &str) -> Option<End> {
    /// How an address of IPv4 begins where it is written as one of IPv6, in either byte order.
    const MAPPED: [&str; 2] = ["0000000000000000FFFF0000", "00000000000000000000FFFF"];
    let (address, port) = text.split_once(':')?;
    let address = MAPPED.iter().find_map(|mapped| address.strip_prefix(mapped)).unwrap_or(address);
    Some((address.to_owned(), u16::from_str_radix(port, 16).ok()?))
}

/// The ports that `sshd` may listen on.
fn ports() -> HashSet<u16> {
    let [file, folder] = SETTINGS.map(Path::new);
    let more = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = std::iter::once(file.to_owned()).chain(more).map(|path| state_file::read(&path));
    let mut ports = HashSet::from([SSH]);
    for text in texts {
        ports.extend(text.lines().filter_map(port_of));
    }
    ports
}

/// The port that a line of the settings names.
fn port_of(line: &str) -> Option<u16> {
    let mut words = line.split(|char: char| char.is_ascii_whitespace() || char == '=').filter(|word| !word.is_empty());
    let (key, value) = (words.next()?, words.next()?);
    match &*key.to_ascii_lowercase() {
        "port" => value.parse().ok(),
        "listenaddress" => value.rsplit_once(':')?.1.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of the kernel's tables.
    const TABLES: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0500A8C0:0016 0900A8C0:D431 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
";

    #[test]
    fn case_571_an_ssh_connection_of_this_machine_to_itself_is_seen() {
        let ssh = HashSet::from([22]);
        assert!(!has_both_ends(TABLES, &ssh), "from another machine");
        let near = "   2: 0100007F:9C40 0100007F:0016 01 0 0 0 1000 0 3\n";
        let remote = "   3: 0100007F:0016 0100007F:9C40 01 0 0 0 0 0 4\n";
        let mapped =
            "   3: 0000000000000000FFFF00000100007F:0016 0000000000000000FFFF00000100007F:9C40 01 0 0 0 0 0 4\n";
        let closed = "   3: 0100007F:0016 0100007F:9C40 06 0 0 0 0 0 4\n";
        assert!(has_both_ends(&[TABLES, near, remote].concat(), &ssh));
        assert!(has_both_ends(&[TABLES, near, mapped].concat(), &ssh), "over a socket of IPv6");
        assert!(!has_both_ends(&[TABLES, near, closed].concat(), &ssh), "it is over");
        let left = "   3: 0100007F:0016 0100007F:9C40 08 0 0 0 0 0 4\n";
        assert!(has_both_ends(&[TABLES, left].concat(), &ssh), "its client is gone, and what it asked for may run");
        let unix = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000003 00000000 00000000 0001 ST 4711 /run/ssh-unix-local/socket\n";
        assert!(has_unix(&unix.replace("ST", "03")) && !has_unix(&unix.replace("ST", "01")), "connected, or listening");
        assert!(!has_both_ends(&[TABLES, near, remote].concat(), &HashSet::from([5432])), "it is no ssh");
        assert_eq!(
            ["Port 2222", "\tport=2022", "ListenAddress [::]:22022", "#Port 1", "PermitRootLogin no"].map(port_of),
            [Some(2222), Some(2022), Some(22022), None, None]
        );
    }
}
