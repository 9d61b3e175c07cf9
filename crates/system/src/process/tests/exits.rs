//! Exits of real processes.

use std::collections::HashSet;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::process::Exits;
use crate::process::testing::{PATIENCE, Running, waiting};

/// Waits for processes to end, in a runtime of its own.
struct Waiter {
    runtime: Runtime,
    exits: Exits,
}

impl Waiter {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, exits: Exits::new().unwrap() }
    }

    fn watch(&mut self, pid: u32) -> bool {
        self.exits.watch(pid).unwrap()
    }

    /// The next process that ends.
    fn next(&mut self) -> u32 {
        let ended = async { timeout(PATIENCE, self.exits.ended()).await };
        self.runtime.block_on(ended).expect("no end is reported").unwrap()
    }
}

#[test]
fn a_killed_process_is_reported_at_once() {
    let mut waiter = Waiter::new();
    let mut process = waiting();
    assert!(waiter.watch(process.pid()));
    process.kill();
    assert_eq!(waiter.next(), process.pid());
}

#[test]
fn a_process_watched_twice_is_reported_once() {
    let mut waiter = Waiter::new();
    let [mut first, mut second] = [waiting(), waiting()];
    for process in [&first, &first, &second] {
        assert!(waiter.watch(process.pid()));
    }
    for process in [&mut first, &mut second] {
        process.kill();
        assert_eq!(waiter.next(), process.pid());
    }
}

#[test]
fn a_process_that_has_ended_is_not_watched() {
    let mut waiter = Waiter::new();
    let mut process = waiting();
    process.end();
    for pid in [process.pid(), 0, u32::MAX, i32::MAX as u32] {
        assert!(!waiter.watch(pid), "{pid}");
    }
}

#[test]
fn many_that_end_at_once_are_all_reported() {
    let mut waiter = Waiter::new();
    let mut processes: Vec<Running> = (0..80).map(|_| waiting()).collect();
    let pids: HashSet<u32> = processes.iter().map(Running::pid).collect();
    assert!(pids.iter().all(|pid| waiter.watch(*pid)));
    processes.iter_mut().for_each(Running::kill);
    let all: HashSet<u32> = pids.iter().map(|_| waiter.next()).collect();
    assert_eq!(all, pids);
}

#[test]
fn a_wait_that_is_dropped_loses_no_end() {
    let mut waiter = Waiter::new();
    let [mut first, mut second] = [waiting(), waiting()];
    assert!(waiter.watch(first.pid()));
    for _ in 0..100 {
        let Waiter { runtime, exits } = &mut waiter;
        let ended = runtime.block_on(async { timeout(Duration::ZERO, exits.ended()).await });
        assert!(ended.is_err(), "{ended:?}");
    }
    assert!(waiter.watch(second.pid()), "more may be watched between two waits");
    for process in [&mut second, &mut first] {
        process.kill();
        assert_eq!(waiter.next(), process.pid());
        assert!(!waiter.watch(process.pid()));
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::process::testing::{Thread, zombie};

    #[test]
    fn a_zombie_and_a_thread_are_not_watched() {
        let mut waiter = Waiter::new();
        let zombie = zombie();
        assert!(!waiter.watch(zombie.pid()));
        let thread = Thread::start();
        assert!(!waiter.watch(thread.id));
    }

    #[test]
    fn a_process_that_is_not_our_child_is_reported() {
        let mut waiter = Waiter::new();
        let script = "exec 3<&0; cat <&3 >/dev/null & echo $!; wait";
        let mut command = Command::new("sh");
        let mut parent = Running::start(command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(parent.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.trim().parse().unwrap();
        assert!(waiter.watch(pid));
        drop(parent.0.stdin.take()); // the end of its input
        assert_eq!(waiter.next(), pid);
    }
}
