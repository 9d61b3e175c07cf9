//! Buttons of popups: a click acts on the popup's session of the real CLI.

use super::stage::Stage;
use crate::support::desktop::popups::{Popup, Popups};
use crate::support::executable::executable;
use crate::support::home::Folder;
use crate::support::person::Manner;
use crate::support::pilotlight::CommandOutput;
use crate::support::script::{STORY, UNTIL_GO};
use crate::support::{SOON, wait_until};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Popups are not delayed after the start, so that the tests need not wait.
const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\n";

/// The kind of each answer to a permission request, in order.
fn answers(folder: &Folder) -> Vec<String> {
    let of = |event: &Value| event["data"]["result"]["kind"].as_str().unwrap_or_default().to_owned();
    folder.events().iter().filter(|event| event["type"] == "permission.completed").map(of).collect()
}

/// Makes the session request a permission, and returns the first popup.
fn request_popup(stage: &Stage, popups: &Popups) -> Popup {
    stage.wait_status("idle", "");
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    let popup = popups.wait_for(1);
    assert!(popup.title == "project wants to run", "{popup:#?}");
    assert!(popup.body.starts_with("for i in $(seq 600); do [ -e go ] &amp;&amp; break;"), "{popup:#?}");
    let actions = ["approve", "Approve once", "deny", "Deny", "default", "Open", "mute", "Mute"];
    assert_eq!(popup.actions, actions, "{popup:#?}");
    assert_eq!(popup.lasts, 0, "it stays until it is answered");
    popup
}

