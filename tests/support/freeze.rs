//! Stopping processes with SIGSTOP.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a process may take to stop on a busy machine.
const WITHIN: Duration = Duration::from_secs(30);

/// Stops a process with SIGSTOP, and waits until all its threads are stopped. They keep running for a while after the
/// signal was sent: on a busy machine for a tenth of a second, which is long enough to answer. Does nothing if the
/// process is gone.
pub(crate) fn freeze(pid: u32) {
    // Zero and negative numbers would name groups of processes.
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid is a positive number");
    if kill_process(raw, Signal::STOP).is_err() {
        return;
    }
    let start = Instant::now();
    while !is_stopped(pid) {
        assert!(start.elapsed() < WITHIN, "process {pid} does not stop");
        #[expect(clippy::disallowed_methods, reason = "between two polls")]
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether all threads of the process are stopped or have exited.
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.filter_map(Result::ok).all(|thread| matches!(state(&thread.path()), None | Some('T' | 't' | 'Z' | 'X')))
}

/// The state of a process or thread from its folder in `/proc`, or `None` if it is gone.
pub(crate) fn state(folder: &Path) -> Option<char> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}
