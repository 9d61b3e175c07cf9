//! Work beyond prompt and answer: steering, autopilot, compaction, sub-agents, background shells, a truncated history.

use super::stage::Stage;
use crate::support::person::Manner;
use std::os::unix::fs::MetadataExt;

#[test]
#[ignore = "tests/long.sh"]
fn steered_while_the_model_thinks() {
    let stage = Stage::new(Manner::Approves);
    let first = stage.model.hold("plain", 0);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.model.wait_requested("plain", 0);
    stage.session.steer("SCRIPT:seq Make it white");
    let last = stage.model.hold("seq", 2);
    first.release();
    stage.model.wait_requested("seq", 2);
    stage.wait_status("working", "");
    // The answer was already under way: the CLI lets the turn end and opens the next one with the steering message.
    let steering = stage.session.folder.wait_nth("user.message", 2);
    assert_eq!(steering["data"]["delivery"], "queued");
    last.release();
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.wait_status("idle", "");
    stage.record("41a-steered-while-thinking");
}

#[test]
#[ignore = "tests/long.sh"]
fn steered_while_a_tool_runs() {
    let stage = Stage::new(Manner::Approves);
    stage.wait_status("idle", "no prompt yet");
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    // The CLI moves the shell to the background, so that it can pass the message to the model at once.
    let answer = stage.model.hold("plain", 0);
    stage.session.steer("SCRIPT:plain Make it white");
    stage.model.wait_requested("plain", 0);
    let steering = stage.session.folder.wait_nth("user.message", 2);
    assert_eq!(steering["data"]["delivery"], "steering");
    stage.wait_status("working", "");
    assert_eq!(stage.history(), ["idle", "working"], "the steering message joins the turn");
    answer.release();
    stage.wait_status("idle", "");
    stage.home.release_tools();
    stage.session.folder.wait("system.notification");
    stage.session.folder.wait_nth("assistant.turn_end", 3);
    stage.wait_status("idle", "");
    stage.record("41b-steered-while-a-tool-runs");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_queued_prompt_opens_the_next_turn() {
    let stage = Stage::new(Manner::Approves);
    let first = stage.model.hold("plain", 0);
    let second = stage.model.hold("question", 0);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.model.wait_requested("plain", 0);
    stage.session.send_as("SCRIPT:question Paint the door".into());
    first.release();
    stage.model.wait_requested("question", 0);
    stage.wait_status("working", "");
    second.release();
    stage.wait_status("needs-input", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn autopilot_is_never_idle_between_rounds() {
    let stage = Stage::new(Manner::Approves);
    stage.wait_status("idle", "no prompt yet");
    stage.session.set_mode("autopilot");
    let continued = stage.model.hold("autopilot", 2);
    stage.session.send("SCRIPT:autopilot Paint the fence");
    stage.model.wait_requested("autopilot", 2);
    stage.wait_status("working", "");
    assert!(!stage.history()[1..].iter().any(|status| status == "idle"), "{:?}", stage.history());
    continued.release();
    stage.session.folder.wait("session.task_complete");
    stage.wait_status("idle", "");
    stage.record("40a-autopilot");
}

#[test]
#[ignore = "tests/long.sh"]
fn compacts() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.session.folder.wait("assistant.turn_end");
    stage.wait_status("idle", "");
    let summary = stage.model.hold("plain", 1);
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| stage.session.compact());
        stage.session.folder.wait("session.compaction_start");
        stage.wait_status("working", "");
        summary.release();
        compaction.join().unwrap();
    });
    stage.session.folder.wait("session.compaction_complete");
    stage.wait_status("idle", "");
    stage.record("47-compaction");
}

#[test]
fn a_sub_agent_works_in_the_foreground() {
    let stage = Stage::new(Manner::Approves);
    let inner = stage.model.hold("inner", 0);
    stage.session.send("SCRIPT:sub Paint the fence");
    stage.model.wait_requested("inner", 0);
    stage.wait_status("working", "");
    inner.release();
    stage.session.folder.wait("subagent.completed");
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_sub_agent_works_in_the_background() {
    let stage = Stage::new(Manner::Approves);
    let inner = stage.model.hold("inner", 0);
    stage.session.send("SCRIPT:subbg Paint the fence");
    stage.model.wait_requested("inner", 0);
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    let row = stage.wait_status("working", "1 background agent");
    assert_eq!(row["background"]["agents"], 1);
    inner.release();
    stage.session.folder.wait("system.notification");
    let row = stage.wait_status("idle", "");
    assert_eq!(row["background"]["agents"], 0);
}

#[test]
fn a_shell_works_in_the_background() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:bg Paint the fence");
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    let row = stage.wait_status("idle", "1 background shell");
    assert_eq!(row["background"]["shells"], 1);
    stage.home.release_tools();
    stage.session.folder.wait("system.notification");
    let id = stage.session.id();
    stage.pilot.row_where(&id, "the background shell has ended", |row| row["background"]["shells"] == 0);
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_tool_with_much_output() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:big Paint the fence");
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_truncated_history_is_read_again() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.session.folder.wait("assistant.turn_end");
    stage.session.send("SCRIPT:question Paint the door");
    let asked = stage.session.folder.wait_nth("user.message", 2);
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("needs-input", "");
    stage.record("48a-before-truncation");

    let inode = || stage.session.folder.log().metadata().unwrap().ino();
    let before = inode();
    stage.session.truncate(asked["id"].as_str().unwrap());
    assert_ne!(before, inode(), "the CLI replaces the log by a shorter one");
    stage.wait_status("idle", "");
    stage.record("48b-after-truncation");

    let answer = stage.model.hold("plain", 0);
    stage.session.send("SCRIPT:plain Paint the house");
    stage.wait_status("working", "");
    answer.release();
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_user_command_is_no_turn() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.session.folder.wait("assistant.turn_end");
    stage.wait_status("idle", "");
    let statuses = stage.history();
    stage.session.shell("echo hi");
    stage.session.folder.wait("tool.execution_complete");
    stage.wait_status("idle", "");
    assert_eq!(stage.history(), statuses, "no other status in between");
}
