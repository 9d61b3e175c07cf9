//! From lost permissions to a session that works, by one click; and nothing sent twice whose effects may stand.

use super::stage::Stage;
use crate::support::home::Folder;
use crate::support::{SOON, wait_until};
use serde_json::Value;
use std::time::Duration;

/// What a session is told that is to go on: here something that the model has a script for.
const GO_ON: &str = "SCRIPT:tool Go on";

fn settings(more: &str) -> String {
    format!("[actions]\ncontinue-prompt = {GO_ON:?}\n{more}")
}

/// The prompts in the log, in order.
fn prompts(folder: &Folder) -> Vec<String> {
    let events = folder.events();
    let prompts = events.iter().filter(|event| event["type"] == "user.message");
    prompts.map(|event| event["data"]["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn after_a_denied_turn(config: &str, prompt: &str, rounds: usize) -> Stage {
    let stage = Stage::without_person_configured(config);
    stage.session.send(prompt);
    stage.session.folder.wait_nth("assistant.turn_end", rounds);
    stage.told("permission-lost", "");
    stage
}

/// The session works again: its next tool asks us, and runs when we say so.
fn works_again(stage: &Stage) {
    stage.session.folder.wait("permission.requested");
    stage.told("needs-permission", "");
    stage.pilot.click(&stage.session.id(), "Approve once");
    stage.session.folder.wait("permission.completed");
}

#[test]
fn case_127_one_click_brings_a_denied_session_back_to_work() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let stage = after_a_denied_turn(&settings(""), prompt, 4);
    stage.pilot.click(&stage.session.id(), "Reconnect and continue");
    works_again(&stage);
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
    let ran = || stage.home.project().join("denied0.txt").exists().then_some(());
    wait_until(SOON, "what was denied has run", || stage.session.folder.dump(), ran);
    stage.session.folder.assert_one_chain();
}

#[test]
fn case_127_a_command_does_the_same_and_says_what_it_did() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let stage = after_a_denied_turn(&settings(""), prompt, 4);
    let row = stage.told("permission-lost", "");
    assert_eq!(row["actions"].as_array().unwrap()[..3], ["continue", "reconnect", "resend"], "{row}");
    let ran = stage.pilot.run(&["reconnect", "--continue", &stage.session.id()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("your last prompt was sent again"), "{ran:?}");
    works_again(&stage);
    let again = stage.pilot.run(&["reconnect", "--continue", &stage.session.id()]);
    assert_eq!(again.code, Some(4), "{again:?}");
}

/// Reconnected and nothing more: told as what it is, by everybody and after a restart, until a prompt comes.
#[test]
fn case_127_what_was_not_carried_out_is_not_called_done() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let mut stage = after_a_denied_turn(&settings(""), prompt, 4);
    let id = stage.session.id();
    stage.pilot.click(&id, "Reconnect only");
    let row = stage.told("needs-input", "reconnected; its last prompt was not carried out");
    assert_eq!(row["question"], Value::Null, "{row}");
    stage.pilot.click(&id, "Reconnect and continue");
    works_again(&stage);
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
    stage.pilot.end_tray();
}

/// Case 40: a tool that ran may not run twice.
#[test]
fn case_40_where_a_tool_ran_the_prompt_is_not_sent_again() {
    let prompt = "SCRIPT:mixed4 Paint the fence";
    let stage = after_a_denied_turn(&settings(""), prompt, 6);
    let id = stage.session.id();
    let refused = stage.pilot.run(&["reconnect", "--resend", &id]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains("might be done twice"), "{refused:?}");
    stage.pilot.click(&id, "Reconnect and continue");
    works_again(&stage);
    assert_eq!(prompts(&stage.session.folder), [prompt, GO_ON]);
    stage.home.go();
    stage.told("idle", "");
    stage.session.folder.assert_one_chain();
}

