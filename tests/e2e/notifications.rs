//! Buttons that act: what is clicked on a popup is done to the session of the real CLI that it is about.

use super::stage::Stage;
use crate::support::desktop::popups::{Popup, Popups};
use crate::support::executable::executable;
use crate::support::home::Folder;
use crate::support::person::Manner;
use crate::support::pilotlight::Ran;
use crate::support::script::{STORY, UNTIL_GO};
use crate::support::{SOON, wait_until};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Nothing is held back after the start: a test does not wait for what is not its matter.
const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\n";

/// The kind of each answer to a permission request, in order.
fn answers(folder: &Folder) -> Vec<String> {
    let of = |event: &Value| event["data"]["result"]["kind"].as_str().unwrap_or_default().to_owned();
    folder.events().iter().filter(|event| event["type"] == "permission.completed").map(of).collect()
}

/// The first popup, on a session that asks for a permission.
fn asked(stage: &Stage, popups: &Popups) -> Popup {
    stage.told("idle", "");
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    let popup = popups.wait_for(1);
    assert!(popup.title == "project wants to run", "{popup:#?}");
    assert!(popup.body.starts_with("for i in $(seq 600); do [ -e go ] &amp;&amp; break;"), "{popup:#?}");
    let actions = ["approve", "Approve once", "deny", "Deny", "default", "Open", "mute", "Mute"];
    assert_eq!(popup.actions, actions, "{popup:#?}");
    assert_eq!(popup.lasts, 0, "it waits for the answer");
    popup
}

