//! Which Pilotlight a session lets answer: the one that it met before its first tool, the user's own, or one that the
//! user has consented to since in its terminal.

use super::Bridged;
use super::callers::words;
use crate::support::pilotlight::Pilot;
use crate::support::process::{is_live, signal};
use crate::support::terminal::{CONSENT, DIALOG};
use crate::support::{COPILOT, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Settings that a tool can choose, too.
const ANYBODY: &str = "[actions]\nscripts-may-answer = true\n[notifications]\nafter-start = \"1ms\"\n";

/// A tray whose origin nobody can tell: what started it has ended. It is ended when this value is dropped.
struct Stray(u32);

impl Stray {
    fn start(pilot: &Pilot) -> Self {
        let pid_file = pilot.user().join("stray.pid");
        let _ = std::fs::remove_file(&pid_file); // of an earlier one
        let mut command = pilot.command_with_tray(&["tray"]);
        command.env("DBUS_SESSION_BUS_ADDRESS", pilot.bus()).env("PILOTLIGHT_LOG", "debug");
        let line = format!("echo $$ >'{}'; exec {}", pid_file.display(), words(&command));
        let quoted = line.replace('\'', r"'\''");
        let started = format!("setsid -f sh -c '{quoted}' </dev/null >/dev/null 2>&1");
        assert!(Command::new("sh").args(["-c", &started]).status().unwrap().success());
        let pid = || std::fs::read_to_string(&pid_file).ok()?.trim().parse().ok();
        Self(wait_until(COPILOT, "another tray is started", || pilot.log(), pid))
    }
}

impl Drop for Stray {
    fn drop(&mut self) {
        signal(self.0, Signal::TERM);
        wait_until(COPILOT, "the other tray has ended", String::new, || (!is_live(self.0)).then_some(()));
    }
}

impl Bridged {
    /// Makes the session ask for a tool, once `before` requests were made.
    fn ask(&self, before: usize) -> Value {
        self.terminal.enter("SCRIPT:sleep0 Paint the gate");
        let asked = self.terminal.folder.wait_nth("permission.requested", before + 1);
        self.terminal.wait_screen(DIALOG);
        asked
    }

    fn wait_bridge(&self, is: &str) {
        let row = || self.pilot.row_in_tray(&self.id()).filter(|row| row["owner"]["bridge"] == is).map(drop);
        let dump = || format!("{}\n{}", self.pilot.log(), self.terminal.dump());
        wait_until(COPILOT, &format!("the bridge is {is}"), dump, row);
    }
}

/// A tool chooses the settings of what it leaves behind, so these settle nothing.
#[test]
#[ignore = "tests/long.sh"]
fn case_197a_no_setting_lets_what_a_tool_left_behind_approve() {
    let mut bridged = Bridged::consented();
    let settings: PathBuf = bridged.home.project().join("settings.toml");
    std::fs::write(&settings, ANYBODY).unwrap();
    let mut command = bridged.pilot.command_with_tray(&["approve", "--yes", &bridged.id()]);
    command.env("PILOTLIGHT_CONFIG", &settings);
    let command = words(&command);
    bridged.pilot.end_tray();
    let (code, out) = bridged.leave_behind(2, "-i", &command);
    assert_ne!(code, "0", "{out}");
    assert!(out.contains("answer it in its terminal"), "{out}");
}

/// Another tray needs the user's consent in the terminal once more, as long as its origin is not clear. The user's own
/// does not.
#[test]
#[ignore = "tests/long.sh"]
fn case_197a_another_tray_needs_consent_again() {
    let mut bridged = Bridged::consented();
    let id = bridged.id();
    let asked = bridged.ask(1);
    bridged.run_ok(&["approve", "--yes", &id]);
    bridged.terminal.folder.wait_nth("permission.completed", 2);
    bridged.terminal.wait_no_screen(DIALOG);
    bridged.pilot.wait_status(&id, "idle", "");

    // The user's own tray is started again: nothing changes.
    bridged.pilot.restart_tray();
    bridged.pilot.wait_bridges(2, &id);
    bridged.wait_bridge("elevated");

    bridged.pilot.end_tray();
    bridged.pilot.configure(ANYBODY);
    let stray = Stray::start(&bridged.pilot);
    bridged.pilot.wait_bridges(3, &id);
    let again = bridged.ask(2);
    assert_ne!(asked["data"]["requestId"], again["data"]["requestId"]);
    bridged.pilot.wait_status_in_tray(&id, "needs-permission", "");
    bridged.wait_bridge("joined");
    let ran = bridged.pilot.run(&["approve", "--yes", &id]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(bridged.terminal.screen().contains(DIALOG), "{}", bridged.terminal.dump());
    bridged.terminal.approve();
    bridged.terminal.wait_no_screen(DIALOG);
    bridged.pilot.wait_status_in_tray(&id, "idle", "");

    let ran = bridged.pilot.run(&["let-answer", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}\n{}", bridged.pilot.log());
    bridged.terminal.wait_screen(CONSENT);
    bridged.terminal.press(&["1"]);
    bridged.terminal.wait_no_screen(CONSENT);
    bridged.wait_bridge("elevated");
    bridged.ask(4);
    bridged.pilot.wait_status_in_tray(&id, "needs-permission", "");
    bridged.run_ok(&["approve", "--yes", &id]);
    let done = bridged.terminal.folder.wait_nth("permission.completed", 5);
    assert_eq!(done["data"]["result"]["kind"], "approved", "{done}");
    drop(stray);
}

/// Where Copilot remembers the consent, it does not ask again: nothing can tell another tray from the user's.
#[test]
#[ignore = "tests/long.sh"]
fn case_197a_a_remembered_consent_is_not_for_another_tray() {
    let mut bridged = Bridged::prepared(&[], |home, _| home.remember_consent(&home.project()));
    let id = bridged.id();
    bridged.ask(0);
    bridged.wait_bridge("elevated");
    bridged.terminal.approve();
    bridged.terminal.wait_no_screen(DIALOG);
    bridged.pilot.wait_status(&id, "idle", "");
    bridged.pilot.end_tray();
    bridged.pilot.configure(ANYBODY);
    let _stray = Stray::start(&bridged.pilot);
    bridged.pilot.wait_bridges(2, &id);
    bridged.pilot.wait_status_in_tray(&id, "idle", "");
    bridged.wait_bridge("joined");
    let ran = bridged.pilot.run(&["let-answer", &id]);
    assert!(ran.code != Some(0) && ran.err.contains("restart the session"), "{ran:?}\n{}", bridged.pilot.log());
    bridged.wait_bridge("joined");
    bridged.ask(1);
    bridged.pilot.wait_status_in_tray(&id, "needs-permission", "");
    let ran = bridged.pilot.run(&["approve", "--yes", &id]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(bridged.terminal.screen().contains(DIALOG), "{}", bridged.terminal.dump());
}
