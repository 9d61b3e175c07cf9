//! Exhausted file watches, inotify instances and file descriptors.

use super::floods::{LATE, Pulse};
use super::spaces;
use crate::support::executable::executable;
use crate::support::synthetic::{User, Watch};
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// Case 109: without any inotify instance, that is reported, and the sessions are listed.
#[test]
fn case_109_missing_inotify_instances_are_reported() {
    if !spaces::limits_can_be_set() {
        return;
    }
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let stderr = user.scratch.path().join("stderr");
    let none = "echo 0 >/proc/sys/user/max_inotify_instances";
    let mut command = spaces::after(none, &["-U", "-r"], &user.pilotlight(&["watch", "--json"]));
    command.stderr(fs::File::create(&stderr).unwrap());
    let watch = Watch::start(command);
    watch.wait_status(&session, "working");
    let errors = || fs::read_to_string(&stderr).unwrap();
    wait_until(SOON, "that is reported", errors, || errors().contains("file changes cannot be watched").then_some(()));
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Case 109: sessions beyond the limit are still found by the rescan.
#[test]
#[ignore = "waits for the rescan, which comes once a minute"]
fn case_109_sessions_beyond_the_limit_are_found_by_the_rescan() {
    if !spaces::limits_can_be_set() {
        return;
    }
    let user = User::new();
    let sessions: Vec<_> = (0..12).map(|n| user.session(n)).collect();
    let _owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    let few = "echo 6 >/proc/sys/user/max_inotify_watches";
    let watch = Watch::start(spaces::after(few, &["-U", "-r"], &user.pilotlight(&["watch", "--json"])));
    for session in &sessions {
        watch.wait_status(session, "idle");
        session.prompt();
    }
    for _ in 0..5 {
        // Each of these waits for fifteen seconds at most.
        let all = || sessions.iter().all(|session| watch.latest()[&session.id]["status"] == "working");
        if crate::support::wait(Duration::from_secs(15), || all().then_some(())).is_some() {
            return;
        }
    }
    panic!("{:?}", watch.latest());
}

/// The number of descriptors that a process has open.
fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// This command, with a limit of open files.
fn with_descriptors(limit: usize, program: &Command) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={limit}:{limit}")).arg(program.get_program()).args(program.get_args()).env_clear();
    command.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command
}

/// Case 138: more owners than descriptors. A reserve is kept, the shortage is reported once, and every status stays
/// true.
#[test]
fn case_138_with_more_owners_than_descriptors_every_status_stays_true() {
    let user = User::new();
    let sessions: Vec<_> = (0..60).map(|n| user.session(n)).collect();
    let mut owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    for session in &sessions {
        session.prompt();
    }
    let stderr = user.scratch.path().join("stderr");
    let mut command = with_descriptors(64, &user.pilotlight(&["watch", "--json"]));
    command.stderr(fs::File::create(&stderr).unwrap());
    let watch = Watch::start(command);
    for session in &sessions {
        watch.wait_status(session, "working");
    }
    let open = open_files(watch.pid());
    println!("60 owners, 64 descriptors: {open} are open");
    assert!((20..=44).contains(&open), "{open} are open: a reserve is kept, the rest is used");
    // Changes of another session are reported at once.
    let worst = Pulse { session: &sessions[0], watch: &watch }.beat(10);
    println!("another session is reported within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    // Every exit is reported, whether its descriptor or a poll found it.
    let start = Instant::now();
    for _ in 0..59 {
        owners.pop().unwrap().kill();
    }
    for session in &sessions[1..] {
        watch.wait_status(session, "crashed");
    }
    println!("59 exits are reported after {:?}", start.elapsed());
    let errors = fs::read_to_string(&stderr).unwrap();
    assert_eq!(errors.matches("the end of some owners cannot be waited for").count(), 1, "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(watch.lines().iter().all(|row| row["status"] != "quiet"), "{:?}", watch.lines());
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Child processes get back the limit with which we were started.
#[test]
fn child_processes_get_the_original_limit_of_descriptors() {
    let user = User::new();
    let limit = user.scratch.path().join("limit");
    let editor = user.scratch.path().join("editor");
    executable(&editor, &format!("#!/bin/sh\nulimit -n >{}\n", limit.display()));
    let program = user.pilotlight(&["config", "--edit"]);
    let mut command = Command::new("prlimit");
    command.arg("--nofile=77:4096").arg(program.get_program()).args(program.get_args()).env_clear();
    let output = command.env("HOME", user.scratch.path()).env("EDITOR", editor).output().unwrap();
    assert_eq!(fs::read_to_string(limit).unwrap_or_default(), "77\n", "{output:?}");
}

/// A one-shot command with few file descriptors reports the truth or an error. It never reports an empty list.
#[test]
fn with_few_descriptors_status_is_right_or_fails() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let program = user.pilotlight(&["status", "--json"]);
    let mut right = 0;
    for most in 3..24 {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={most}")).arg(program.get_program()).args(program.get_args()).env_clear();
        command.env("HOME", user.scratch.path()).env("PILOTLIGHT_DISCOVER", "false");
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "with {most}: {stderr}");
        if output.status.success() {
            let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let status = rows[0]["status"].as_str().unwrap_or_default();
            assert!(matches!(status, "working" | "quiet"), "with {most}: {rows} {stderr}");
            right += usize::from(status == "working");
        } else {
            assert!(!stderr.is_empty(), "with {most} it fails without a message");
        }
    }
    assert!(right > 5, "right {right} times");
}

/// Without free file descriptors, no session is called gone. Everything is right again once there are some.
#[test]
fn out_of_descriptors_no_session_is_called_gone() {
    let user = User::new();
    let sessions: Vec<_> = (0..8).map(|n| user.session(n)).collect();
    let owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    let watch = user.watch();
    for session in &sessions {
        session.prompt();
        watch.wait_status(session, "working");
    }
    let pid = Pid::from_raw(i32::try_from(watch.pid()).unwrap());
    let usual = getrlimit(Resource::Nofile);
    let limit = |most| prlimit(pid, Resource::Nofile, Rlimit { current: most, maximum: usual.maximum }).unwrap();
    limit(Some(4));
    let before = watch.lines().len();
    // It tries to read logs, locks and the list of sessions, and fails.
    for session in &sessions {
        session.prompt();
        fs::write(session.path.join("inuse.1.lock"), "1\n").unwrap();
    }
    let new = user.session(99);
    wait_until(
        SOON,
        "something is reported as unreadable",
        || format!("{:?}", &watch.lines()[before..]),
        || watch.lines()[before..].iter().any(|row| row.to_string().contains("cannot be read")).then_some(()),
    );
    limit(usual.current);
    for session in &sessions {
        fs::remove_file(session.path.join("inuse.1.lock")).unwrap();
        session.answer();
    }
    let of_new = new.owner(&user);
    let newer = user.session(100); // makes it list the home again; the rescan would do so as well
    let of_newer = newer.owner(&user);
    for session in sessions.iter().chain([&new, &newer]) {
        watch.wait_status(session, "idle");
    }
    let removed: Vec<_> = watch.lines().into_iter().filter(|row| row["removed"] == true).collect();
    assert!(removed.is_empty(), "{removed:?}");
    let gone: Vec<_> = watch.lines().into_iter().filter(|row| row["owner"]["state"] == "gone").collect();
    assert!(gone.is_empty(), "{gone:?}");
    drop((owners, of_new, of_newer));
}