#[test]
fn approve_on_a_popup_allows_the_request_that_it_shows() {
    let stage = Stage::set_configured(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = asked(&stage, &popups);
    popups.click_read(popup.number, "approve");
    stage.session.folder.wait("permission.completed");
    stage.told("working", "");
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    assert_eq!(popups.wait_for(2).title, "project: done");
    assert_eq!(popups.taken().len(), 2, "{:#?}", popups.taken());
    popups.wait_for_closed(&[popup.number]);
    let log = stage.pilot.log();
    assert!(!log.contains("seq 600") && !log.contains("Paint"), "no content in the log: {log}");
}

#[test]
fn deny_on_a_popup_refuses_the_request_that_it_shows() {
    let stage = Stage::set_configured(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = asked(&stage, &popups);
    popups.click_read(popup.number, "deny");
    stage.session.folder.wait("tool.execution_complete");
    assert_eq!(answers(&stage.session.folder), ["denied-interactively-by-user"]);
    stage.told("idle", "");
}

/// Somebody else answers: the popup goes, and a click that was on its way answers nothing.
#[test]
fn a_popup_goes_when_somebody_else_answers() {
    let stage = Stage::set_configured(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = asked(&stage, &popups);
    stage.person.now(Manner::Approves);
    popups.wait_for_closed(&[popup.number]);
    popups.click(popup.number, "deny");
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    assert_eq!(popups.taken().len(), 1, "{:#?}", popups.taken());
}

#[test]
fn stop_on_a_popup_stops_a_stuck_turn() {
    let limits = "[limits]\nfresh-quiet = \"2s\"\nfresh-stuck = \"4s\"\n";
    let stage = Stage::set_configured(Manner::Approves, &format!("{limits}{AT_ONCE}"));
    let popups = stage.pilot.popups();
    stage.told("idle", "");
    stage.session.send("SCRIPT:hang Paint the fence");
    let popup = popups.wait_for(1);
    assert!(popup.title == "project is stuck", "{popup:#?}");
    assert_eq!(popup.actions[..4], ["reconnect", "Reconnect", "stop", "Stop"], "{popup:#?}");
    popups.click(popup.number, "stop");
    stage.told("idle", "stopped");
    popups.wait_for_closed(&[popup.number]);
}

#[test]
fn reconnect_on_a_popup_brings_permissions_back() {
    let stage = Stage::without_person_configured(AT_ONCE);
    let popups = stage.pilot.popups();
    stage.told("idle", "");
    stage.session.send("SCRIPT:denied3 Paint the fence");
    let popup = popups.wait_for(1);
    assert!(popup.title == "project lost its permissions", "{popup:#?}");
    let buttons = ["continue", "Reconnect and continue", "reconnect", "Reconnect only"];
    assert_eq!(popup.actions[..4], buttons, "{popup:#?}");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    popups.click(popup.number, "reconnect");
    stage.pilot.menu_says(&stage.session.id(), "Pilotlight: attached to its server");
    assert_eq!(popups.wait_for(2).title, "project: done");
    stage.told("needs-input", "its last prompt was not carried out");
}

/// On the display and the bus of a desktop that `tests/visible/popup.sh` has put up: what is asked is read, and approved with
/// the mouse, while the live table beside it tells of that. What is asked next is denied. The script knows where the desktop has
/// its buttons.
#[test]
#[ignore = "wants a display: tests/visible/popup.sh"]
fn approve_and_deny_are_clicked_with_the_mouse() {
    let Some(display) = Display::named() else { return };
    let stage = Stage::in_project("billing-api", Manner::Waits, AT_ONCE);
    let deploy = stage.home.project().join("deploy.sh");
    executable(&deploy, &format!("#!/bin/sh\n{UNTIL_GO}\n"));
    let _table = Table::open(&stage);
    stage.told("idle", "");
    stage.session.send(STORY);
    stage.session.folder.wait("permission.requested");
    display.aim("approve");
    assert_eq!(answers(&stage.session.folder), [""; 0]);
    display.press();
    stage.session.folder.wait("permission.completed");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    stage.told("working", "");
    display.is_gone();
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait_nth("permission.requested", 2);
    display.aim("deny");
    display.press();
    stage.session.folder.wait_nth("permission.completed", 2);
    assert_eq!(answers(&stage.session.folder), ["approved", "denied-interactively-by-user"]);
}

/// What the script has put up, and its mouse.
struct Display {
    pictures: OsString,
    script: OsString,
}

impl Display {
    /// The one that the environment names.
    fn named() -> Option<Self> {
        let script = std::env::var_os("PILOTLIGHT_TEST_DISPLAY_SCRIPT")?;
        Some(Self { pictures: std::env::var_os("PILOTLIGHT_TEST_PICTURES")?, script })
    }

    fn ran(program: &str, args: &[&str]) -> Ran {
        let mut command = Command::new(program);
        command.args(args);
        Ran::of(command)
    }

    fn picture(&self, name: &str) {
        let mut import = Command::new("import");
        import.args(["-window", "root"]).arg(Path::new(&self.pictures).join(name));
        assert_eq!(Ran::of(import).code, Some(0));
    }

    /// Where the button is, if a popup is shown.
    fn button(&self, name: &str) -> Option<String> {
        let mut command = Command::new("bash");
        command.arg(&self.script).args(["--button", name]);
        let found = Ran::of(command);
        (found.code == Some(0)).then_some(found.out)
    }

    /// Waits for the popup, and rests on its button.
    fn aim(&self, name: &str) {
        wait_until(SOON, "the popup is on the display", String::new, || self.button(name));
        #[expect(clippy::disallowed_methods, reason = "a popup fades in, and nothing tells when it has")]
        std::thread::sleep(Duration::from_secs(2));
        self.picture(&format!("popup-{name}.png"));
        let place = self.button(name).unwrap();
        let place: Vec<&str> = place.split_whitespace().collect();
        Self::ran("xdotool", &["mousemove", place[0], place[1]]);
        #[expect(clippy::disallowed_methods, reason = "the button lights up, and nothing tells when it has")]
        std::thread::sleep(Duration::from_millis(500));
        self.picture(&format!("popup-{name}-pressed.png"));
    }

    fn press(&self) {
        Self::ran("xdotool", &["click", "1"]);
        // A server keeps what the pointer rests on.
        Self::ran("xdotool", &["mousemove", "5", "300"]);
    }

    fn is_gone(&self) {
        wait_until(SOON, "the popup is gone", String::new, || self.button("approve").is_none().then_some(()));
        #[expect(clippy::disallowed_methods, reason = "the table on the display draws when its terminal does")]
        std::thread::sleep(Duration::from_secs(1));
        self.picture("popup-gone.png");
    }
}

/// The live table in a window, ended with the test.
struct Table(Child);

impl Table {
    fn open(stage: &Stage) -> Self {
        let live = stage.pilot.command(&["live"]);
        let mut xterm = Command::new("xterm");
        xterm.args(["-fa", "DejaVu Sans Mono", "-fs", "11", "-geometry", "96x8+14+196", "-title", "pilotlight live"]);
        xterm.args(["-bg", "#2e3440", "-fg", "#e5e9f0", "-xrm", "*color3: #ebcb8b", "-xrm", "*color6: #88c0d0", "-e"]);
        xterm.arg("env");
        for (name, value) in live.get_envs() {
            let mut pair = name.to_owned();
            pair.push("=");
            pair.push(value.unwrap_or_default());
            xterm.arg(pair);
        }
        xterm.arg(live.get_program()).args(live.get_args()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(xterm.spawn().unwrap())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
