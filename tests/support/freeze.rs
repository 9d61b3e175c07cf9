//! Processes that stand still.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a process may take to stop that the machine has no time for.
const WITHIN: Duration = Duration::from_secs(30);

/// Stops a process with SIGSTOP, and waits until each of its threads stands still: they go on for a while after the signal was
/// sent, and for a tenth of a second on a busy machine, which is enough to answer. That it is gone already is no error.
pub(crate) fn freeze(pid: u32) {
    // Zero and negative numbers would name groups of processes.
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid is a positive number");
    if kill_process(raw, Signal::STOP).is_err() {
        return;
    }
    let begun = Instant::now();
    while !stands_still(pid) {
        assert!(begun.elapsed() < WITHIN, "process {pid} goes on");
        #[expect(clippy::disallowed_methods, reason = "between two looks at a condition")]
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether all its threads are stopped, or over.
fn stands_still(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.filter_map(Result::ok).all(|thread| matches!(state(&thread.path()), None | Some('T' | 't' | 'Z' | 'X')))
}

/// The state of a process or of a thread, by its folder in `/proc`; `None` where it is gone.
pub(crate) fn state(folder: &Path) -> Option<char> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}
