//! Broken, unexpected, removed and recreated folders and files.

use crate::support::executable::copy_program;
use crate::support::synthetic::{Owner, User};
use crate::support::{SOON, wait_until};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

/// Case 86: a session's folder is deleted and created again.
#[test]
fn case_86_a_deleted_folder_is_reported_and_may_come_back() {
    let (user, session, owner, watch) = User::working(1);
    fs::remove_dir_all(&session.path).unwrap();
    watch.wait_row(&session, "removed", |row| row["removed"] == true);
    assert!(user.row(&session).is_none());

    let again = user.session(1);
    again.lock(owner.pid());
    again.prompt();
    watch.wait_status(&again, "working");
    again.answer();
    watch.wait_status(&again, "idle");
}

/// Case 110: the home is missing, created later, removed, and created again. It is followed throughout.
#[test]
fn case_110_a_home_may_come_and_go() {
    let user = User::new();
    fs::remove_dir_all(user.home()).unwrap();
    let watch = user.watch();
    for round in 1..=2 {
        let session = user.session(round);
        let _owner = session.owner(&user);
        session.prompt();
        watch.wait_status(&session, "working");
        session.answer();
        watch.wait_status(&session, "idle");
        fs::remove_dir_all(user.home()).unwrap();
        watch.wait_row(&session, "removed", |row| row["removed"] == true);
    }
}

/// Cases 86 and 110: a folder that is removed and recreated before anything reads it is followed like the old one.
#[test]
fn case_86_a_folder_recreated_at_once_is_followed() {
    let user = User::new();
    let session = user.session(1);
    // An owner without an open file in the folder: while one is open, the system does not report the folder's removal.
    let owner = Owner::start(user.scratch.path(), "copilot");
    session.lock(owner.pid());
    session.prompt();
    let watch = user.watch();
    watch.wait_status(&session, "working");
    for folder in [session.path.clone(), user.sessions(), user.home()] {
        for _ in 0..10 {
            fs::remove_dir_all(&folder).unwrap();
            let again = user.session(1);
            again.lock(owner.pid());
            again.prompt();
            again.answer();
            watch.wait_status(&again, "idle");
            again.prompt();
            watch.wait_status(&again, "working");
        }
    }
}

/// Case 109: a reached limit of file watches is reported, and everything else continues to work.
#[test]
fn case_109_a_limit_of_file_watches_is_reported() {
    let namespaces = Command::new("unshare").args(["-U", "-r", "true"]).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        return; // without user namespaces the limit cannot be set for one process
    }
    let user = User::new();
    let live = user.session(0);
    let _owner = live.owner(&user);
    live.prompt();
    for n in 1..40 {
        user.session(n).ended(Duration::from_secs(7200));
    }
    let program = env!("CARGO_BIN_EXE_pilotlight");
    let limited = format!("echo 10 >/proc/sys/user/max_inotify_watches; exec {program} watch --json");
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "sh", "-c", &limited]).env("HOME", user.scratch.path());
    let stderr = user.scratch.path().join("stderr");
    command.stderr(fs::File::create(&stderr).unwrap());
    let watch = crate::support::synthetic::Watch::start(command);
    watch.wait_status(&live, "working");
    live.answer();
    watch.wait_status(&live, "idle");
    wait_until(SOON, "the limit is reported", String::new, || {
        fs::read_to_string(&stderr).unwrap().contains("limit of file watches").then_some(())
    });
}

