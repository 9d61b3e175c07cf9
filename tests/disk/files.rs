//! Folders and files that are not what they should be, and that come and go.

use crate::support::made_up::{Owner, User};
use crate::support::{SOON, wait_until};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

/// Case 86 (UP): a session's folder is deleted and made again.
#[test]
fn case_86_a_deleted_folder_is_told_and_may_come_back() {
    let (user, session, owner, watch) = User::working(1);
    fs::remove_dir_all(&session.path).unwrap();
    watch.until(&session, "it is told as removed", |row| row["removed"] == true);
    assert!(user.row(&session).is_none());

    let again = user.session(1);
    again.lock(owner.pid());
    again.prompt();
    watch.told(&again, "working");
    again.answer();
    watch.told(&again, "idle");
}

/// Case 110: the root is missing, made later, removed, made again: followed throughout.
#[test]
fn case_110_a_home_may_come_and_go() {
    let user = User::new();
    fs::remove_dir_all(user.home()).unwrap();
    let watch = user.watch();
    for round in 1..=2 {
        let session = user.session(round);
        let _owner = session.owner(&user);
        session.prompt();
        watch.told(&session, "working");
        session.answer();
        watch.told(&session, "idle");
        fs::remove_dir_all(user.home()).unwrap();
        watch.until(&session, "it is told as removed", |row| row["removed"] == true);
    }
}

/// Cases 86 and 110: made anew before anybody looked, a folder is followed as the one before it was.
#[test]
fn case_86_what_is_made_anew_at_once_is_followed() {
    let user = User::new();
    let session = user.session(1);
    // One that holds nothing in the folder: what is open there keeps the system from telling that the folder went.
    let owner = Owner::start(user.scratch.path(), "copilot");
    session.lock(owner.pid());
    session.prompt();
    let watch = user.watch();
    watch.told(&session, "working");
    for what in [session.path.clone(), user.sessions(), user.home()] {
        for _ in 0..10 {
            fs::remove_dir_all(&what).unwrap();
            let again = user.session(1);
            again.lock(owner.pid());
            again.prompt();
            again.answer();
            watch.told(&again, "idle");
            again.prompt();
            watch.told(&again, "working");
        }
    }
}

/// Case 109: where no more files can be watched, that is said, and the rest goes on.
#[test]
fn case_109_a_limit_of_watches_is_said() {
    let namespaces = Command::new("unshare").args(["-U", "-r", "true"]).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        return; // the system does not allow the limit to be set for one process
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
    let complaint = user.scratch.path().join("stderr");
    command.stderr(fs::File::create(&complaint).unwrap());
    let watch = crate::support::made_up::Watch::start(command);
    watch.told(&live, "working");
    live.answer();
    watch.told(&live, "idle");
    wait_until(SOON, "the limit is told", String::new, || {
        fs::read_to_string(&complaint).unwrap().contains("limit of file watches").then_some(())
    });
}

/// Case 88 (UP): what is no log is named and left alone; everything else is still shown.
#[test]
fn case_88_what_is_no_log_is_named_and_the_rest_is_shown() {
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
    let complaints = String::from_utf8_lossy(&output.stderr);
    for (words, index) in [("a folder", 0), ("a pipe", 1), ("a symbolic link", 2)] {
        let session = &owners[index].1;
        let (status, because) = user.told(session);
        assert!(status == "quiet" && because.contains(words), "{status}: {because}");
        let line = complaints.lines().find(|line| line.contains(&session.id)).unwrap();
        assert!(line.contains(words), "{line}");
    }
    assert_eq!(user.told(&good).0, "working");
    assert_eq!(user.told(&owners[3].1), ("idle".into(), "no prompt yet".into()));
    assert_eq!(user.rows(&[]).len(), 5);

    // It is seen at once when it becomes a log.
    let watch = user.watch();
    watch.told(&owners[0].1, "quiet");
    fs::remove_dir(&logs[0]).unwrap();
    owners[0].1.prompt();
    watch.told(&owners[0].1, "working");
}

/// What a session cannot do to a terminal by its title, it cannot by the name of its folder either.
#[test]
fn case_103_a_hostile_folder_name_is_shown_as_text() {
    let user = User::new();
    let folder = user.sessions().join("bad\u{1b}[31mRED\nnew line");
    fs::create_dir(&folder).unwrap();
    Command::new("mkfifo").arg(folder.join("events.jsonl")).status().unwrap();
    for args in [&["status"][..], &["explain", "bad"], &["explain", "b\u{1b}"]] {
        let output = user.run(args);
        let told = [output.stdout, output.stderr].map(|told| String::from_utf8(told).unwrap()).concat();
        assert!(!told.contains('\u{1b}') && !told.contains("\nnew line"), "{args:?}: {told}");
    }
}