/// The turn that was denied still runs when the click comes: what it does then is asked, and what is sent waits for its end.
#[test]
fn a_click_in_the_middle_of_the_denied_turn_goes_on_when_that_is_over() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let stage = Stage::without_person_configured(&settings(""));
    let id = stage.session.id();
    let last = stage.model.hold("denied", 3);
    stage.session.send(prompt);
    stage.model.wait_asked("denied", 3);
    stage.told("permission-lost", "");
    stage.pilot.click(&id, "Reconnect and continue");
    stage.pilot.menu_says(&id, "it goes on when its turn is over");
    assert_eq!(prompts(&stage.session.folder), [prompt]);
    last.release();
    works_again(&stage);
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
    // Its first turn ended before the second began: nothing was sent into it.
    let events = stage.session.folder.events();
    let place =
        |kind: &str, nth: usize| events.iter().enumerate().filter(|(_, e)| e["type"] == kind).nth(nth).unwrap().0;
    assert!(place("assistant.turn_end", 3) < place("user.message", 1));
    stage.session.folder.assert_one_chain();
}

/// What ran after we came was carried out: nothing is sent behind it.
#[test]
fn a_denied_turn_that_goes_on_with_permissions_is_not_sent_again() {
    let stage = Stage::without_person_configured(&settings(""));
    let id = stage.session.id();
    let fourth = stage.model.hold("denied", 3);
    stage.session.send("SCRIPT:denied4 Paint the fence");
    stage.model.wait_asked("denied", 3);
    stage.told("permission-lost", "");
    stage.pilot.click(&id, "Reconnect and continue");
    stage.pilot.menu_says(&id, "it goes on when its turn is over");
    fourth.release();
    works_again(&stage);
    stage.told("idle", "done");
    assert_eq!(prompts(&stage.session.folder).len(), 1);
}

fn auto_reconnects_at(pace: Duration) {
    let prompt = "SCRIPT:denied4 Paint the fence";
    let stage = Stage::without_person_configured(&settings("auto-reconnect = true\nresend = true\n"));
    stage.model.takes(pace);
    stage.session.send(prompt);
    let patience = SOON + pace * 8;
    let sent = || (prompts(&stage.session.folder).len() == 2).then_some(());
    wait_until(patience, "the prompt is sent again", || stage.session.folder.dump() + &stage.pilot.log(), sent);
    let asked = || stage.session.folder.types().iter().any(|kind| kind == "permission.requested").then_some(());
    wait_until(patience, "it asks us", || stage.session.folder.dump(), asked);
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
    // Nothing was interrupted: all four tools of the first turn were denied, and it ended by itself.
    let events = stage.session.folder.events();
    let second = events.iter().enumerate().filter(|(_, e)| e["type"] == "user.message").nth(1).unwrap().0;
    let count = |kind: &str| events[..second].iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("tool.execution_complete"), count("assistant.turn_end"), count("abort")), (4, 5, 0));
    works_again(&stage);
    stage.session.folder.assert_one_chain();
}

/// Case 129.
#[test]
fn case_129_auto_reconnect_sends_again_when_the_turn_is_over() {
    auto_reconnects_at(Duration::ZERO);
}

/// Case 129: at four seconds a step of the model.
#[test]
fn case_129_auto_reconnect_waits_for_a_slow_model() {
    auto_reconnects_at(Duration::from_secs(4));
}

/// Case 129, ten times: by tests/long.sh.
#[test]
#[ignore = "takes minutes: tests/long.sh"]
fn case_129_auto_reconnect_ten_times() {
    for _ in 0..10 {
        auto_reconnects_at(Duration::from_millis(500));
    }
}

/// Without `resend` it is reconnected, and told as what that is.
#[test]
fn case_129_auto_reconnect_without_resend_says_what_is_left() {
    let stage = Stage::without_person_configured(&settings("auto-reconnect = true\n"));
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.told("needs-input", "reconnected; its last prompt was not carried out");
    assert_eq!(prompts(&stage.session.folder).len(), 1);
}

/// What is sent is sent in the user's name: a session's own tool may not ask for it.
#[test]
fn a_tool_of_a_session_sends_nothing_on() {
    let stage = Stage::set(crate::support::person::Manner::Approves);
    let lost = after_a_denied_turn(&settings(""), "SCRIPT:denied3 Paint the fence", 4);
    for flag in ["--continue", "--resend"] {
        let command = lost.pilot.command_beside(&["reconnect", flag, &lost.session.id()]);
        let (code, out) = super::actions::run_by_a_tool(&stage, &command);
        assert_eq!(code, "4", "{flag}: {out}");
        assert!(out.contains("must not"), "{flag}: {out}");
    }
    assert_eq!(prompts(&lost.session.folder).len(), 1);
}