/// Case 88: a log that is not a regular file is reported and left alone. Everything else is still shown.
#[test]
fn case_88_a_log_that_is_no_file_is_reported_and_the_rest_is_shown() {
    let user = User::new();
    let good = user.session(0);
    let _owner = good.owner(&user);
    good.prompt();
    let owners: Vec<_> = (1..=4).map(|n| (user.session(n).owner(&user), user.session(n))).collect();
    let logs: Vec<_> = owners.iter().map(|(_, session)| session.log()).collect();
    fs::create_dir(&logs[0]).unwrap();
    Command::new("mkfifo").arg(&logs[1]).status().unwrap();
    symlink(good.log(), &logs[2]).unwrap();
    symlink(user.scratch.path(), user.sessions().join("a-link")).unwrap();
    fs::write(user.sessions().join("a-file"), "").unwrap();
    fs::create_dir(user.sessions().join(".hidden")).unwrap();

    let output = user.run(&["status"]);
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    for (words, index) in [("a folder", 0), ("a pipe", 1), ("a symbolic link", 2)] {
        let session = &owners[index].1;
        let (status, because) = user.status_and_reason(session);
        assert!(status == "quiet" && because.contains(words), "{status}: {because}");
        let line = stderr.lines().find(|line| line.contains(&session.id)).unwrap();
        assert!(line.contains(words), "{line}");
    }
    assert_eq!(user.status_and_reason(&good).0, "working");
    assert_eq!(user.status_and_reason(&owners[3].1), ("idle".into(), "no prompt yet".into()));
    assert_eq!(user.rows(&[]).len(), 5);

    // When it becomes a log, that is noticed at once.
    let watch = user.watch();
    watch.wait_status(&owners[0].1, "quiet");
    fs::remove_dir(&logs[0]).unwrap();
    owners[0].1.prompt();
    watch.wait_status(&owners[0].1, "working");
}

/// A session cannot send escape sequences to a terminal by the name of its folder.
#[test]
fn case_103_a_hostile_folder_name_is_shown_as_text() {
    let user = User::new();
    let folder = user.sessions().join("bad\u{1b}[31mRED\nnew line");
    fs::create_dir(&folder).unwrap();
    Command::new("mkfifo").arg(folder.join("events.jsonl")).status().unwrap();
    for args in [&["status"][..], &["explain", "bad"], &["explain", "b\u{1b}"]] {
        let output = user.run(args);
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        assert!(!text.contains('\u{1b}') && !text.contains("\nnew line"), "{args:?}: {text}");
    }
}

/// A log of 20 GB without a line end delays nothing.
#[test]
fn case_89_a_log_without_line_ends_delays_nothing() {
    let user = User::new();
    let (huge, good) = (user.session(1), user.session(2));
    let _owners = (huge.owner(&user), good.owner(&user));
    fs::File::create(huge.log()).unwrap().set_len(20 << 30).unwrap();
    good.prompt();
    assert_eq!(user.status_and_reason(&good).0, "working");
    let watch = user.watch();
    watch.wait_status(&good, "working");
    assert_eq!(watch.end(rustix::process::Signal::TERM), Some(0));
}

/// A session whose folder may not be read is not ended: nothing is known of it.
#[test]
fn a_folder_that_may_not_be_read_is_quiet() {
    if !rustix::process::geteuid().is_root() {
        return; // another user's folder cannot be made without being root
    }
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let program = user.scratch.path().join("pilotlight");
    copy_program(env!("CARGO_BIN_EXE_pilotlight"), &program);
    Command::new("chmod").args(["-R", "a+rX"]).arg(user.scratch.path()).status().unwrap();
    Command::new("chmod").arg("0700").arg(&session.path).status().unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&program);
    command.args(["status", "--json", "--home"]).arg(user.home()).env_clear().env("HOME", "/nonexistent");
    let rows: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(rows[0]["status"], "quiet", "{rows}");
    assert!(rows[0]["because"].as_str().unwrap().contains("cannot be read"), "{rows}");
}

/// Old sessions are reported once. The deletion of one is reported too.
#[test]
fn deleting_an_old_session_is_reported() {
    let user = User::new();
    let (old, other) = (user.session(1), user.session(2));
    old.ended(Duration::from_secs(40 * 86_400));
    other.ended(Duration::from_secs(41 * 86_400));
    let watch = user.watch();
    watch.wait_status(&old, "ended");
    watch.wait_status(&other, "ended");
    fs::remove_dir_all(&old.path).unwrap();
    watch.wait_row(&old, "removed", |row| row["removed"] == true);
    assert_eq!(watch.latest()[&other.id]["status"], "ended");
}

