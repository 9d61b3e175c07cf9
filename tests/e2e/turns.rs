//! A turn from its prompt to its end, and the ways in which it stops short: an error, a question.

use super::stage::Stage;
use crate::support::person::Manner;

#[test]
fn appears_works_and_finishes() {
    let stage = Stage::set(Manner::Approves);
    stage.told("idle", "no prompt yet");
    assert!(!stage.session.folder.log().exists(), "the CLI writes no log before the first prompt");

    let answer = stage.model.hold("plain", 0);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.model.wait_asked("plain", 0);
    stage.told("working", "");

    answer.release();
    let row = stage.told("idle", "");
    assert_eq!(row["unseen"], true, "it finished since the user last looked");
    assert_eq!(row["kind"], "sdk");
    assert_eq!(row["owner"]["pid"], stage.server.pid());
    assert_eq!(row["owner"]["state"], "alive");
    assert_eq!(row["cwd"], stage.home.project().to_str().unwrap());
}

#[test]
fn asks_runs_a_tool_thinks_and_finishes() {
    let stage = Stage::set(Manner::Waits);
    stage.told("idle", "no prompt yet");
    let (first, last) = (stage.model.hold("tool", 0), stage.model.hold("tool", 1));
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.told("working", "");
    first.release();
    stage.session.folder.wait("permission.requested");
    stage.told("needs-permission", "");

    stage.person.now(Manner::Approves);
    stage.session.folder.wait("permission.completed");
    stage.told("working", "");

    stage.home.go();
    stage.model.wait_asked("tool", 1);
    stage.told("working", "");

    last.release();
    stage.told("idle", "");
    let told = stage.history();
    assert_eq!(told, ["idle", "working", "needs-permission", "working", "idle"], "no other status in between");
}

#[test]
fn several_rounds_are_one_turn() {
    let stage = Stage::set(Manner::Approves);
    stage.told("idle", "no prompt yet");
    let last = stage.model.hold("seq", 2);
    stage.session.send("SCRIPT:seq Paint the fence");
    stage.model.wait_asked("seq", 2);
    stage.told("working", "");
    last.release();
    stage.told("idle", "");
    assert!(!stage.history()[1..].iter().rev().skip(1).any(|status| status == "idle"), "{:?}", stage.history());
}

#[test]
fn asks_a_question_with_ask_user() {
    let stage = Stage::set(Manner::Waits);
    stage.session.send("SCRIPT:ask Paint the fence");
    stage.session.folder.wait("tool.execution_start");
    stage.told("needs-input", "");
    stage.person.now(Manner::Approves);
    let answered = stage.session.folder.wait("tool.execution_complete");
    assert_eq!(answered["data"]["success"], true, "{answered}");
    stage.told("idle", "");
}

#[test]
fn asks_a_question_in_words() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:question Paint the fence");
    stage.session.folder.wait("assistant.turn_end");
    stage.told("needs-input", "");
    // The next prompt answers it.
    stage.session.send("SCRIPT:plain The second one");
    stage.told("idle", "");
}

#[test]
fn waits_for_its_plan_to_be_approved() {
    let stage = Stage::set(Manner::Waits);
    stage.session.set_mode("plan");
    stage.session.send("SCRIPT:plan Paint the fence");
    stage.session.folder.wait("tool.execution_start");
    stage.told("needs-input", "");
    stage.record("42-exit-plan-mode-open");
    stage.person.now(Manner::Approves);
    stage.session.folder.wait("tool.execution_complete");
    stage.told("idle", "");
}

#[test]
fn fails_when_the_model_answers_500() {
    let stage = Stage::set(Manner::Approves);
    stage.told("idle", "no prompt yet");
    stage.session.send("SCRIPT:err500 Paint the fence");
    stage.model.wait_asked("err", 0);
    // The CLI retries in silence for a while; that is no failure yet.
    stage.told("working", "");
    stage.session.folder.wait("session.error");
    stage.told("failed", "");
    assert!(!stage.history()[1..].iter().any(|status| status == "idle"), "{:?}", stage.history());
    stage.session.send("SCRIPT:plain Try again");
    stage.told("idle", "");
}

#[test]
fn fails_when_the_model_is_gone() {
    let stage = Stage::set(Manner::Approves);
    stage.model.stop();
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.told("working", "");
    stage.session.folder.wait("session.error");
    stage.told("failed", "");
    stage.record("43-model-gone");
}

#[test]
fn fails_when_the_answer_breaks_off() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:gone Paint the fence");
    stage.session.folder.wait("session.error");
    stage.told("failed", "");
    stage.record("43b-answer-broken-off");
}
