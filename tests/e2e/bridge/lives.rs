//! Sessions, extensions and trays that come and go: whoever is there is taken up again, and whoever has gone is missed by nobody.

use super::{Bridged, extension_in, installed, ours};
use crate::support::freeze::freeze;
use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::pilotlight::Ran;
use crate::support::process::{is_live, kill, signal};
use crate::support::terminal::{DIALOG, Terminal, Unattended};
use crate::support::{COPILOT, SOON, wait_until};
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};

/// A tray that the test started by itself. It ends with this value.
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
    /// The session that its terminal has beside these.
    pub(super) fn next_session(&self, known: &[String]) -> Folder {
        let terminal = &self.terminal;
        let is_next = |folder: &Folder| !known.contains(&folder.id()) && folder.locks().contains(&terminal.pid());
        let next = || self.home.sessions().into_iter().find(is_next);
        wait_until(COPILOT, "the terminal has another session", || terminal.dump(), next)
    }

    /// Starts another tray in the place of the one that has gone, by this program.
    pub(super) fn another_tray(&self, program: &std::path::Path) -> Tray {
        let like = self.pilot.command_beside(&["tray"]);
        let mut command = Command::new(program);
        command.env_clear().args(like.get_args()).current_dir(self.pilot.user());
        command.envs(like.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.env("DBUS_SESSION_BUS_ADDRESS", self.pilot.bus()).env("PILOTLIGHT_LOG", "debug");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Tray(command.spawn().unwrap())
    }

    /// The turn that runs is stopped by a command.
    fn stops(&self, aborts: usize) {
        let id = self.id();
        self.pilot.told(&id, "working", "");
        self.done(&["stop", &id]);
        self.terminal.folder.wait_nth("abort", aborts);
    }
}

