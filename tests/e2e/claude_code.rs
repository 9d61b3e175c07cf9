//! The real Claude Code in a terminal: what its sessions are said to do, and what may be done with them.

use crate::support::claude::{Claude, ClaudeHome};
use crate::support::pilotlight::Pilot;
use rustix::process::Signal;
use serde_json::Value;

/// Claude Code in a terminal, and Pilotlight. Fields drop from the top.
struct Stage {
    pilot: Pilot,
    claude: Claude,
    home: ClaudeHome,
    id: String,
}

impl Stage {
    fn new() -> Self {
        let home = ClaudeHome::new();
        let pilot = Pilot::of_folders(vec![home.dir()]);
        let claude = home.start(&[]);
        let id = claude.id();
        Self { pilot, claude, home, id }
    }

    fn wait_status(&self, status: &str, because: &str) -> Value {
        self.pilot.wait_status(&self.id, status, because)
    }
}

/// The whole life of a session: its process says what it does, the log what it is about.
#[test]
fn from_a_prompt_to_a_kill_and_a_resume() {
    let stage = Stage::new();
    let row = stage.wait_status("idle", "no prompt yet");
    assert_eq!((&row["agent"], &row["kind"]), (&"claude-code".into(), &"terminal".into()));
    assert_eq!(row["owner"]["pid"], stage.claude.pid());

    stage.claude.enter("SCRIPT:tool Paint the fence");
    stage.claude.wait_screen("Do you want to");
    let row = stage.wait_status("needs-permission", "asks permission: Bash");
    let actions: Vec<_> = row["actions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(!actions.contains(&"approve") && !actions.contains(&"resume"), "{actions:?}");
    stage.claude.accept("Do you want to");
    stage.wait_status("working", "Bash is open");
    std::fs::write(stage.home.project().join("go"), "").unwrap();
    stage.claude.wait_screen("It is done.");
    stage.wait_status("idle", "done, your turn");

    stage.claude.enter("SCRIPT:ask Paint the gate");
    let row = stage.wait_status("needs-input", "Which colour?");
    assert_eq!(row["question"]["choices"], serde_json::json!(["Red", "Blue"]));
    stage.claude.accept("Enter to select");
    stage.wait_status("idle", "");

    stage.claude.enter("SCRIPT:silence Paint the shed");
    stage.wait_status("working", "the model thinks");
    stage.claude.signal(Signal::KILL);
    let row = stage.wait_status("crashed", "its process is gone");
    assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");

    let again = stage.home.start(&["--resume", &stage.id]);
    let row = stage.wait_status("idle", "");
    assert_eq!(row["owner"]["pid"], again.pid());
}

/// The session is ended by the process's own way, and what it left undone is said.
#[test]
#[ignore = "tests/long.sh"]
fn ended_by_a_command_in_the_middle_of_a_turn() {
    let stage = Stage::new();
    stage.claude.enter("SCRIPT:silence Paint the shed");
    stage.wait_status("working", "");
    let run = stage.pilot.run(&["stop", &stage.id, "--end", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    stage.wait_status("ended", "its process has ended; its turn was open");
}

/// Esc while the model is silent leaves nothing in the log.
#[test]
#[ignore = "tests/long.sh"]
fn interrupted_while_the_model_is_silent() {
    let stage = Stage::new();
    stage.claude.enter("SCRIPT:silence Paint the shed");
    stage.wait_status("working", "");
    stage.claude.wait_screen("esc to interrupt");
    stage.claude.press(&["Escape"]);
    stage.wait_status("idle", "");
}
