//! The rows of what can be known of Claude Code (docs/agents.md) that its main story leaves out, each by the real program.

use super::Stage;
use crate::support::claude::headless::Headless;
use crate::support::claude::{Claude, ClaudeHome};
use crate::support::pilotlight::Pilot;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

fn go(home: &ClaudeHome) {
    fs::write(home.project().join("go"), "").unwrap();
}

#[test]
#[ignore = "tests/long.sh"]
fn a_turn_that_is_retried_fails_or_ends_in_a_question() {
    let stage = Stage::new();
    stage.claude.enter("SCRIPT:refused Paint the fence");
    stage.wait_status("failed", "error (400): API Error: 400 scripted");
    stage.claude.enter("SCRIPT:broken Paint the fence");
    stage.wait_status("working", "no answer from its model: asked again");
    stage.claude.press(&["Escape"]);
    stage.wait_status("idle", "");
    stage.claude.enter("SCRIPT:question Paint the fence");
    stage.wait_status("needs-input", "its last message ends in a question");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_plan_is_a_question_until_it_is_answered() {
    let stage = Stage::with(&["--permission-mode", "plan"]);
    stage.claude.enter("SCRIPT:plan Paint the fence");
    stage.claude.wait_screen("Exit plan mode?");
    stage.wait_status("needs-input", "asks: \"1. Paint it.\"");
    stage.claude.press(&["Escape"]);
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_compaction_a_sub_agent_and_a_background_shell_work() {
    let stage = Stage::new();
    stage.claude.enter("SCRIPT:agent Paint the fence");
    stage.claude.wait_screen("Do you want to");
    stage.wait_status("needs-permission", "Bash");
    stage.claude.accept("Do you want to");
    stage.wait_status("working", "");
    go(&stage.home);
    stage.wait_status("idle", "done, your turn");

    fs::remove_file(stage.home.project().join("go")).unwrap();
    stage.claude.enter("SCRIPT:shell Paint the gate");
    let has = |shells: u64| move |row: &Value| row["status"] == "idle" && row["background"]["shells"] == shells;
    stage.pilot.row_where(&stage.id, "a shell runs on", has(1));
    go(&stage.home);
    stage.pilot.row_where(&stage.id, "the shell has ended", has(0));

    stage.claude.enter("/compact");
    stage.wait_status("working", "");
    fs::write(stage.home.project().join("compact"), "").unwrap();
    stage.claude.wait_screen("Compacted");
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_session_that_is_open_twice_is_a_conflict_and_not_resumed() {
    let stage = Stage::new();
    stage.claude.enter("SCRIPT:tool Paint the fence");
    stage.claude.wait_screen("Do you want to");
    let second: Claude = stage.home.start(&["--resume", &stage.id]);
    let row = stage.wait_status("needs-permission", "conflict: two live processes have it open");
    assert!(!row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
    drop(second);
    let is_alone = |row: &Value| !row["because"].as_str().unwrap_or_default().contains("conflict");
    let row = stage.pilot.row_where(&stage.id, "one is left", is_alone);
    assert_eq!(
        (&row["status"], &row["owner"]["pid"]),
        (&"needs-permission".into(), &stage.claude.pid().into()),
        "{row}"
    );
}

/// Where nobody can be asked, a tool that needs a yes is refused.
#[test]
#[ignore = "tests/long.sh"]
fn a_run_without_a_terminal_that_could_ask_nobody_has_lost_its_permissions() {
    let home = ClaudeHome::new();
    let pilot = Pilot::of_folders(vec![home.dir()]);
    let mut run = Headless::start(&home, &["-p", "SCRIPT:denied Paint the fence"]);
    let id = run.id();
    run.wait();
    let row = pilot.wait_status(&id, "failed", "ended with permissions lost: 3 of its last 3 tools denied");
    assert_eq!(row["kind"], "sdk", "{row}");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_session_of_the_sdk_asks_works_and_ends() {
    let home = ClaudeHome::new();
    let pilot = Pilot::of_folders(vec![home.dir()]);
    let mut run = Headless::start(
        &home,
        &[
            "-p",
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-prompt-tool",
            "stdio",
        ],
    );
    run.say(&json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize", "hooks": {}}}));
    let content = "SCRIPT:tool Paint the fence";
    run.say(&json!({"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": null, "session_id": ""}));
    let asked = run.heard(|said| said["type"] == "control_request");
    let id = run.id();
    let row = pilot.wait_status(&id, "needs-permission", "Bash");
    assert_eq!(row["owner"]["pid"], run.pid(), "{row}");
    let allow = json!({"behavior": "allow", "updatedInput": asked["request"]["input"]});
    let response = json!({"subtype": "success", "request_id": asked["request_id"], "response": allow});
    run.say(&json!({"type": "control_response", "response": response}));
    pilot.wait_status(&id, "working", "");
    go(&home);
    pilot.wait_status(&id, "idle", "");
    run.signal(Signal::TERM);
    run.wait();
    pilot.wait_status(&id, "ended", "");
}

/// What it asks is told by its job's file, and its own command ends it.
#[test]
#[ignore = "tests/long.sh"]
fn a_background_session_says_what_it_asks_and_is_stopped() {
    let home = ClaudeHome::new();
    let pilot = Pilot::of_folders(vec![home.dir()]);
    let background = home.start_in_background("SCRIPT:tool Paint the fence");
    let id = background.id();
    let row = pilot.wait_status(&id, "needs-permission", "Bash");
    assert_eq!(row["kind"], "terminal", "{row}");
    pilot.wait_menu(&id, "touch made");
    background.stop();
    pilot.wait_status(&id, "ended", "");
}
