//! Its beginning and its end: one light at a time, and gone in under a second.

use crate::desk::bus::Bus;
use crate::desk::light::User;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn it_ends_cleanly_on_every_signal_that_means_an_end() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let (bus, sessions) = (Bus::start(), Sessions::new());
        let (user, panel) = (User::new(&sessions), Panel::start(&bus));
        let mut light = user.light(&bus);
        panel.wait_for_icon();
        light.signal(signal);
        let (status, took) = light.ended();
        assert!(status.success() && took < Duration::from_secs(1), "{signal:?}: {status} after {took:?}");
        assert!(!user.scratch.path().join("run/pilotlight/pilotlight.pid").exists(), "its note is gone with it");
    }
}

/// Case 107.
#[test]
fn case_107_a_second_start_says_where_the_first_is() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    let mut light = user.light(&bus);
    panel.wait_for_icon();
    let note =
        || std::fs::read_to_string(user.scratch.path().join("run/pilotlight/pilotlight.pid")).unwrap_or_default();
    crate::support::wait_until(crate::support::SOON, "it notes where it is", note, || {
        note().contains("in the panel").then_some(())
    });
    for arguments in [&[][..], &["tray"]] {
        let second = user.command(Some(&bus), arguments).output().unwrap();
        let said = String::from_utf8_lossy(&second.stdout).into_owned();
        assert!(second.status.success(), "{second:?}");
        assert!(
            said.contains(&format!("already running: process {}, its icon is in the panel", light.pid())),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1);
    }
    assert_eq!(panel.registered(), 1);
    // Killed without a word it leaves nothing behind that would keep the next one out.
    light.signal(Signal::KILL);
    light.ended();
    let _next = user.light(&bus);
    crate::support::wait_until(crate::support::SOON, "the next one registers", String::new, || {
        (panel.registered() == 2).then_some(())
    });
}

#[test]
fn help_and_version_never_start_it() {
    let (bus, sessions) = (Bus::start(), Sessions::new());
    let (user, panel) = (User::new(&sessions), Panel::start(&bus));
    for arguments in [&["--help"][..], &["--version"], &["-V"], &["help"], &["tray", "--help"], &["--nonsense"]] {
        let output = user.command(Some(&bus), arguments).output().unwrap();
        assert_eq!(output.status.success(), arguments != ["--nonsense"], "{arguments:?}: {output:?}");
    }
    assert_eq!(panel.registered(), 0);
    assert!(!user.state().exists(), "nor leave anything");
}

/// `blocking` 1.7.0 wakes twice a second for ever, and comes with a second runtime; a second zbus would be a second stack.
#[test]
fn what_the_bus_brings_with_it_is_held() {
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
