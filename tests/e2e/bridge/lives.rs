//! Sessions, extensions and trays that start and exit: the others reconnect to what is running, and are not affected by
//! what is gone.

use super::{Bridged, extension_in, install, ours};
use crate::support::executable::copy_program;
use crate::support::freeze::freeze;
use crate::support::home::{Folder, Home};
use crate::support::listener::record_hash;
use crate::support::model::Model;
use crate::support::pilotlight::CommandOutput;
use crate::support::process::{is_live, kill, signal};
use crate::support::terminal::{DIALOG, Terminal, Unattended};
use crate::support::{COPILOT, SOON, wait_until};
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};

/// A tray that the test started itself. It is killed when this value is dropped.
pub(super) struct Tray(Child);

impl Tray {
    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Tray {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bridged {
    /// Waits for a session of its terminal other than these.
    pub(super) fn next_session(&self, known: &[String]) -> Folder {
        let terminal = &self.terminal;
        let is_next = |folder: &Folder| !known.contains(&folder.id()) && folder.locks().contains(&terminal.pid());
        let next = || self.home.sessions().into_iter().find(is_next);
        wait_until(COPILOT, "the terminal has another session", || terminal.dump(), next)
    }

    /// Starts this program as the tray after the first one has exited.
    pub(super) fn another_tray(&self, program: &std::path::Path) -> Tray {
        let like = self.pilot.command_with_tray(&["tray"]);
        let mut command = Command::new(program);
        command.env_clear().args(like.get_args()).current_dir(self.pilot.user());
        command.envs(like.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.env("DBUS_SESSION_BUS_ADDRESS", self.pilot.bus()).env("PILOTLIGHT_LOG", "debug");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Tray(command.spawn().unwrap())
    }

    /// Stops the running turn by a command.
    fn stop_turn(&self, aborts: usize) {
        let id = self.id();
        self.pilot.wait_status(&id, "working", "");
        self.run_ok(&["stop", &id]);
        self.terminal.folder.wait_nth("abort", aborts);
    }
}

/// The tray is killed in the middle of a turn, and another one is started. Then the bridge is killed.
#[test]
fn killing_the_tray_or_the_bridge_does_not_affect_the_terminal() {
    let mut bridged = Bridged::new(&[]);
    bridged.terminal.enter("SCRIPT:hang Paint the fence");
    bridged.model.wait_requested("hang", 0);
    signal(bridged.pilot.tray_pid(), Signal::KILL);
    bridged.pilot.end_tray();
    let _tray = bridged.another_tray(env!("CARGO_BIN_EXE_pilotlight").as_ref());
    bridged.pilot.wait_bridges(2, "");
    bridged.stop_turn(1);

    let (id, terminal) = (bridged.id(), &bridged.terminal);
    bridged.pilot.wait_status(&id, "idle", "");
    terminal.enter("SCRIPT:tool Paint the gate");
    terminal.wait_screen(DIALOG);
    bridged.pilot.wait_status(&id, "needs-permission", "");
    kill(terminal.extension());
    let gone = || bridged.pilot.log().contains("a bridge has disconnected").then_some(());
    wait_until(SOON, "the bridge has gone", || bridged.pilot.log(), gone);
    assert!(terminal.screen().contains(DIALOG), "{}", terminal.dump());
    terminal.approve();
    bridged.home.release_tools();
    terminal.folder.wait("tool.execution_complete");
    bridged.pilot.wait_status(&id, "idle", "");
    // An order that needs the bridge is refused, and does not end the session.
    let ran = bridged.pilot.run(&["stop", &id]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(is_live(terminal.pid()));
}

/// The program is updated while sessions run. They have the old bridge, and a tray whose program file was replaced.
#[test]
#[ignore = "tests/long.sh"]
fn the_program_is_updated_while_sessions_run() {
    let mut bridged = Bridged::new(&["--allow-all-tools"]);
    bridged.pilot.end_tray();
    let (program, newer) = (bridged.pilot.user().join("pilotlight"), bridged.pilot.user().join("newer"));
    for copy in [&program, &newer] {
        copy_program(env!("CARGO_BIN_EXE_pilotlight"), copy);
    }
    // Installed by the copy, as by a package: sessions then accept the copy as Pilotlight.
    let like = bridged.pilot.command_with_tray(&["bridge", "install", "--yes"]);
    let mut install = Command::new(&program);
    install.env_clear().args(like.get_args());
    install.envs(like.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let ran = CommandOutput::of(install);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let before = bridged.pilot.bridge_count("");
    let tray = bridged.another_tray(&program);
    let second = Terminal::start(&bridged.home, &bridged.model, &["--allow-all-tools"]);
    bridged.pilot.wait_bridges(1, &second.folder.id());
    std::fs::rename(&newer, &program).unwrap();
    // Sessions obey only the installed file: they are covered once the tray has been started again.
    let third = Terminal::start(&bridged.home, &bridged.model, &["--allow-all-tools"]);
    drop(tray);
    let _tray = bridged.another_tray(&program);
    bridged.pilot.wait_bridges(1, &third.folder.id());
    bridged.pilot.wait_bridges(2, &second.folder.id());
    assert!(bridged.pilot.bridge_count("") > before);
    third.enter("SCRIPT:tool Paint the fence");
    third.folder.wait("tool.execution_start");
    bridged.pilot.wait_status(&third.folder.id(), "working", "");
    bridged.run_ok(&["stop", &third.folder.id()]);
    third.folder.wait("abort");
}

/// The tray is frozen while the terminal continues, then continues itself.
#[test]
#[ignore = "tests/long.sh"]
fn a_frozen_tray_blocks_nothing_and_catches_up_afterwards() {
    let bridged = Bridged::new(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    freeze(bridged.pilot.tray_pid());
    terminal.enter("SCRIPT:form Paint the fence");
    terminal.wait_screen("Which color?");
    terminal.press(&["Enter"]);
    terminal.folder.wait("tool.execution_complete");
    terminal.enter("SCRIPT:tool Paint the gate");
    terminal.approve();
    terminal.folder.wait_nth("tool.execution_start", 2);
    signal(bridged.pilot.tray_pid(), Signal::CONT);
    bridged.stop_turn(1);
    terminal.enter("SCRIPT:form Paint the shed");
    bridged.pilot.wait_status_in_tray(&id, "needs-input", "Which color?");
}

/// The extension's file is changed, then removed. The running extension is not affected.
#[test]
#[ignore = "tests/long.sh"]
fn changing_or_removing_the_file_does_not_affect_a_running_extension() {
    let bridged = Bridged::new(&["--allow-all-tools"]);
    let file = extension_in(bridged.pilot.user()).join("extension.mjs");
    for (nth, change) in (1..).zip([true, false]) {
        if change {
            std::fs::write(&file, "throw new Error('another one')").unwrap();
        } else {
            std::fs::remove_file(&file).unwrap();
        }
        bridged.terminal.enter(&format!("SCRIPT:tool Paint the fence {nth}"));
        bridged.terminal.folder.wait_nth("tool.execution_start", nth);
        bridged.stop_turn(nth);
    }
    // A terminal works without an extension.
    let second = Terminal::start(&bridged.home, &bridged.model, &["--allow-all-tools"]);
    second.enter("SCRIPT:plain Paint the gate");
    second.folder.wait("assistant.turn_end");
}

/// `/clear` ends the session and its extension, `/new` leaves both in the background, and `--continue` resumes the
/// session in another process.
#[test]
#[ignore = "tests/long.sh"]
fn each_session_of_a_terminal_has_its_bridge() {
    let bridged = Bridged::new(&["--allow-all-tools"]);
    let terminal = &bridged.terminal;
    let works_and_is_stopped = |folder: &Folder, with: &Terminal| {
        with.enter("SCRIPT:tool Paint the fence");
        folder.wait("tool.execution_start");
        bridged.pilot.wait_status(&folder.id(), "working", "");
        bridged.run_ok(&["stop", &folder.id()]);
        folder.wait("abort");
    };
    terminal.enter("SCRIPT:plain Paint the door");
    terminal.folder.wait("assistant.turn_end");
    bridged.pilot.wait_status(&bridged.id(), "idle", "");
    terminal.enter("/clear");
    let cleared = bridged.next_session(&[bridged.id()]);
    bridged.pilot.wait_bridges(1, &cleared.id());
    works_and_is_stopped(&cleared, terminal);
    terminal.enter("/new");
    let fresh = bridged.next_session(&[bridged.id(), cleared.id()]);
    bridged.pilot.wait_bridges(1, &fresh.id());
    works_and_is_stopped(&fresh, terminal);
    terminal.exit_of(&fresh);
    let again = Terminal::resume_by(&bridged.home, &bridged.model, &fresh.id(), &["--continue", "--allow-all-tools"]);
    bridged.pilot.wait_bridges(2, &fresh.id());
    again.enter("SCRIPT:tool Paint the shed");
    fresh.wait_nth("tool.execution_start", 2);
    bridged.pilot.wait_status(&fresh.id(), "working", "");
    bridged.run_ok(&["stop", &fresh.id()]);
    fresh.wait_nth("abort", 2);
}

/// Permanent consent also holds in later sessions, without a dialog: after `/clear` and after `/new`.
#[test]
#[ignore = "tests/long.sh"]
fn permanent_consent_holds_after_clear_and_new() {
    let bridged = Bridged::prepared(&[], |home, _| home.remember_consent(&home.project()));
    let terminal = &bridged.terminal;
    terminal.enter("SCRIPT:plain Paint the door");
    terminal.folder.wait("assistant.turn_end");
    let may_answer = |id: &str| {
        let elevated = |row: &serde_json::Value| row["owner"]["bridge"] == "elevated";
        let row = || bridged.pilot.row_in_tray(id).filter(elevated).map(|_| ());
        wait_until(COPILOT, "it may answer there", || format!("{}\n{}", bridged.pilot.log(), terminal.dump()), row);
    };
    may_answer(&bridged.id());
    let mut known = vec![bridged.id()];
    for command in ["/clear", "/new"] {
        terminal.enter(command);
        let next = bridged.next_session(&known);
        bridged.pilot.wait_bridges(1, &next.id());
        terminal.enter("SCRIPT:many1 Paint the fence");
        terminal.wait_screen(DIALOG);
        may_answer(&next.id());
        bridged.pilot.wait_status(&next.id(), "needs-permission", "");
        bridged.run_ok(&["approve", "--yes", &next.id()]);
        let completed = next.wait("permission.completed");
        assert_eq!(completed["data"]["result"]["kind"], "approved", "{completed}");
        next.wait("tool.execution_complete");
        known.push(next.id());
    }
}

/// A file that is not the one that was installed does not run, and that is said. Its terminal is not affected.
#[test]
#[ignore = "tests/long.sh"]
fn case_197b_an_extension_that_was_changed_does_not_run() {
    let bridged = Bridged::new(&[]);
    let file = extension_in(bridged.pilot.user()).join("extension.mjs");
    let started = bridged.pilot.user().join("started");
    let mark = format!("import {{ appendFileSync }} from 'node:fs';\nappendFileSync({started:?}, 'started');\n");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, mark + &whole).unwrap();
    let second = Terminal::start(&bridged.home, &bridged.model, &[]);
    wait_until(COPILOT, "it is started", || second.dump(), || started.exists().then_some(()));
    wait_until(COPILOT, "it exits", || second.dump(), || second.find_extension().is_none().then_some(()));
    second.enter("SCRIPT:plain Paint the fence");
    second.folder.wait("assistant.turn_end");
    second.wait_no_screen("Loading");
    assert_eq!(bridged.pilot.bridge_count(&second.folder.id()), 0, "{}", bridged.pilot.log());
    let status = bridged.run_ok(&["bridge", "status"]).out;
    assert!(status.contains("changed since it was installed, so it does not run"), "{status}");
    // The one that runs goes on.
    bridged.choose_blue();
    bridged.run_ok(&["bridge", "install", "--yes"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    let third = Terminal::start(&bridged.home, &bridged.model, &[]);
    bridged.pilot.wait_bridges(1, &third.folder.id());
}

/// `copilot -p` cannot ask anybody, and starts no bridge.
#[test]
#[ignore = "tests/long.sh"]
fn without_a_person_no_bridge_is_started() {
    let (home, model) = (Home::new("project"), Model::start());
    install(&home, &model);
    Unattended::start(&home, &model, "SCRIPT:seq Paint the fence").wait();
    let folder = home.sessions().remove(0);
    assert!(folder.types().iter().any(|kind| kind == "assistant.turn_end"), "{}", folder.dump());
    assert!(!ours(&home).join("run/pilotlight").exists());
}

/// An extension without its key, or with invalid or incompatible settings, exits. Its terminal is not affected.
#[test]
#[ignore = "tests/long.sh"]
fn an_extension_that_cannot_connect_exits_unnoticed() {
    let (home, model) = (Home::new("project"), Model::start());
    install(&home, &model);
    let folder = extension_in(&ours(&home));
    let (settings, started) = (folder.join("bridge.json"), folder.join("started"));
    let (file, key) = (folder.join("extension.mjs"), ours(&home).join(".local/state/pilotlight/bridge.key"));
    let code = std::fs::read_to_string(&file).unwrap();
    let mark = format!("import {{ appendFileSync }} from 'node:fs';\nappendFileSync({started:?}, 'started');\n");
    std::fs::write(&file, mark + &code).unwrap();
    record_hash(&settings);
    let whole = std::fs::read_to_string(&settings).unwrap();
    let newer = whole.replace("\"v\":2", "\"v\":3");
    assert_ne!(whole, newer);
    for (text, has_key) in [(&*newer, true), ("{", true), (&*whole, false)] {
        std::fs::write(&settings, text).unwrap();
        if !has_key {
            std::fs::remove_file(&key).unwrap();
        }
        let terminal = Terminal::start(&home, &model, &[]);
        wait_until(COPILOT, "it is started", || terminal.dump(), || started.exists().then_some(()));
        let exited = || terminal.find_extension().is_none().then_some(());
        wait_until(COPILOT, "it exits", || terminal.dump(), exited);
        std::fs::remove_file(&started).unwrap();
        terminal.enter("SCRIPT:plain Paint the fence");
        terminal.folder.wait("assistant.turn_end");
        terminal.wait_no_screen("Loading");
    }
}

/// `/new` leaves the previous session in the background, where it continues to work and asks. It is answered and
/// stopped there, without any effect on the one in the foreground.
#[test]
#[ignore = "tests/long.sh"]
fn a_background_session_is_answered_and_stopped_there() {
    let bridged = Bridged::consented();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    let (hold, silent) = (bridged.model.hold("many", 0), bridged.model.hold("many", 1));
    terminal.enter("SCRIPT:many1 Paint the fence");
    bridged.model.wait_requested("many", 0);
    terminal.enter("/new");
    let front = bridged.next_session(std::slice::from_ref(&id));
    bridged.pilot.wait_bridges(1, &front.id());
    terminal.enter("SCRIPT:form Paint the gate");
    bridged.pilot.wait_status_in_tray(&front.id(), "needs-input", "Which color?");
    // The session in the background asks, without a dialog in the foreground.
    hold.release();
    terminal.folder.wait_nth("permission.requested", 2);
    bridged.pilot.wait_status(&id, "needs-permission", "");
    bridged.run_ok(&["approve", "--yes", &id]);
    let completed = terminal.folder.wait_nth("permission.completed", 2);
    assert_eq!(completed["data"]["result"]["kind"], "approved", "{completed}");
    bridged.model.wait_requested("many", 1);
    bridged.pilot.wait_status(&id, "working", "");
    bridged.run_ok(&["stop", &id]);
    terminal.folder.wait("abort");
    silent.release();
    bridged.pilot.wait_status(&id, "idle", "");
    bridged.pilot.wait_status_in_tray(&front.id(), "needs-input", "Which color?");
    bridged.pilot.click(&front.id(), "Answer “blue”");
    let answered = front.wait("tool.execution_complete");
    assert!(answered.to_string().contains("blue"), "{answered}");
}
