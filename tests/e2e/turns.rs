//! Turns from prompt to end, including errors and questions.

use super::stage::Stage;
use crate::support::person::Manner;

#[test]
fn appears_works_and_finishes() {
    let stage = Stage::new(Manner::Approves);
    stage.wait_status("idle", "no prompt yet");
    assert!(!stage.session.folder.log().exists(), "the CLI writes no log before the first prompt");

    let answer = stage.model.hold("plain", 0);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.model.wait_requested("plain", 0);
    stage.wait_status("working", "");

    answer.release();
    let row = stage.wait_status("idle", "");
    assert_eq!(row["unseen"], true, "it finished since the user last looked");
    assert_eq!(row["kind"], "sdk");
    assert_eq!(row["owner"]["pid"], stage.server.pid());
    assert_eq!(row["owner"]["state"], "alive");
    assert_eq!(row["cwd"], stage.home.project().to_str().unwrap());
}

#[test]
fn asks_runs_a_tool_thinks_and_finishes() {
    let stage = Stage::new(Manner::Waits);
    stage.wait_status("idle", "no prompt yet");
    let (first, last) = (stage.model.hold("tool", 0), stage.model.hold("tool", 1));
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.wait_status("working", "");
    first.release();
    stage.session.folder.wait("permission.requested");
    stage.wait_status("needs-permission", "");

    stage.person.set_manner(Manner::Approves);
    stage.session.folder.wait("permission.completed");
    stage.wait_status("working", "");

    stage.home.release_tools();
    stage.model.wait_requested("tool", 1);
    stage.wait_status("working", "");

    last.release();
    stage.wait_status("idle", "");
    let statuses = stage.history();
    assert_eq!(statuses, ["idle", "working", "needs-permission", "working", "idle"], "no other status in between");
}

#[test]
#[ignore = "tests/long.sh"]
fn several_rounds_are_one_turn() {
    let stage = Stage::new(Manner::Approves);
    stage.wait_status("idle", "no prompt yet");
    let last = stage.model.hold("seq", 2);
    stage.session.send("SCRIPT:seq Paint the fence");
    stage.model.wait_requested("seq", 2);
    stage.wait_status("working", "");
    last.release();
    stage.wait_status("idle", "");
    assert!(!stage.history()[1..].iter().rev().skip(1).any(|status| status == "idle"), "{:?}", stage.history());
}

#[test]
fn asks_a_question_with_ask_user() {
    let stage = Stage::new(Manner::Waits);
    stage.session.send("SCRIPT:ask Paint the fence");
    stage.session.folder.wait("tool.execution_start");
    stage.wait_status("needs-input", "");
    stage.person.set_manner(Manner::Approves);
    let answered = stage.session.folder.wait("tool.execution_complete");
    assert_eq!(answered["data"]["success"], true, "{answered}");
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn asks_a_question_in_words() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:question Paint the fence");
    stage.session.folder.wait("assistant.turn_end");
    stage.wait_status("needs-input", "");
    // The next prompt answers it.
    stage.session.send("SCRIPT:plain The second one");
    stage.wait_status("idle", "");
}

#[test]
fn waits_for_its_plan_to_be_approved() {
    let stage = Stage::new(Manner::Waits);
    stage.session.set_mode("plan");
    stage.session.send("SCRIPT:plan Paint the fence");
    stage.session.folder.wait("tool.execution_start");
    stage.wait_status("needs-input", "");
    stage.record("42-exit-plan-mode-open");
    stage.person.set_manner(Manner::Approves);
    stage.session.folder.wait("tool.execution_complete");
    stage.wait_status("idle", "");
}

#[test]
fn fails_when_the_model_answers_500() {
    let stage = Stage::new(Manner::Approves);
    stage.wait_status("idle", "no prompt yet");
    stage.session.send("SCRIPT:err500 Paint the fence");
    stage.model.wait_requested("err", 0);
    // The CLI retries silently for a while, which is no failure yet.
    stage.wait_status("working", "");
    stage.session.folder.wait("session.error");
    stage.wait_status("failed", "");
    assert!(!stage.history()[1..].iter().any(|status| status == "idle"), "{:?}", stage.history());
    stage.session.send("SCRIPT:plain Try again");
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn fails_when_the_model_is_gone() {
    let stage = Stage::new(Manner::Approves);
    stage.model.stop();
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.wait_status("working", "");
    stage.session.folder.wait("session.error");
    stage.wait_status("failed", "");
    stage.record("43-model-gone");
}

#[test]
#[ignore = "tests/long.sh"]
fn fails_when_the_answer_is_cut_off() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:gone Paint the fence");
    stage.session.folder.wait("session.error");
    stage.wait_status("failed", "");
    stage.record("43b-answer-broken-off");
}