#[test]
fn approve_on_a_popup_approves_the_shown_request() {
    let stage = Stage::with_config(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = request_popup(&stage, &popups);
    popups.click_after_reading(popup.number, "approve");
    stage.session.folder.wait("permission.completed");
    stage.wait_status("working", "");
    stage.home.release_tools();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    assert_eq!(popups.wait_for(2).title, "project: approved 1 request");
    assert_eq!(popups.received().len(), 2, "{:#?}", popups.received());
    popups.wait_for_closed(&[popup.number]);
    let log = stage.pilot.log();
    assert!(!log.contains("seq 600") && !log.contains("Paint"), "no content in the log: {log}");
}

#[test]
#[ignore = "tests/long.sh"]
fn deny_on_a_popup_denies_the_shown_request() {
    let stage = Stage::with_config(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = request_popup(&stage, &popups);
    popups.click_after_reading(popup.number, "deny");
    stage.session.folder.wait("tool.execution_complete");
    assert_eq!(answers(&stage.session.folder), ["denied-interactively-by-user"]);
    stage.wait_status("idle", "");
}

/// Somebody else answers: the popup is closed, and a late click answers nothing.
#[test]
#[ignore = "tests/long.sh"]
fn a_popup_is_closed_when_somebody_else_answers() {
    let stage = Stage::with_config(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = request_popup(&stage, &popups);
    stage.person.set_manner(Manner::Approves);
    popups.wait_for_closed(&[popup.number]);
    popups.click(popup.number, "deny");
    stage.home.release_tools();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    assert_eq!(popups.received().len(), 1, "{:#?}", popups.received());
}

#[test]
fn stop_on_a_popup_stops_a_stuck_turn() {
    let limits =
        "[limits]\nfresh-quiet = \"2s\"\nfresh-stuck = \"4s\"\nthinking-quiet = \"2s\"\nthinking-stuck = \"4s\"\n";
    let stage = Stage::with_config(Manner::Approves, &format!("{limits}{AT_ONCE}"));
    let popups = stage.pilot.popups();
    stage.wait_status("idle", "");
    stage.session.send("SCRIPT:hang Paint the fence");
    let popup = popups.wait_for(1);
    assert!(popup.title == "project is stuck", "{popup:#?}");
    assert_eq!(popup.actions[..4], ["reconnect", "Reconnect", "stop", "Stop"], "{popup:#?}");
    popups.click(popup.number, "stop");
    stage.wait_status("idle", "stopped");
    popups.wait_for_closed(&[popup.number]);
}

#[test]
#[ignore = "tests/long.sh"]
fn reconnect_on_a_popup_restores_permissions() {
    let stage = Stage::without_person_configured(AT_ONCE);
    let popups = stage.pilot.popups();
    stage.wait_status("idle", "");
    stage.session.send("SCRIPT:denied3 Paint the fence");
    let popup = popups.wait_for(1);
    assert!(popup.title == "project lost its permissions", "{popup:#?}");
    let buttons = ["continue", "Reconnect and continue", "reconnect", "Reconnect only"];
    assert_eq!(popup.actions[..4], buttons, "{popup:#?}");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    popups.click(popup.number, "reconnect");
    stage.pilot.wait_menu(&stage.session.id(), "Pilotlight: attached to its server");
    assert_eq!(popups.wait_for(2).title, "project: reconnected");
    stage.wait_status("needs-input", "its last prompt was not carried out");
}

/// On the display and bus of a desktop that `tests/visible/popup.sh` has started: the first request is approved with
/// the mouse, while the live table next to the popup shows the session, and the second is denied. The script knows
/// where the desktop draws the buttons.
#[test]
#[ignore = "needs a display: tests/visible/popup.sh"]
fn approve_and_deny_can_be_clicked_with_the_mouse() {
    let Some(display) = Display::from_environment() else { return };
    let stage = Stage::in_project("billing-api", Manner::Waits, AT_ONCE);
    let deploy = stage.home.project().join("deploy.sh");
    executable(&deploy, &format!("#!/bin/sh\n{UNTIL_GO}\n"));
    let _table = Window::live(&stage);
    stage.wait_status("idle", "");
    stage.session.send(STORY);
    stage.session.folder.wait("permission.requested");
    display.point_at("approve");
    assert_eq!(answers(&stage.session.folder), [""; 0]);
    display.press();
    stage.session.folder.wait("permission.completed");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    stage.wait_status("working", "");
    display.wait_gone();
    stage.home.release_tools();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait_nth("permission.requested", 2);
    display.point_at("deny");
    display.press();
    stage.session.folder.wait_nth("permission.completed", 2);
    assert_eq!(answers(&stage.session.folder), ["approved", "denied-interactively-by-user"]);
}

/// On the same display: somebody types into a terminal that has the focus, with spaces and Returns, while requests pop
/// up. GNOME's shell focuses the first button of a popup that it shows.
#[test]
#[ignore = "needs a display: tests/visible/popup.sh"]
fn case_220_typing_while_requests_pop_up_answers_none() {
    const ROUNDS: usize = 3;
    let Some(display) = Display::from_environment() else { return };
    let stage = Stage::in_project("billing-api", Manner::Waits, AT_ONCE);
    let typed = stage.home.project().join("typed");
    let mut into_file = Command::new("sh");
    into_file.args(["-c", "exec cat >>\"$1\"", "sh"]).arg(&typed);
    let _terminal = Window::of_command("terminal", &into_file);
    for round in 1..=ROUNDS {
        stage.wait_status("idle", "");
        display.type_lines(5, None);
        let before = std::fs::read_to_string(&typed).unwrap().lines().count();
        stage.session.send("SCRIPT:tool Paint the fence");
        stage.session.folder.wait_nth("permission.requested", round);
        display.type_lines(60, Some(&format!("popup-typed-{round}.png")));
        assert_eq!(answers(&stage.session.folder).len(), round - 1, "round {round}");
        let reached = std::fs::read_to_string(&typed).unwrap().lines().count() - before;
        eprintln!("round {round}: {reached} of 60 lines reached the terminal, and nothing was answered");
        stage.person.set_manner(Manner::Approves);
        stage.home.release_tools();
        stage.session.folder.wait_nth("permission.completed", round);
        stage.person.set_manner(Manner::Waits);
    }
}

/// The script's display and mouse.
struct Display {
    pictures: OsString,
    script: OsString,
}

impl Display {
    /// The display that the environment names.
    fn from_environment() -> Option<Self> {
        let script = std::env::var_os("PILOTLIGHT_TEST_DISPLAY_SCRIPT")?;
        Some(Self { pictures: std::env::var_os("PILOTLIGHT_TEST_PICTURES")?, script })
    }

    fn run(program: &str, args: &[&str]) -> CommandOutput {
        let mut command = Command::new(program);
        command.args(args);
        CommandOutput::of(command)
    }

    fn picture(&self, name: &str) {
        let mut import = Command::new("import");
        import.args(["-window", "root"]).arg(Path::new(&self.pictures).join(name));
        assert_eq!(CommandOutput::of(import).code, Some(0));
    }

    /// The position of a button, if a popup is shown.
    fn button(&self, name: &str) -> Option<String> {
        let mut command = Command::new("bash");
        command.arg(&self.script).args(["--button", name]);
        let found = CommandOutput::of(command);
        (found.code == Some(0)).then_some(found.out)
    }

    /// Waits for the popup, and moves the pointer to its button.
    fn point_at(&self, name: &str) {
        wait_until(SOON, "the popup is on the display", String::new, || self.button(name));
        #[expect(clippy::disallowed_methods, reason = "a popup fades in, and no signal reports the end of that")]
        std::thread::sleep(Duration::from_secs(2));
        self.picture(&format!("popup-{name}.png"));
        let place = self.button(name).unwrap();
        let place: Vec<&str> = place.split_whitespace().collect();
        Self::run("xdotool", &["mousemove", place[0], place[1]]);
        #[expect(clippy::disallowed_methods, reason = "the button lights up, and no signal reports the end of that")]
        std::thread::sleep(Duration::from_millis(500));
        self.picture(&format!("popup-{name}-pressed.png"));
    }

    /// Types so many lines into the terminal in the lower half of the display, after a click on it, and takes a picture in
    /// the middle.
    fn type_lines(&self, lines: usize, picture: Option<&str>) {
        Self::run("xdotool", &["mousemove", "300", "270", "click", "1"]);
        for line in 0..lines {
            Self::run("xdotool", &["type", "--delay", "25", "make all\n"]);
            if let Some(name) = picture.filter(|_| line == lines / 2) {
                self.picture(name);
            }
        }
    }

    fn press(&self) {
        Self::run("xdotool", &["click", "1"]);
        // A server keeps a popup that the pointer is on.
        Self::run("xdotool", &["mousemove", "5", "300"]);
    }

    fn wait_gone(&self) {
        wait_until(SOON, "the popup is gone", String::new, || self.button("approve").is_none().then_some(()));
        #[expect(clippy::disallowed_methods, reason = "the table on the display draws when its terminal does")]
        std::thread::sleep(Duration::from_secs(1));
        self.picture("popup-gone.png");
    }
}

/// A program in a terminal window, in the lower half of the display. It ends with the test.
struct Window(Child);

impl Window {
    /// The live table.
    fn live(stage: &Stage) -> Self {
        Self::of_command("pilotlight live", &stage.pilot.command(&["live"]))
    }

    fn of_command(title: &str, command: &Command) -> Self {
        let mut xterm = Command::new("xterm");
        xterm.args(["-fa", "DejaVu Sans Mono", "-fs", "11", "-geometry", "96x8+14+196", "-title", title]);
        xterm.args(["-bg", "#2e3440", "-fg", "#e5e9f0", "-xrm", "*color3: #ebcb8b", "-xrm", "*color6: #88c0d0", "-e"]);
        xterm.arg("env");
        for (name, value) in command.get_envs() {
            let mut pair = name.to_owned();
            pair.push("=");
            pair.push(value.unwrap_or_default());
            xterm.arg(pair);
        }
        xterm.arg(command.get_program()).args(command.get_args()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(xterm.spawn().unwrap())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
