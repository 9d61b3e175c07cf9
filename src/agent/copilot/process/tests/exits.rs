//! Exits of real processes.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};

use super::super::Exits;
use super::support::{PATIENCE, Running, waiting};

fn exits() -> (Exits, Receiver<u32>) {
    let (tell, told) = channel();
    (Exits::new(move |pid| tell.send(pid).unwrap()).unwrap(), told)
}

#[test]
fn a_killed_process_is_told_at_once() {
    let (exits, told) = exits();
    let mut process = waiting();
    assert!(exits.watch(process.pid()).unwrap());
    process.kill();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(process.pid()));
}

#[test]
fn a_process_watched_twice_is_told_once() {
    let (exits, told) = exits();
    let [mut first, mut second] = [waiting(), waiting()];
    for process in [&first, &first, &second] {
        assert!(exits.watch(process.pid()).unwrap());
    }
    for process in [&mut first, &mut second] {
        process.kill();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(process.pid()));
    }
}

#[test]
fn what_has_ended_already_is_not_watched() {
    let (exits, _told) = exits();
    let mut process = waiting();
    process.end();
    for pid in [process.pid(), 0, u32::MAX, i32::MAX as u32] {
        assert!(!exits.watch(pid).unwrap(), "{pid}");
    }
}

#[test]
fn many_that_end_at_once_are_all_told() {
    let (exits, told) = exits();
    let mut processes: Vec<Running> = (0..80).map(|_| waiting()).collect();
    let pids: HashSet<u32> = processes.iter().map(Running::pid).collect();
    assert!(pids.iter().all(|pid| exits.watch(*pid).unwrap()));
    processes.iter_mut().for_each(Running::kill);
    let all: HashSet<u32> = pids.iter().map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    assert_eq!(all, pids);
}

#[test]
fn watching_is_allowed_while_told() {
    let exits: Arc<OnceLock<Exits>> = Arc::default();
    let (tell, told) = channel();
    let [mut first, mut second] = [waiting(), waiting()];
    let next = second.pid();
    let inner = Arc::clone(&exits);
    let new = Exits::new(move |pid| {
        let exits = inner.get().unwrap();
        tell.send((pid, exits.watch(next).unwrap())).unwrap();
    });
    let exits = exits.get_or_init(|| new.unwrap());
    assert!(exits.watch(first.pid()).unwrap());
    first.kill();
    assert_eq!(told.recv_timeout(PATIENCE), Ok((first.pid(), true)));
    second.kill();
    assert_eq!(told.recv_timeout(PATIENCE), Ok((second.pid(), false)));
}

#[test]
fn a_drop_ends_the_watching() {
    let (exits, told) = exits();
    let mut process = waiting();
    assert!(exits.watch(process.pid()).unwrap());
    drop(exits);
    // The channel closes when what tells is gone.
    assert_eq!(told.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
    process.end();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_zombie_and_a_thread_are_not_watched() {
        let (exits, _told) = exits();
        let zombie = super::super::owner::zombie();
        assert!(!exits.watch(zombie.pid()).unwrap());
        let thread = super::super::owner::Thread::start();
        assert!(!exits.watch(thread.id).unwrap());
    }

    #[test]
    fn a_process_that_is_not_our_child_is_told() {
        let (exits, told) = exits();
        let script = "exec 3<&0; cat <&3 >/dev/null & echo $!; wait";
        let mut command = Command::new("sh");
        let mut parent = Running::start(command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(parent.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.trim().parse().unwrap();
        assert!(exits.watch(pid).unwrap());
        drop(parent.0.stdin.take()); // the end of its input
        assert_eq!(told.recv_timeout(PATIENCE), Ok(pid));
    }
}
