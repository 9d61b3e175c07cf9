//! The terminal interface, driven by keys.

use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::pilotlight::Pilot;
use crate::support::record;
use crate::support::terminal::Terminal;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// A terminal interface and Pilotlight. Fields drop from the top.
struct Stage {
    pilot: Pilot,
    terminal: Terminal,
    model: Model,
    home: Home,
}

impl Stage {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(args: &[&str]) -> Self {
        let (home, model) = (Home::new("project"), Model::start());
        let pilot = Pilot::start(&[&home]);
        let terminal = Terminal::start(&home, &model, args);
        Self { pilot, terminal, model, home }
    }

    fn wait_status(&self, status: &str, because: &str) -> Value {
        self.pilot.wait_status(&self.terminal.folder.id(), status, because)
    }

    /// A stage in the middle of a tool that the user has approved in the terminal.
    fn in_the_middle() -> Self {
        let stage = Self::new();
        stage.terminal.enter("SCRIPT:tool Paint the fence");
        stage.terminal.folder.wait("permission.requested");
        stage.terminal.approve();
        stage.terminal.folder.wait("permission.completed");
        stage.wait_status("working", "");
        stage
    }
}

#[test]
fn from_start_to_exit() {
    let stage = Stage::new();
    let row = stage.wait_status("idle", "no prompt yet");
    assert_eq!(row["owner"]["pid"], stage.terminal.pid());

    stage.terminal.enter("SCRIPT:tool Paint the fence");
    stage.terminal.folder.wait("permission.requested");
    stage.wait_status("needs-permission", "");
    stage.terminal.approve();
    stage.terminal.folder.wait("permission.completed");
    let row = stage.wait_status("working", "");
    assert_eq!(row["kind"], "terminal");
    stage.home.release_tools();
    stage.terminal.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");

    stage.terminal.enter("SCRIPT:form Paint the gate");
    stage.terminal.folder.wait_nth("tool.execution_start", 2);
    stage.wait_status("needs-input", "");
    // In the dialog, red is preselected, and Enter chooses it.
    stage.terminal.wait_screen("Which color?");
    stage.terminal.press(&["Enter"]);
    stage.terminal.folder.wait_nth("tool.execution_complete", 2);
    stage.terminal.folder.wait_nth("assistant.turn_end", 4);
    stage.wait_status("idle", "");

    stage.terminal.exit();
    stage.wait_status("ended", "");
}

#[test]
fn interrupted_with_escape_then_terminated() {
    let stage = Stage::in_the_middle();
    stage.terminal.interrupt();
    stage.wait_status("idle", "");

    stage.terminal.enter("SCRIPT:tool Paint the gate");
    stage.terminal.approve();
    stage.terminal.folder.wait_nth("permission.completed", 2);
    stage.wait_status("working", "");
    stage.terminal.signal(Signal::TERM);
    stage.wait_status("ended", "bash");
}

#[test]
fn killed_and_resumed_in_another_terminal() {
    let stage = Stage::in_the_middle();
    stage.terminal.signal(Signal::KILL);
    stage.wait_status("crashed", "");

    let id = stage.terminal.folder.id();
    let again = Terminal::resume(&stage.home, &stage.model, &id);
    assert!(again.folder.locks().is_empty(), "the dead owner's lock is gone; the new one comes with the first prompt");
    record::keep(&stage.home, "50-terminal-killed-and-resumed");
    let answer = stage.model.hold("plain", 0);
    again.enter("SCRIPT:plain Go on");
    stage.model.wait_requested("plain", 0);
    let row = stage.wait_status("working", "");
    assert_eq!(row["owner"]["pid"], again.pid(), "the new terminal owns it");
    answer.release();
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_new_session_in_the_same_terminal() {
    let stage = Stage::new();
    stage.terminal.enter("SCRIPT:plain Paint the fence");
    stage.terminal.folder.wait("assistant.turn_end");
    stage.wait_status("idle", "");

    stage.terminal.enter("/new");
    let first = stage.terminal.folder.id();
    let second = wait_until(
        SOON,
        "there is a second session",
        || stage.terminal.screen(),
        || stage.home.sessions().into_iter().find(|folder| folder.id() != first && !folder.locks().is_empty()),
    );
    // One process owns both.
    assert_eq!(
        (second.locks(), stage.terminal.folder.locks()),
        (vec![stage.terminal.pid()], vec![stage.terminal.pid()])
    );
    stage.pilot.wait_status(&second.id(), "idle", "no prompt yet");
    stage.wait_status("idle", "");

    stage.terminal.signal(Signal::KILL);
    stage.wait_status("ended", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_user_command_and_a_compaction() {
    let stage = Stage::new();
    stage.terminal.enter("SCRIPT:plain Paint the fence");
    stage.terminal.folder.wait("assistant.turn_end");
    stage.wait_status("idle", "");

    let lines = stage.pilot.lines(&stage.terminal.folder.id());
    stage.terminal.shell("echo hi");
    stage.terminal.folder.wait("tool.execution_complete");
    stage.wait_status("idle", "");
    assert_eq!(stage.pilot.lines(&stage.terminal.folder.id()), lines, "the user's own command changes nothing");
    record::keep(&stage.home, "49-terminal-shell-escape");

    let summary = stage.model.hold("plain", 1);
    stage.terminal.enter("/compact");
    stage.terminal.folder.wait("session.compaction_start");
    stage.wait_status("working", "");
    record::keep(&stage.home, "47a-terminal-compacting");
    summary.release();
    stage.terminal.folder.wait("session.compaction_complete");
    stage.wait_status("idle", "");
    record::keep(&stage.home, "47b-terminal-compacted");
}

#[test]
#[ignore = "tests/long.sh"]
fn autopilot_is_never_idle_between_rounds() {
    let stage = Stage::with(&["--autopilot", "--allow-all"]);
    stage.wait_status("idle", "no prompt yet");
    let (continued, folder) = (stage.model.hold("autopilot", 2), &stage.terminal.folder);
    stage.terminal.enter("SCRIPT:autopilot Paint the fence");
    stage.model.wait_requested("autopilot", 2);
    stage.wait_status("working", "");
    let statuses = stage.pilot.history(&folder.id());
    assert_eq!(
        statuses.iter().filter(|status| *status == "idle").count(),
        1,
        "idle only before the prompt: {statuses:?}"
    );
    continued.release();
    folder.wait("session.task_complete");
    stage.wait_status("idle", "");
    record::keep(&stage.home, "40b-terminal-autopilot");
}
