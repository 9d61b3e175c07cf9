//! Full disks and read-only homes.

use super::spaces;
use crate::desk::bus::Bus;
use crate::desk::panel::{Entry, Panel};
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use crate::support::synthetic;
use rustix::process::Signal;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;

/// A failure to write the output is reported with its reason and never panics. Without stderr, the exit code reports
/// it.
#[test]
fn output_to_a_full_disk_fails_with_a_reason() {
    let user = synthetic::User::new();
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
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains("No space left"), "{args:?}: {stderr}");
        let output = user.pilotlight(args).stdout(full()).stderr(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
    }
    // Warnings that cannot be printed do not matter.
    fs::create_dir_all(user.scratch.path().join(".config/pilotlight")).unwrap();
    fs::write(user.scratch.path().join(".config/pilotlight/config.toml"), "nonsense = 1\n").unwrap();
    let output = user.pilotlight(&["status"]).stderr(full()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Whether a menu entry's label starts with these words.
fn labelled<'a>(words: &'a str) -> impl Fn(&Entry) -> bool + 'a {
    move |entry| entry.label.starts_with(words)
}

/// The state folder is on a full disk: the tray continues to run, reports what it cannot save, and keeps what was
/// saved.
#[test]
fn a_full_disk_only_prevents_saving_new_state() {
    if !spaces::mounts_can_be_made() {
        return;
    }
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let session = sessions.add("one");
    fs::create_dir_all(user.state()).unwrap();
    let saved = "{\"another/0123456789abcdef\": {\"seen\": \"2026-11-20T18:00:00Z\"}}";
    let state = user.state().display().to_string();
    let fills = format!(
        "mount -t tmpfs -o size=64k none {state} && printf '%s' '{saved}' >{state}/seen.json && \
         touch {state}/welcomed && dd if=/dev/zero of={state}/rest bs=4k status=none"
    );
    let mut tray = user.start_tray_as(spaces::after(&fills, &["-m"], &user.command(Some(&bus), &[])));
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    session.prompt();
    user.wait_status(&panel, &session, "working");
    session.answer("Done.");
    panel.wait_for("it is unseen", |entry| entry.shown().starts_with("✓ ● "));
    let all = panel.wait_for("Mark all as seen", labelled("Mark all as seen"));
    assert!(panel.click(all.id));
    tray.wait_output("what you have seen cannot be saved");
    panel.wait_for("it is seen", |entry| entry.shown().starts_with("✓ ") && !entry.shown().contains('●'));
    let inside = PathBuf::from(format!("/proc/{}/root{state}", tray.pid()));
    assert_eq!(fs::read_to_string(inside.join("seen.json")).unwrap(), saved, "the saved state is unchanged");
    let mut left: Vec<_> = fs::read_dir(&inside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.retain(|name| name.to_string_lossy().ends_with(".new"));
    assert!(left.is_empty(), "{left:?}");
    session.prompt();
    user.wait_status(&panel, &session, "working");
    tray.signal(Signal::TERM);
    assert!(tray.wait_exit().0.success(), "{}", tray.output());
}

/// All folders of the user and of Copilot are read-only: everything is shown, and what cannot be saved is reported.
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
    let mut tray = user.start_tray_as(spaces::after(&locks, &["-m"], &user.command(Some(&bus), &[])));
    panel.wait_for_icon();
    user.wait_status(&panel, &session, "idle");
    tray.wait_output("no log is kept");
    // Only the program sees the mounts: Copilot continues to write.
    session.prompt();
    user.wait_status(&panel, &session, "working");
    session.answer("Done.");
    panel.wait_for("it is unseen", |entry| entry.shown().starts_with("✓ ● "));
    let all = panel.wait_for("Mark all as seen", labelled("Mark all as seen"));
    assert!(panel.click(all.id));
    tray.wait_output("what you have seen cannot be saved");
    for arguments in [&["status", "--json"][..], &["explain", &session.id]] {
        let output = spaces::after(&locks, &["-m"], &user.command(None, arguments)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert!(tray.is_running());
    tray.signal(Signal::INT);
    assert!(tray.wait_exit().0.success(), "{}", tray.output());
    let output = tray.output();
    assert!(!output.contains("panicked"), "{output}");
    let lines = |text: &str| output.lines().filter(|line| line.contains(text)).count();
    assert!(lines("Read-only file system") <= 6, "reported again and again: {output}");
}
