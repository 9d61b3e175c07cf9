//! Watches, watchers and file descriptors that are used up.

use super::floods::{LATE, Pulse};
use super::spaces;
use crate::support::executable::executable;
use crate::support::made_up::{User, Watch};
use crate::support::{SOON, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// Case 109: without a single watcher that is said, the sessions are there, and nothing spins.
#[test]
fn case_109_without_any_watcher_that_is_said() {
    if !spaces::limits_can_be_set() {
        return;
    }
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let complaint = user.scratch.path().join("stderr");
    let none = "echo 0 >/proc/sys/user/max_inotify_instances";
    let mut command = spaces::after(none, &["-U", "-r"], &user.pilotlight(&["watch", "--json"]));
    command.stderr(fs::File::create(&complaint).unwrap());
    let watch = Watch::start(command);
    watch.told(&session, "working");
    let told = || fs::read_to_string(&complaint).unwrap();
    wait_until(SOON, "it is told", told, || told().contains("file changes cannot be watched").then_some(()));
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Case 109: what is beyond the limit is looked at all the same.
#[test]
#[ignore = "waits for the rescan, which comes once a minute"]
fn case_109_what_is_beyond_the_limit_is_found_by_the_rescan() {
    if !spaces::limits_can_be_set() {
        return;
    }
    let user = User::new();
    let sessions: Vec<_> = (0..12).map(|n| user.session(n)).collect();
    let _owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    let few = "echo 6 >/proc/sys/user/max_inotify_watches";
    let watch = Watch::start(spaces::after(few, &["-U", "-r"], &user.pilotlight(&["watch", "--json"])));
    for session in &sessions {
        watch.told(session, "idle");
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

/// The descriptors that a process has open.
fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// This command, where so many files may be open and no more.
fn with_descriptors(most: usize, program: &Command) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={most}:{most}")).arg(program.get_program()).args(program.get_args()).env_clear();
    command.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command
}

/// Case 138: more owners than descriptors. A reserve is kept, that is said once, and every status stays true.
#[test]
fn case_138_with_more_owners_than_descriptors_every_status_stays_true() {
    let user = User::new();
    let sessions: Vec<_> = (0..60).map(|n| user.session(n)).collect();
    let mut owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    for session in &sessions {
        session.prompt();
    }
    let complaint = user.scratch.path().join("stderr");
    let mut command = with_descriptors(64, &user.pilotlight(&["watch", "--json"]));
    command.stderr(fs::File::create(&complaint).unwrap());
    let watch = Watch::start(command);
    for session in &sessions {
        watch.told(session, "working");
    }
    let open = open_files(watch.pid());
    println!("60 owners, 64 descriptors: {open} are open");
    assert!((20..=44).contains(&open), "{open} are open: a reserve is kept, the rest is used");
    // What another session does is told at once.
    let worst = Pulse { session: &sessions[0], watch: &watch }.beat(10);
    println!("another session is told within {worst:.1?}");
    assert!(worst < LATE, "{worst:.1?}");
    // Every end is told, whether it was waited for or looked at.
    let begun = Instant::now();
    for _ in 0..59 {
        owners.pop().unwrap().kill();
    }
    for session in &sessions[1..] {
        watch.told(session, "crashed");
    }
    println!("59 ends are told after {:?}", begun.elapsed());
    let told = fs::read_to_string(&complaint).unwrap();
    assert_eq!(told.matches("the end of some owners cannot be waited for").count(), 1, "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(watch.lines().iter().all(|row| row["status"] != "quiet"), "{:?}", watch.lines());
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// What we start gets back the limit that we were started with.
#[test]
fn what_is_started_gets_the_old_limit_of_descriptors_back() {
    let user = User::new();
    let said = user.scratch.path().join("limit");
    let editor = user.scratch.path().join("editor");
    executable(&editor, &format!("#!/bin/sh\nulimit -n >{}\n", said.display()));
    let program = user.pilotlight(&["config", "--edit"]);
    let mut command = Command::new("prlimit");
    command.arg("--nofile=77:4096").arg(program.get_program()).args(program.get_args()).env_clear();
    let output = command.env("HOME", user.scratch.path()).env("EDITOR", editor).output().unwrap();
    assert_eq!(fs::read_to_string(said).unwrap_or_default(), "77\n", "{output:?}");
}

/// A one-shot command with few file descriptors tells the truth or that it cannot; it never says that nothing is there.
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
        command.env("HOME", user.scratch.path());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "with {most}: {said}");
        if output.status.success() {
            let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let status = rows[0]["status"].as_str().unwrap_or_default();
            assert!(matches!(status, "working" | "quiet"), "with {most}: {rows} {said}");
            right += usize::from(status == "working");
        } else {
            assert!(!said.is_empty(), "with {most} it fails without a word");
        }
    }
    assert!(right > 5, "right {right} times");
}

/// Out of file descriptors, no session is called gone, and all is right again once there are some.
#[test]
fn out_of_descriptors_no_session_is_called_gone() {
    let user = User::new();
    let sessions: Vec<_> = (0..8).map(|n| user.session(n)).collect();
    let owners: Vec<_> = sessions.iter().map(|session| session.owner(&user)).collect();
    let watch = user.watch();
    for session in &sessions {
        session.prompt();
        watch.told(session, "working");
    }
    let pid = Pid::from_raw(i32::try_from(watch.pid()).unwrap());
    let usual = getrlimit(Resource::Nofile);
    let limit = |most| prlimit(pid, Resource::Nofile, Rlimit { current: most, maximum: usual.maximum }).unwrap();
    limit(Some(4));
    let before = watch.lines().len();
    // It looks, and cannot: at logs, at locks, and at the list of sessions.
    for session in &sessions {
        session.prompt();
        fs::write(session.path.join("inuse.1.lock"), "1\n").unwrap();
    }
    let new = user.session(99);
    wait_until(
        SOON,
        "it was told of something that it cannot read",
        || format!("{:?}", &watch.lines()[before..]),
        || watch.lines()[before..].iter().any(|row| row.to_string().contains("cannot be read")).then_some(()),
    );
    limit(usual.current);
    for session in &sessions {
        fs::remove_file(session.path.join("inuse.1.lock")).unwrap();
        session.answer();
    }
    let of_new = new.owner(&user);
    let newer = user.session(100); // what lists the home anew; the rescan would do so as well
    let of_newer = newer.owner(&user);
    for session in sessions.iter().chain([&new, &newer]) {
        watch.told(session, "idle");
    }
    let removed: Vec<_> = watch.lines().into_iter().filter(|row| row["removed"] == true).collect();
    assert!(removed.is_empty(), "{removed:?}");
    let gone: Vec<_> = watch.lines().into_iter().filter(|row| row["owner"]["state"] == "gone").collect();
    assert!(gone.is_empty(), "{gone:?}");
    drop((owners, of_new, of_newer));
}
