//! Processes that the tests started: each is named by its pid, and ended by it.

use super::block_on;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::time::Duration;

/// How long a process may take to end when it is asked to. Copilot takes half a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Signals exactly this process. That it is gone already is no error.
pub(crate) fn signal(pid: u32, with: Signal) {
    let _ = kill_process(raw(pid), with);
}

/// Whether a process of this pid exists.
pub(crate) fn is_live(pid: u32) -> bool {
    test_kill_process(raw(pid)).is_ok()
}

/// Asks a child to end, and waits until it has; kills it when it does not.
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
