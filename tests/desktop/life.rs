//! Start and exit: one tray at a time, and an exit within a second.

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray::User;
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn it_exits_cleanly_on_every_termination_signal() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (bus, sessions) = (Bus::start(), Sessions::new());
        let (user, panel) = (User::new(&sessions), Panel::start(&bus));
        let mut tray = user.start_tray(&bus);
        panel.wait_for_icon();
        tray.signal(signal);
        let (status, took) = tray.wait_exit();
        assert!(status.success() && took < Duration::from_secs(1), "{signal:?}: {status} after {took:?}");
        assert!(!user.scratch.path().join("run/pilotlight/pilotlight.pid").exists(), "its note is removed");
    }
}

#[test]
fn case_107_a_second_start_says_where_the_first_is() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let mut tray = user.start_tray(&bus);
    panel.wait_for_icon();
    let note =
        || std::fs::read_to_string(user.scratch.path().join("run/pilotlight/pilotlight.pid")).unwrap_or_default();
    crate::support::wait_until(crate::support::SOON, "it writes where it is", note, || {
        note().contains("in the panel").then_some(())
    });
    for arguments in [&[][..], &["tray"]] {
        let second = user.command(Some(&bus), arguments).output().unwrap();
        let stdout = String::from_utf8_lossy(&second.stdout).into_owned();
        assert!(second.status.success(), "{second:?}");
        assert!(
            stdout.contains(&format!("already running: process {}, its icon is in the panel", tray.pid())),
            "{stdout}"
        );
        assert_eq!(stdout.lines().count(), 1);
    }
    assert_eq!(panel.registered(), 1);
    // A killed tray leaves nothing that prevents the next start.
    tray.signal(Signal::KILL);
    tray.wait_exit();
    let _next = user.start_tray(&bus);
    crate::support::wait_until(crate::support::SOON, "the next one registers", String::new, || {
        (panel.registered() == 2).then_some(())
    });
}

#[test]
fn help_and_version_never_start_the_tray() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    for arguments in [&["--help"][..], &["--version"], &["-V"], &["help"], &["tray", "--help"], &["--nonsense"]] {
        let output = user.command(Some(&bus), arguments).output().unwrap();
        assert_eq!(output.status.success(), arguments != ["--nonsense"], "{arguments:?}: {output:?}");
    }
    assert_eq!(panel.registered(), 0);
    assert!(!user.state().exists(), "they leave no files");
}

/// `blocking` 1.7.0 wakes up twice a second forever and brings a second runtime. A second zbus would be a second stack.
#[test]
fn the_dependencies_of_the_bus_are_as_expected() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).unwrap();
    let versions = |name: &str| -> Vec<String> {
        let head = format!("name = \"{name}\"\nversion = \"");
        lock.split(&head).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    assert!(versions("blocking").is_empty(), "something turned on zbus's own runtime: see Cargo.toml on zbus");
    assert_eq!(versions("notify-rust"), ["4.18.2"]);
    let zbus = versions("zbus");
    assert!(zbus.len() == 1 && zbus[0].starts_with("5."), "{zbus:?}");
}
