//! Disks that are full, and homes that cannot be written.

use super::spaces;
use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::{Entry, Panel};
use crate::desk::sessions::Sessions;
use crate::support::made_up;
use rustix::process::Signal;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;

/// An output that takes nothing is a failure with a reason, never a panic; with nobody to tell, the exit code says it.
#[test]
fn an_output_on_a_full_disk_is_a_failure_in_words() {
    let user = made_up::User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let log = session.log();
    let log = log.to_str().unwrap();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for args in [
        &["status"][..],
        &["status", "--json"],
        &["watch", "--json"],
        &["explain", &session.id],
        &["replay", log],
        &["replay", log, "--json"],
        &["config", "--print"],
    ] {
        let output = user.pilotlight(args).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{args:?}: {said}");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("No space left"), "{args:?}: {said}");
        let output = user.pilotlight(args).stdout(full()).stderr(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
    }
    // Warnings that nobody can read cost nothing.
    fs::create_dir_all(user.scratch.path().join(".config/pilotlight")).unwrap();
    fs::write(user.scratch.path().join(".config/pilotlight/config.toml"), "nonsense = 1\n").unwrap();
    let output = user.pilotlight(&["status"]).stderr(full()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Finds the entry of a menu with these words.
fn labelled<'a>(words: &'a str) -> impl Fn(&Entry) -> bool + 'a {
    move |entry| entry.label.starts_with(words)
}

/// The state folder on a disk that is full: the light goes on, says what it cannot keep, and what was kept is still there.
#[test]
fn a_full_disk_costs_what_would_be_remembered_and_nothing_else() {
    if !spaces::mounts_can_be_made() {
        return;
    }
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    fs::create_dir_all(user.state()).unwrap();
    let kept = "{\"another\": \"2026-11-20T18:00:00Z\"}";
    let state = user.state().display().to_string();
    let fills = format!(
        "mount -t tmpfs -o size=64k none {state} && printf '%s' '{kept}' >{state}/seen.json && \
         touch {state}/welcomed && dd if=/dev/zero of={state}/rest bs=4k status=none"
    );
    let mut light = user.light_from(spaces::after(&fills, &["-m"], &user.command(Some(&bus), &[])));
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    session.prompt();
    user.agrees(&panel, &session, "working");
    session.answer("Done.");
    panel.wait_for("it is unseen", |entry| entry.shown().starts_with("✓ ● "));
    panel.rest();
    let all = panel.wait_for("Mark all as seen", labelled("Mark all as seen"));
    assert!(panel.click(all.id));
    light.says("what you have seen cannot be saved");
    panel.wait_for("it is seen", |entry| entry.shown().starts_with("✓ ") && !entry.shown().contains('●'));
    let inside = PathBuf::from(format!("/proc/{}/root{state}", light.pid()));
    assert_eq!(fs::read_to_string(inside.join("seen.json")).unwrap(), kept, "what was kept is as it was");
    let mut left: Vec<_> = fs::read_dir(&inside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.retain(|name| name.to_string_lossy().ends_with(".new"));
    assert!(left.is_empty(), "{left:?}");
    session.prompt();
    user.agrees(&panel, &session, "working");
    light.signal(Signal::TERM);
    assert!(light.ended().0.success(), "{}", light.said());
}

/// Every folder of the user and of Copilot is read-only: all is shown, and it is said what cannot be kept.
#[test]
fn a_read_only_home_is_shown_and_left_alone() {
    if !spaces::mounts_can_be_made() {
        return;
    }
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    let mut locks = String::new();
    for folder in [user.scratch.path().to_owned(), sessions.home()] {
        let folder = folder.display();
        locks += &format!("mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && ");
    }
    locks += "true";
    let mut light = user.light_from(spaces::after(&locks, &["-m"], &user.command(Some(&bus), &[])));
    panel.wait_for_icon();
    user.agrees(&panel, &session, "idle");
    light.says("no log is kept");
    // The mounts are the program's alone: Copilot writes on.
    session.prompt();
    user.agrees(&panel, &session, "working");
    session.answer("Done.");
    panel.wait_for("it is unseen", |entry| entry.shown().starts_with("✓ ● "));
    panel.rest();
    let all = panel.wait_for("Mark all as seen", labelled("Mark all as seen"));
    assert!(panel.click(all.id));
    light.says("what you have seen cannot be saved");
    for arguments in [&["status", "--json"][..], &["explain", &session.id]] {
        let output = spaces::after(&locks, &["-m"], &user.command(None, arguments)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(light.runs());
    light.signal(Signal::INT);
    assert!(light.ended().0.success(), "{}", light.said());
    let said = light.said();
    assert!(!said.contains("panicked"), "{said}");
    let lines = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    assert!(lines("Read-only file system") <= 6, "said again and again: {said}");
}