/// A log of 20 GB without a line end holds nobody up.
#[test]
fn case_89_a_log_without_line_ends_holds_nobody_up() {
    let user = User::new();
    let (huge, good) = (user.session(1), user.session(2));
    let _owners = (huge.owner(&user), good.owner(&user));
    fs::File::create(huge.log()).unwrap().set_len(20 << 30).unwrap();
    good.prompt();
    assert_eq!(user.told(&good).0, "working");
    let watch = user.watch();
    watch.told(&good, "working");
    assert_eq!(watch.end(rustix::process::Signal::TERM), Some(0));
}

/// A session whose folder may not be read is not called over: nothing is known of it.
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
    fs::copy(env!("CARGO_BIN_EXE_pilotlight"), &program).unwrap();
    Command::new("chmod").args(["-R", "a+rX"]).arg(user.scratch.path()).status().unwrap();
    Command::new("chmod").arg("0700").arg(&session.path).status().unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&program);
    command.args(["status", "--json", "--home"]).arg(user.home()).env_clear().env("HOME", "/nonexistent");
    let rows: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(rows[0]["status"], "quiet", "{rows}");
    assert!(rows[0]["because"].as_str().unwrap().contains("cannot be read"), "{rows}");
}

/// Old sessions are told once; when one is deleted, that is told too.
#[test]
fn an_old_session_that_is_deleted_is_told_as_removed() {
    let user = User::new();
    let (old, other) = (user.session(1), user.session(2));
    old.ended(Duration::from_secs(40 * 86_400));
    other.ended(Duration::from_secs(41 * 86_400));
    let watch = user.watch();
    watch.told(&old, "ended");
    watch.told(&other, "ended");
    fs::remove_dir_all(&old.path).unwrap();
    watch.until(&old, "told as removed", |row| row["removed"] == true);
    assert_eq!(watch.latest()[&other.id]["status"], "ended");
}

/// A reader that does not read does not keep the program from ending, and one that goes away ends it.
#[test]
fn a_reader_that_does_not_read_holds_nothing_up() {
    let user = User::new();
    for n in 1..400 {
        user.session(n).ended(Duration::from_secs(40 * 86_400));
    }
    for reads in [false, true] {
        let mut child = user.pilotlight(&["watch", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut first = [0; 1];
        std::io::Read::read_exact(&mut out, &mut first).unwrap();
        if reads {
            drop(out); // nobody reads any more, and nothing changes
        } else {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        }
        let ended = wait_until(SOON, "it ends", String::new, || child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0), "{reads}");
    }
}

/// Garbage in every file of a session: no panic, a status, and the others are not touched by it.
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
    assert_eq!(user.told(&good).0, "working");
    let row = user.row(&bad).unwrap();
    assert_eq!((row["status"].as_str(), row["name"].as_str()), (Some("idle"), Some(&bad.id[..8])));
    let output = user.run(&["explain", &bad.id]);
    let explained = String::from_utf8(output.stdout).unwrap();
    assert!(explained.contains("0 events read"), "{explained}");
}

/// An old session that is resumed is told at once, though its log was never read.
#[test]
fn an_old_session_that_is_resumed_is_told_at_once() {
    let user = User::new();
    let old = user.session(1);
    old.ended(Duration::from_secs(40 * 86_400));
    let watch = user.watch();
    watch.told(&old, "ended");
    assert!(user.row(&old).is_none(), "not among those of the last 24 hours");
    let _owner = old.owner(&user);
    old.say("session.resume", r#"{"resumeTime":"x","eventCount":2}"#);
    let row = watch.told(&old, "idle");
    assert_eq!(row["because"], "resumed, your turn");
    old.prompt();
    watch.told(&old, "working");
}

/// Progress alone prints nothing; each change of status prints one line.
#[test]
fn progress_alone_prints_nothing() {
    let (_user, session, _owner, watch) = User::working(1);
    for _ in 0..20 {
        session.say("session.info", r#"{"message":"x"}"#);
    }
    session.answer();
    watch.told(&session, "idle");
    let statuses: Vec<_> = watch.lines().iter().map(|line| line["status"].as_str().unwrap().to_owned()).collect();
    assert_eq!(statuses, ["working", "idle"]);
}

/// A title that a session wrote is shown as text: no escape sequence of it reaches the terminal.
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
