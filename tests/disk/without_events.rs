//! Sessions whose changes cause no file event: on a file system that others write to, or where the system refuses to
//! watch them.

use crate::support::fuse;
use crate::support::running_time::running_time;
use crate::support::synthetic::{Folder, User, Watch};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Less than the rescan would take for two changes, and more than the polls do.
const BEFORE_THE_RESCAN: Duration = Duration::from_secs(40);

/// Changes a session several times, and waits until each change is reported.
fn assert_is_looked_at(watch: &Watch, session: &Folder) {
    let start = running_time();
    for _ in 0..2 {
        session.answer();
        watch.wait_status(session, "idle");
        session.prompt();
        watch.wait_status(session, "working");
    }
    let took = running_time() - start;
    assert!(took < BEFORE_THE_RESCAN, "four looks took {took:.1?}");
}

/// Case 161: a home on a file system without events. Everything is written beneath it, as on another machine.
#[test]
fn case_161_live_sessions_on_a_file_system_without_events_are_looked_at_every_few_seconds() {
    if !fuse::is_possible() {
        return;
    }
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let watch = fuse::watch(&user, &user.home());
    watch.wait_status(&session, "working");
    assert_is_looked_at(&watch, &session);
    // A new one beside it.
    let other = user.session(2);
    let _owner = other.owner(&user);
    other.prompt();
    watch.wait_status(&other, "working");

    let doctor = fuse::beside(&watch, &user.pilotlight(&["doctor"]));
    assert!(doctor.contains("on FUSE, which may not report changes of files"), "{doctor}");
    assert!(doctor.contains("live sessions are looked at every 5 s"), "{doctor}");
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Case 161: a mount over the folder of a single session, while it is watched. Once that is gone, the folder beneath it
/// is watched again.
#[test]
fn case_161_a_mount_over_the_folder_of_a_single_session_is_followed() {
    if !fuse::is_possible() {
        return;
    }
    let user = User::new();
    let (session, elsewhere) = (user.session(1), user.scratch.path().join("elsewhere"));
    let _owner = session.owner(&user);
    session.prompt();
    // The program is in a mount namespace of its own; the mount that it begins with is not near the session.
    std::fs::create_dir(&elsewhere).unwrap();
    let watch = fuse::watch(&user, &elsewhere);
    watch.wait_status(&session, "working");
    let mount = |command: &str, arguments: &[&Path]| {
        let mut command = Command::new(command);
        command.args(arguments);
        fuse::beside(&watch, &command);
    };
    mount("bindfs", &[&session.path, &session.path]);
    assert_is_looked_at(&watch, &session);
    mount("umount", &[&session.path]);
    assert_is_looked_at(&watch, &session);
    assert_eq!(watch.end(Signal::TERM), Some(0));
}

/// Case 161: the system refuses to watch anything.
#[test]
fn case_161_live_sessions_that_the_system_refuses_to_watch_are_looked_at_every_few_seconds() {
    let namespaces = Command::new("unshare").args(["-U", "-r", "true"]).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        return; // without user namespaces the limit cannot be set for one process
    }
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let program = env!("CARGO_BIN_EXE_pilotlight");
    let limited = format!("echo 0 >/proc/sys/user/max_inotify_watches; exec {program} watch --json");
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "sh", "-c", &limited]).env("HOME", user.scratch.path());
    let watch = Watch::start(command);
    watch.wait_status(&session, "working");
    assert_is_looked_at(&watch, &session);
}