/// A stalled reader of the output does not keep the program from exiting, and a reader that disconnects ends it.
#[test]
fn a_stalled_reader_does_not_prevent_the_exit() {
    let user = User::new();
    for n in 1..400 {
        user.session(n).ended(Duration::from_secs(40 * 86_400));
    }
    for disconnects in [false, true] {
        let mut child = user.pilotlight(&["watch", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut first = [0; 1];
        std::io::Read::read_exact(&mut out, &mut first).unwrap();
        if disconnects {
            drop(out); // nothing changes, so nothing is written
        } else {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        }
        let status = wait_until(SOON, "it exits", String::new, || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{disconnects}");
    }
}

/// Garbage in every file of a session causes no panic. The session has a status, and others are not affected.
#[test]
fn garbage_in_every_file_is_survived() {
    let user = User::new();
    let (bad, good) = (user.session(1), user.session(2));
    let _owners = (bad.owner(&user), good.owner(&user));
    good.prompt();
    let garbage: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(bad.log(), &garbage).unwrap();
    fs::write(bad.path.join("workspace.yaml"), &garbage).unwrap();
    fs::write(bad.path.join("inuse.notapid.lock"), &garbage).unwrap();
    fs::write(bad.path.join("inuse.99999999999999.lock"), &garbage).unwrap();
    assert_eq!(user.status_and_reason(&good).0, "working");
    let row = user.row(&bad).unwrap();
    assert_eq!((row["status"].as_str(), row["name"].as_str()), (Some("idle"), Some(&bad.id[..8])));
    let output = user.run(&["explain", &bad.id]);
    let explained = String::from_utf8(output.stdout).unwrap();
    assert!(explained.contains("0 events read"), "{explained}");
}

/// An old session that is resumed is reported at once, though its log was never read.
#[test]
fn resuming_an_old_session_is_reported_at_once() {
    let user = User::new();
    let old = user.session(1);
    old.ended(Duration::from_secs(40 * 86_400));
    let watch = user.watch();
    watch.wait_status(&old, "ended");
    assert!(user.row(&old).is_none(), "only sessions of the last 24 hours are listed");
    let _owner = old.owner(&user);
    old.log_event("session.resume", r#"{"resumeTime":"x","eventCount":2}"#);
    let row = watch.wait_status(&old, "idle");
    assert_eq!(row["because"], "resumed, your turn");
    old.prompt();
    watch.wait_status(&old, "working");
}

/// Progress alone prints nothing; each change of status prints one line.
#[test]
fn progress_alone_prints_nothing() {
    let (_user, session, _owner, watch) = User::working(1);
    for _ in 0..20 {
        session.log_event("session.info", r#"{"message":"x"}"#);
    }
    session.answer();
    watch.wait_status(&session, "idle");
    let statuses: Vec<_> = watch.lines().iter().map(|line| line["status"].as_str().unwrap().to_owned()).collect();
    assert_eq!(statuses, ["working", "idle"]);
}

/// A session's title is shown as text. Its escape sequences do not reach the terminal.
#[test]
fn case_103_a_hostile_title_is_shown_as_text() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    let title = format!("\"<b>&\\u001b[2J\\u202Eevil\\n{}\"", "x".repeat(10_000));
    session.workspace(&format!("name: {title}\ncwd: /x\n"));
    session.prompt();
    let table = String::from_utf8(user.run(&["status"]).stdout).unwrap();
    assert!(table.contains("<b>& [2Jevil xxx"), "{table}");
    assert!(!table.contains(['\u{1b}', '\u{202e}']) && table.lines().all(|line| line.chars().count() < 400));
    let name = user.row(&session).unwrap()["name"].as_str().unwrap().to_owned();
    assert!(name.chars().count() <= 120 && !name.contains('\u{1b}'));
}
