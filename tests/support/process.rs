//! Processes that the tests started, each addressed by its pid alone.

use super::freeze::state;
use super::{SOON, block_on, wait_until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::time::Duration;

/// How long a process may take to exit after SIGTERM. Copilot takes half a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Signals exactly this process. Does nothing if it is gone.
pub(crate) fn signal(pid: u32, with: Signal) {
    let _ = kill_process(raw(pid), with);
}

/// Whether a process with this pid exists.
pub(crate) fn is_live(pid: u32) -> bool {
    test_kill_process(raw(pid)).is_ok()
}

/// Kills exactly this process, and waits until it no longer runs. It may remain a zombie.
pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
    let folder = format!("/proc/{pid}");
    let gone = || matches!(state(folder.as_ref()), None | Some('Z' | 'X')).then_some(());
    wait_until(SOON, "the killed process is gone", String::new, gone);
}

/// The pid of its parent process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

/// The loopback port that a process listens on.
pub(crate) fn port(pid: u32) -> u16 {
    let sockets = || -> Vec<String> {
        let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
        let links = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        links.filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect()
    };
    wait_until(SOON, "the process listens", String::new, || {
        let sockets = sockets();
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().find_map(|row| {
            let columns: Vec<&str> = row.split_ascii_whitespace().collect();
            // Columns: the local address, the state (0A: listening), the socket's inode.
            let port = columns.get(1)?.strip_prefix("0100007F:")?;
            let listens =
                columns.get(3) == Some(&"0A") && sockets.iter().any(|inode| columns.get(9) == Some(&&**inode));
            listens.then(|| u16::from_str_radix(port, 16).unwrap())
        })
    })
}

/// Terminates a child and waits for its exit. Kills it after [`PATIENCE`].
pub(crate) fn end(child: &mut tokio::process::Child) {
    let Some(pid) = child.id() else { return };
    signal(pid, Signal::TERM);
    block_on(async {
        if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
    });
}

fn raw(pid: u32) -> Pid {
    // Zero and negative numbers would name groups of processes.
    i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid is a positive number")
}
