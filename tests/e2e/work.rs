//! Work that is more than prompt and answer: steering, autopilot, compaction, sub-agents, background shells, a history
//! that is cut.

use super::stage::Stage;
use crate::support::person::Manner;
use std::os::unix::fs::MetadataExt;

#[test]
fn steered_while_the_model_thinks() {
    let stage = Stage::set(Manner::Approves);
    let first = stage.model.hold("plain", 0);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.model.wait_asked("plain", 0);
    stage.session.steer("SCRIPT:seq Make it white");
    let last = stage.model.hold("seq", 2);
    first.release();
    stage.model.wait_asked("seq", 2);
    stage.told("working", "");
    // The answer was on its way: the CLI lets the turn end and opens the next with the steering message.
    let steering = stage.session.folder.wait_nth("user.message", 2);
    assert_eq!(steering["data"]["delivery"], "queued");
    last.release();
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.told("idle", "");
    stage.record("41a-steered-while-thinking");
}

#[test]
fn steered_while_a_tool_runs() {
    let stage = Stage::set(Manner::Approves);
    stage.told("idle", "no prompt yet");
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    // The CLI moves the shell to the background, so that the model can be told at once.
    let answer = stage.model.hold("plain", 0);
    stage.session.steer("SCRIPT:plain Make it white");
    stage.model.wait_asked("plain", 0);
    let steering = stage.session.folder.wait_nth("user.message", 2);
    assert_eq!(steering["data"]["delivery"], "steering");
    stage.told("working", "");
    assert_eq!(stage.history(), ["idle", "working"], "the steering message joins the turn");
    answer.release();
    stage.told("idle", "");
    stage.home.go();
    stage.session.folder.wait("system.notification");
    stage.session.folder.wait_nth("assistant.turn_end", 3);
    stage.told("idle", "");
    stage.record("41b-steered-while-a-tool-runs");
}

#[test]
fn a_queued_prompt_opens_the_next_turn() {
    let stage = Stage::set(Manner::Approves);
    let first = stage.model.hold("plain", 0);
    let second = stage.model.hold("question", 0);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.model.wait_asked("plain", 0);
    stage.session.send_as("SCRIPT:question Paint the door".into());
    first.release();
    stage.model.wait_asked("question", 0);
    stage.told("working", "");
    second.release();
    stage.told("needs-input", "");
}

#[test]
fn autopilot_is_never_idle_between() {
    let stage = Stage::set(Manner::Approves);
    stage.told("idle", "no prompt yet");
    stage.session.set_mode("autopilot");
    let continued = stage.model.hold("autopilot", 2);
    stage.session.send("SCRIPT:autopilot Paint the fence");
    stage.model.wait_asked("autopilot", 2);
    stage.told("working", "");
    assert!(!stage.history()[1..].iter().any(|status| status == "idle"), "{:?}", stage.history());
    continued.release();
    stage.session.folder.wait("session.task_complete");
    stage.told("idle", "");
    stage.record("40a-autopilot");
}

#[test]
fn compacts() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.session.folder.wait("assistant.turn_end");
    stage.told("idle", "");
    let summary = stage.model.hold("plain", 1);
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| stage.session.compact());
        stage.session.folder.wait("session.compaction_start");
        stage.told("working", "");
        summary.release();
        compaction.join().unwrap();
    });
    stage.session.folder.wait("session.compaction_complete");
    stage.told("idle", "");
    stage.record("47-compaction");
}

#[test]
fn a_sub_agent_works_in_the_foreground() {
    let stage = Stage::set(Manner::Approves);
    let inner = stage.model.hold("inner", 0);
    stage.session.send("SCRIPT:sub Paint the fence");
    stage.model.wait_asked("inner", 0);
    stage.told("working", "");
    inner.release();
    stage.session.folder.wait("subagent.completed");
    stage.told("idle", "");
}

#[test]
fn a_sub_agent_works_in_the_background() {
    let stage = Stage::set(Manner::Approves);
    let inner = stage.model.hold("inner", 0);
    stage.session.send("SCRIPT:subbg Paint the fence");
    stage.model.wait_asked("inner", 0);
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    let row = stage.told("working", "1 background agent");
    assert_eq!(row["background"]["agents"], 1);
    inner.release();
    stage.session.folder.wait("system.notification");
    let row = stage.told("idle", "");
    assert_eq!(row["background"]["agents"], 0);
}

#[test]
fn a_shell_works_in_the_background() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:bg Paint the fence");
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    let row = stage.told("idle", "1 background shell");
    assert_eq!(row["background"]["shells"], 1);
    stage.home.go();
    stage.session.folder.wait("system.notification");
    let id = stage.session.id();
    stage.pilot.row_where(&id, "the background shell has ended", |row| row["background"]["shells"] == 0);
    stage.told("idle", "");
}

#[test]
fn much_output_is_read() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:big Paint the fence");
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
}

#[test]
fn a_history_that_is_cut_is_read_anew() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.session.folder.wait("assistant.turn_end");
    stage.session.send("SCRIPT:question Paint the door");
    let asked = stage.session.folder.wait_nth("user.message", 2);
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("needs-input", "");
    stage.record("48a-before-truncation");

    let inode = || stage.session.folder.log().metadata().unwrap().ino();
    let before = inode();
    stage.session.truncate(asked["id"].as_str().unwrap());
    assert_ne!(before, inode(), "the CLI replaces the log by a shorter one");
    stage.told("idle", "");
    stage.record("48b-after-truncation");

    let answer = stage.model.hold("plain", 0);
    stage.session.send("SCRIPT:plain Paint the house");
    stage.told("working", "");
    answer.release();
    stage.told("idle", "");
}

#[test]
fn the_users_own_command_is_no_turn() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.session.folder.wait("assistant.turn_end");
    stage.told("idle", "");
    let told = stage.history();
    stage.session.shell("echo hi");
    stage.session.folder.wait("tool.execution_complete");
    stage.told("idle", "");
    assert_eq!(stage.history(), told, "no other status in between");
}