#[test]
fn the_bridge_is_killed_and_nothing_in_the_terminal_changes() {
    let bridged = Bridged::set(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.wait_screen(DIALOG);
    bridged.pilot.told(&id, "needs-permission", "");
    kill(bridged.terminal.extension());
    let gone = || bridged.pilot.log().contains("a bridge has gone").then_some(());
    wait_until(SOON, "the bridge has gone", || bridged.pilot.log(), gone);
    assert!(terminal.screen().contains(DIALOG), "{}", terminal.dump());
    terminal.approve();
    bridged.home.go();
    terminal.folder.wait("tool.execution_complete");
    bridged.pilot.told(&id, "idle", "");
    // What would want it is refused, and ends nobody's session.
    let ran = bridged.pilot.run(&["stop", &id]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(is_live(terminal.pid()));
}

/// The tray is killed in the middle of a turn, then another one is there.
#[test]
fn the_tray_is_killed_and_the_next_one_has_the_bridge() {
    let mut bridged = Bridged::set(&["--allow-all-tools"]);
    bridged.terminal.enter("SCRIPT:tool Paint the fence");
    bridged.terminal.folder.wait("tool.execution_start");
    signal(bridged.pilot.tray(), Signal::KILL);
    bridged.pilot.end_tray();
    let _tray = bridged.another_tray(env!("CARGO_BIN_EXE_pilotlight").as_ref());
    bridged.pilot.has_bridges(2, "");
    bridged.stops(1);
}

/// It is updated while sessions run: they have the bridge of before, and a tray whose file is another one by now.
#[test]
#[ignore = "tests/long.sh"]
fn the_tray_is_updated_in_the_middle() {
    let mut bridged = Bridged::set(&["--allow-all-tools"]);
    bridged.pilot.end_tray();
    let (program, newer) = (bridged.pilot.user().join("pilotlight"), bridged.pilot.user().join("newer"));
    for copy in [&program, &newer] {
        std::fs::copy(env!("CARGO_BIN_EXE_pilotlight"), copy).unwrap();
    }
    // Installed by the copy, as by a package: from then on sessions take that one for Pilotlight.
    let like = bridged.pilot.command_beside(&["bridge", "install", "--yes"]);
    let mut install = Command::new(&program);
    install.env_clear().args(like.get_args());
    install.envs(like.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let ran = Ran::of(install);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let before = bridged.pilot.bridges("");
    let tray = bridged.another_tray(&program);
    let second = Terminal::start(&bridged.home, &bridged.model, &["--allow-all-tools"]);
    bridged.pilot.has_bridges(1, &second.folder.id());
    std::fs::rename(&newer, &program).unwrap();
    // The tray of before goes on with whoever comes.
    let third = Terminal::start(&bridged.home, &bridged.model, &["--allow-all-tools"]);
    bridged.pilot.has_bridges(1, &third.folder.id());
    drop(tray);
    let _tray = bridged.another_tray(&program);
    bridged.pilot.has_bridges(2, &third.folder.id());
    assert!(bridged.pilot.bridges("") > before);
    third.enter("SCRIPT:tool Paint the fence");
    third.folder.wait("tool.execution_start");
    bridged.pilot.told(&third.folder.id(), "working", "");
    bridged.done(&["stop", &third.folder.id()]);
    third.folder.wait("abort");
}

/// The tray stands still while the terminal goes on, then goes on itself.
#[test]
#[ignore = "tests/long.sh"]
fn a_frozen_tray_holds_nobody_up_and_knows_all_when_it_goes_on() {
    let bridged = Bridged::set(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    freeze(bridged.pilot.tray());
    terminal.enter("SCRIPT:form Paint the fence");
    terminal.wait_screen("Which color?");
    terminal.press(&["Enter"]);
    terminal.folder.wait("tool.execution_complete");
    terminal.enter("SCRIPT:tool Paint the gate");
    terminal.approve();
    terminal.folder.wait_nth("tool.execution_start", 2);
    signal(bridged.pilot.tray(), Signal::CONT);
    bridged.stops(1);
    terminal.enter("SCRIPT:form Paint the shed");
    bridged.pilot.told_beside(&id, "needs-input", "Which color?");
}

/// The extension's file is changed, then removed: what runs goes on as it is.
#[test]
#[ignore = "tests/long.sh"]
fn a_file_that_is_changed_or_removed_changes_nothing_that_runs() {
    let bridged = Bridged::set(&["--allow-all-tools"]);
    let file = extension_in(bridged.pilot.user()).join("extension.mjs");
    for (nth, change) in (1..).zip([true, false]) {
        if change {
            std::fs::write(&file, "throw new Error('another one')").unwrap();
        } else {
            std::fs::remove_file(&file).unwrap();
        }
        bridged.terminal.enter(&format!("SCRIPT:tool Paint the fence {nth}"));
        bridged.terminal.folder.wait_nth("tool.execution_start", nth);
        bridged.stops(nth);
    }
    // One that does not even start is missed by nobody.
    let second = Terminal::start(&bridged.home, &bridged.model, &["--allow-all-tools"]);
    second.enter("SCRIPT:plain Paint the gate");
    second.folder.wait("assistant.turn_end");
}

/// `/clear` ends the session and its extension, `/new` leaves both in the background, `--continue` takes the session up in another process.
#[test]
#[ignore = "tests/long.sh"]
fn each_session_of_a_terminal_has_its_bridge() {
    let bridged = Bridged::set(&["--allow-all-tools"]);
    let terminal = &bridged.terminal;
    let works_and_is_stopped = |folder: &Folder, with: &Terminal| {
        with.enter("SCRIPT:tool Paint the fence");
        folder.wait("tool.execution_start");
        bridged.pilot.told(&folder.id(), "working", "");
        bridged.done(&["stop", &folder.id()]);
        folder.wait("abort");
    };
    terminal.enter("SCRIPT:plain Paint the door");
    terminal.folder.wait("assistant.turn_end");
    bridged.pilot.told(&bridged.id(), "idle", "");
    terminal.enter("/clear");
    let cleared = bridged.next_session(&[bridged.id()]);
    bridged.pilot.has_bridges(1, &cleared.id());
    works_and_is_stopped(&cleared, terminal);
    terminal.enter("/new");
    let fresh = bridged.next_session(&[bridged.id(), cleared.id()]);
    bridged.pilot.has_bridges(1, &fresh.id());
    works_and_is_stopped(&fresh, terminal);
    terminal.exit_of(&fresh);
    let again = Terminal::resume_by(&bridged.home, &bridged.model, &fresh.id(), &["--continue", "--allow-all-tools"]);
    bridged.pilot.has_bridges(2, &fresh.id());
    again.enter("SCRIPT:tool Paint the shed");
    fresh.wait_nth("tool.execution_start", 2);
    bridged.pilot.told(&fresh.id(), "working", "");
    bridged.done(&["stop", &fresh.id()]);
    fresh.wait_nth("abort", 2);
}

/// What was allowed for good holds in the sessions that come after, without a dialog: after `/clear`, and after `/new`.
#[test]
#[ignore = "tests/long.sh"]
fn what_was_allowed_for_good_holds_after_clear_and_new() {
    let bridged = Bridged::changed(&[], |home, _| home.remember_consent(&home.project()));
    let terminal = &bridged.terminal;
    terminal.enter("SCRIPT:plain Paint the door");
    terminal.folder.wait("assistant.turn_end");
    let may_answer = |id: &str| {
        let elevated = |row: &serde_json::Value| row["owner"]["bridge"] == "elevated";
        let row = || bridged.pilot.row_beside(id).filter(elevated).map(|_| ());
        wait_until(COPILOT, "it may answer there", || format!("{}\n{}", bridged.pilot.log(), terminal.dump()), row);
    };
    may_answer(&bridged.id());
    let mut known = vec![bridged.id()];
    for command in ["/clear", "/new"] {
        terminal.enter(command);
        let next = bridged.next_session(&known);
        bridged.pilot.has_bridges(1, &next.id());
        terminal.enter("SCRIPT:many1 Paint the fence");
        terminal.wait_screen(DIALOG);
        may_answer(&next.id());
        bridged.pilot.told(&next.id(), "needs-permission", "");
        bridged.done(&["approve", &next.id()]);
        let completed = next.wait("permission.completed");
        assert_eq!(completed["data"]["result"]["kind"], "approved", "{completed}");
        next.wait("tool.execution_complete");
        known.push(next.id());
    }
}

/// `copilot -p` has nobody to ask, and no bridge.
#[test]
#[ignore = "tests/long.sh"]
fn without_a_person_nothing_waits_for_the_bridge() {
    let (home, model) = (Home::new("project"), Model::start());
    installed(&home, &model);
    Unattended::start(&home, &model, "SCRIPT:seq Paint the fence").wait();
    let folder = home.sessions().remove(0);
    assert!(folder.types().iter().any(|kind| kind == "assistant.turn_end"), "{}", folder.dump());
    assert!(!ours(&home).join("run/pilotlight").exists());
}

/// One without its key, or with settings that are none or of another version, has nothing to do: it ends, and its terminal is as ever.
#[test]
#[ignore = "tests/long.sh"]
fn one_that_cannot_reach_anybody_ends_and_is_not_seen() {
    let (home, model) = (Home::new("project"), Model::start());
    installed(&home, &model);
    let folder = extension_in(&ours(&home));
    let (settings, started) = (folder.join("bridge.json"), folder.join("started"));
    let (file, key) = (folder.join("extension.mjs"), ours(&home).join(".local/state/pilotlight/bridge.key"));
    let code = std::fs::read_to_string(&file).unwrap();
    let mark = format!("import {{ appendFileSync }} from 'node:fs';\nappendFileSync({started:?}, 'started');\n");
    std::fs::write(&file, mark + &code).unwrap();
    let whole = std::fs::read_to_string(&settings).unwrap();
    let newer = whole.replace("\"v\":1", "\"v\":2");
    assert_ne!(whole, newer);
    for (said, has_key) in [(&*newer, true), ("{", true), (&*whole, false)] {
        std::fs::write(&settings, said).unwrap();
        if !has_key {
            std::fs::remove_file(&key).unwrap();
        }
        let terminal = Terminal::start(&home, &model, &[]);
        wait_until(COPILOT, "it is started", || terminal.dump(), || started.exists().then_some(()));
        let ended = || terminal.find_extension().is_none().then_some(());
        wait_until(COPILOT, "it ends", || terminal.dump(), ended);
        std::fs::remove_file(&started).unwrap();
        terminal.enter("SCRIPT:plain Paint the fence");
        terminal.folder.wait("assistant.turn_end");
        terminal.wait_no_screen("Loading");
    }
}

/// `/new` leaves the session before in the background, where it works on and asks: it is answered and stopped there, and the one in
/// front hears nothing of that.
#[test]
#[ignore = "tests/long.sh"]
fn a_session_in_the_background_is_answered_and_stopped_there() {
    let bridged = Bridged::set(&[]);
    bridged.allowed();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    let (hold, silent) = (bridged.model.hold("many", 0), bridged.model.hold("many", 1));
    terminal.enter("SCRIPT:many1 Paint the fence");
    bridged.model.wait_asked("many", 0);
    terminal.enter("/new");
    let front = bridged.next_session(std::slice::from_ref(&id));
    bridged.pilot.has_bridges(1, &front.id());
    terminal.enter("SCRIPT:form Paint the gate");
    bridged.pilot.told_beside(&front.id(), "needs-input", "Which color?");
    // The one in the background asks, with no dialog in front.
    hold.release();
    terminal.folder.wait_nth("permission.requested", 2);
    bridged.pilot.told(&id, "needs-permission", "");
    bridged.done(&["approve", &id]);
    let completed = terminal.folder.wait_nth("permission.completed", 2);
    assert_eq!(completed["data"]["result"]["kind"], "approved", "{completed}");
    bridged.model.wait_asked("many", 1);
    bridged.pilot.told(&id, "working", "");
    bridged.done(&["stop", &id]);
    terminal.folder.wait("abort");
    silent.release();
    bridged.pilot.told(&id, "idle", "");
    bridged.pilot.told_beside(&front.id(), "needs-input", "Which color?");
    bridged.pilot.click(&front.id(), "Answer “blue”");
    let answered = front.wait("tool.execution_complete");
    assert!(answered.to_string().contains("blue"), "{answered}");
}
