//! From lost permissions to a working session by one click, without sending a prompt twice whose effects may have
//! happened.

use super::orders::Staying;
use super::stage::Stage;
use crate::support::home::Folder;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait, wait_until};
use github_copilot_sdk::MessageOptions;
use pilotlight_engine::ledger::Ledger;
use rustix::process::Signal;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The configured continue prompt: one for which the model has a script.
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
    stage.wait_status("permission-lost", "");
    stage
}

/// Waits for the next permission request and approves it: the session works again.
fn assert_works_again(stage: &Stage) {
    stage.session.folder.wait("permission.requested");
    stage.wait_status("needs-permission", "");
    stage.pilot.click(&stage.session.id(), "Approve once");
    stage.session.folder.wait("permission.completed");
}

#[test]
fn case_127_one_click_reconnects_and_continues_a_denied_session() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let stage = after_a_denied_turn(&settings(""), prompt, 4);
    stage.pilot.click(&stage.session.id(), "Reconnect and continue");
    assert_works_again(&stage);
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
    let ran = || stage.home.project().join("denied0.txt").exists().then_some(());
    wait_until(SOON, "the denied tool has run", || stage.session.folder.dump(), ran);
    stage.session.folder.assert_one_chain();
}

#[test]
#[ignore = "tests/long.sh"]
fn case_127_a_command_does_the_same_and_reports_what_it_did() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let stage = after_a_denied_turn(&settings(""), prompt, 4);
    let row = stage.wait_status("permission-lost", "");
    assert_eq!(row["actions"].as_array().unwrap()[..3], ["continue", "reconnect", "resend"], "{row}");
    let ran = stage.pilot.run(&["reconnect", "--continue", &stage.session.id()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("your last prompt was sent again"), "{ran:?}");
    assert_works_again(&stage);
    let again = stage.pilot.run(&["reconnect", "--continue", &stage.session.id()]);
    assert_eq!(again.code, Some(4), "{again:?}");
}

/// After a mere reconnect, the unfinished prompt is reported until a new prompt arrives.
#[test]
#[ignore = "tests/long.sh"]
fn case_127_an_unfinished_prompt_is_not_reported_as_done() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let mut stage = after_a_denied_turn(&settings(""), prompt, 4);
    let id = stage.session.id();
    stage.pilot.click(&id, "Reconnect only");
    let row = stage.wait_status("needs-input", "reconnected; its last prompt was not carried out");
    assert_eq!(row["question"], Value::Null, "{row}");
    stage.pilot.click(&id, "Reconnect and continue");
    assert_works_again(&stage);
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
    stage.pilot.end_tray();
}

/// Case 40: a tool that ran must not run twice.
#[test]
fn case_40_a_prompt_whose_tool_ran_is_not_sent_again() {
    let prompt = "SCRIPT:mixed4 Paint the fence";
    let stage = after_a_denied_turn(&settings(""), prompt, 6);
    let id = stage.session.id();
    let refused = stage.pilot.run(&["reconnect", "--resend", &id]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.err.contains("might be done twice"), "{refused:?}");
    stage.pilot.click(&id, "Reconnect and continue");
    assert_works_again(&stage);
    assert_eq!(prompts(&stage.session.folder), [prompt, GO_ON]);
    stage.home.release_tools();
    stage.wait_status("idle", "");
    stage.session.folder.assert_one_chain();
}

/// The denied turn is still running at the click. The prompt is sent after its end.
#[test]
#[ignore = "tests/long.sh"]
fn a_click_during_the_denied_turn_sends_the_prompt_after_its_end() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let stage = Stage::without_person_configured(&settings(""));
    let id = stage.session.id();
    let last = stage.model.hold("denied", 3);
    stage.session.send(prompt);
    stage.model.wait_requested("denied", 3);
    stage.wait_status("permission-lost", "");
    stage.pilot.click(&id, "Reconnect and continue");
    stage.pilot.wait_menu(&id, "it continues when its turn is over");
    assert_eq!(prompts(&stage.session.folder), [prompt]);
    last.release();
    assert_works_again(&stage);
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
    // The first turn ended before the second began, so nothing was sent into it.
    let events = stage.session.folder.events();
    let place =
        |kind: &str, nth: usize| events.iter().enumerate().filter(|(_, e)| e["type"] == kind).nth(nth).unwrap().0;
    assert!(place("assistant.turn_end", 3) < place("user.message", 1));
    stage.session.folder.assert_one_chain();
}

/// Tools that ran after we attached were carried out, so the prompt is not sent again.
#[test]
#[ignore = "tests/long.sh"]
fn the_prompt_of_a_turn_that_regains_permissions_is_not_sent_again() {
    let stage = Stage::without_person_configured(&settings(""));
    let id = stage.session.id();
    let fourth = stage.model.hold("denied", 3);
    stage.session.send("SCRIPT:denied4 Paint the fence");
    stage.model.wait_requested("denied", 3);
    stage.wait_status("permission-lost", "");
    stage.pilot.click(&id, "Reconnect and continue");
    stage.pilot.wait_menu(&id, "it continues when its turn is over");
    fourth.release();
    assert_works_again(&stage);
    stage.wait_status("idle", "done");
    assert_eq!(prompts(&stage.session.folder).len(), 1);
}

fn auto_reconnect_with_delay(delay: Duration) {
    let prompt = "SCRIPT:denied4 Paint the fence";
    let stage = Stage::without_person_configured(&settings("auto-reconnect = true\nresend = true\n"));
    stage.model.set_delay(delay);
    stage.session.send(prompt);
    let patience = SOON + delay * 8;
    let sent = || (prompts(&stage.session.folder).len() == 2).then_some(());
    wait_until(patience, "the prompt is sent again", || stage.session.folder.dump() + &stage.pilot.log(), sent);
    let asked = || stage.session.folder.types().iter().any(|kind| kind == "permission.requested").then_some(());
    wait_until(patience, "it asks us", || stage.session.folder.dump(), asked);
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
    // Nothing was interrupted: all four tools of the first turn were denied, and the turn ended normally.
    let events = stage.session.folder.events();
    let second = events.iter().enumerate().filter(|(_, e)| e["type"] == "user.message").nth(1).unwrap().0;
    let count = |kind: &str| events[..second].iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("tool.execution_complete"), count("assistant.turn_end"), count("abort")), (4, 5, 0));
    assert_works_again(&stage);
    stage.session.folder.assert_one_chain();
}

/// Case 129.
#[test]
#[ignore = "tests/long.sh"]
fn case_129_auto_reconnect_sends_the_prompt_again_after_the_turn() {
    auto_reconnect_with_delay(Duration::ZERO);
}

/// Case 129: with four seconds per answer of the model.
#[test]
#[ignore = "tests/long.sh"]
fn case_129_auto_reconnect_waits_for_a_slow_model() {
    auto_reconnect_with_delay(Duration::from_secs(4));
}

/// Case 129, ten times, run by tests/long.sh.
#[test]
#[ignore = "takes minutes: tests/long.sh"]
fn case_129_auto_reconnect_ten_times() {
    for _ in 0..10 {
        auto_reconnect_with_delay(Duration::from_millis(500));
    }
}

/// Without `resend` it is only reconnected, and the unfinished prompt is reported.
#[test]
#[ignore = "tests/long.sh"]
fn case_129_auto_reconnect_without_resend_reports_the_unfinished_prompt() {
    let stage = Stage::without_person_configured(&settings("auto-reconnect = true\n"));
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.wait_status("needs-input", "reconnected; its last prompt was not carried out");
    assert_eq!(prompts(&stage.session.folder).len(), 1);
}

/// Prompts are sent in the user's name, so a session's own tool may not order that.
#[test]
fn a_tool_of_a_session_may_not_order_a_prompt() {
    let stage = Stage::new(crate::support::person::Manner::Approves);
    let lost = after_a_denied_turn(&settings(""), "SCRIPT:denied3 Paint the fence", 4);
    for flag in ["--continue", "--resend"] {
        let command = lost.pilot.command_with_tray(&["reconnect", flag, &lost.session.id()]);
        let (code, out) = super::actions::run_by_a_tool(&stage, &command);
        assert_eq!(code, "4", "{flag}: {out}");
        assert!(out.contains("must not"), "{flag}: {out}");
    }
    assert_eq!(prompts(&lost.session.folder).len(), 1);
}

/// The user's own next prompt comes just after the end of the denied turn.
fn prompt_just_after_the_denied_turn(millis: u64) {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let own = "SCRIPT:hang And the gate";
    let stage = Stage::without_person_configured(&settings(""));
    let last = stage.model.hold("denied", 3);
    stage.session.send(prompt);
    stage.model.wait_requested("denied", 3);
    stage.wait_status("permission-lost", "");
    stage.pilot.click(&stage.session.id(), "Reconnect and continue");
    stage.pilot.wait_menu(&stage.session.id(), "it continues when its turn is over");
    last.release();
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    let from = Instant::now();
    wait(SOON, || (from.elapsed() >= Duration::from_millis(millis)).then_some(()));
    stage.session.send_as(MessageOptions::new(own));
    let ends = ["another prompt was sent meanwhile", "another turn has begun", "your last prompt was sent again"];
    let log = || stage.pilot.log();
    wait_until(SOON, "the order has ended", log, || ends.iter().any(|end| log().contains(end)).then_some(()));
    // If ours was first, the user's waits in Copilot's queue.
    let two = || Some(prompts(&stage.session.folder)).filter(|sent| sent.len() >= 2);
    let sent = wait_until(SOON, "a second prompt is in the log", log, two);
    if sent[..2] == [prompt, own] {
        let queue = stage.session.call("session.queue.pendingItems", serde_json::json!({}));
        assert_eq!(queue["items"], serde_json::json!([]), "after {millis} ms");
    }
    let sent = prompts(&stage.session.folder);
    assert!(sent[..] == [prompt, own] || sent[..2] == [prompt, prompt], "after {millis} ms: {sent:?}");
}

#[test]
fn case_185_an_old_prompt_is_not_sent_behind_the_users_own() {
    prompt_just_after_the_denied_turn(5);
}

#[test]
#[ignore = "at forty more moments: tests/long.sh"]
fn case_185_an_old_prompt_is_not_sent_behind_the_users_own_at_any_moment() {
    (0..40).for_each(prompt_just_after_the_denied_turn);
}

/// Without a tray, the command waits for the end of the denied turn.
#[test]
#[ignore = "tests/long.sh"]
fn case_186_a_command_that_sent_nothing_does_not_succeed() {
    for kills in [true, false] {
        let mut stage = Stage::without_person_configured(&settings(""));
        let id = stage.session.id();
        let _last = stage.model.hold("denied", 3);
        stage.session.send("SCRIPT:denied3 Paint the fence");
        stage.model.wait_requested("denied", 3);
        stage.wait_status("permission-lost", "");
        let mut one = Staying::start(stage.pilot.command(&["reconnect", "--continue", &id]));
        one.wait_output("it continues when its turn is over");
        one.wait_output("stays connected");
        match kills {
            true => stage.server.kill(),
            false => one.signal(Signal::INT),
        }
        assert_eq!(one.code(), Some(1), "{}", one.output());
        assert!(one.output().contains("it was not told to continue"), "{}", one.output());
        assert_eq!(prompts(&stage.session.folder).len(), 1);
    }
}

/// A file is where the records of the recoveries belong.
#[test]
#[ignore = "tests/long.sh"]
fn case_184_where_attempts_cannot_be_counted_nothing_is_sent_without_asking() {
    let prompt = "SCRIPT:denied3 Paint the fence";
    let stage = Stage::without_person_configured(&settings("auto-reconnect = true\nresend = true\n"));
    let (id, state) = (stage.session.id(), stage.pilot.user().join(".local/state/pilotlight"));
    std::fs::write(state.join("sessions"), "").unwrap();
    stage.session.send(prompt);
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    let log = || stage.pilot.log();
    let said = || log().contains("nothing is sent automatically: Pilotlight cannot count").then_some(());
    wait_until(SOON, "nothing is sent automatically", log, said);
    let is_refused = |why: &str| {
        for arguments in [&["reconnect", "--continue", &id][..], &["reconnect", "--resend", &id], &["reconnect", &id]] {
            for ran in [stage.pilot.run(arguments), stage.pilot.run_without_tray(arguments)] {
                assert!(ran.code == Some(4) && ran.err.contains(why), "{ran:?}");
            }
        }
    };
    // Nor can the session be locked, so there is nothing to ask.
    is_refused("cannot tell whether another Pilotlight is busy with it");
    // A folder is in the place of its record alone.
    let record = Ledger::new(Some(&state)).page(&pilotlight_agents::home::Home::at(&stage.home.dir()), &id);
    std::fs::remove_file(state.join("sessions")).unwrap();
    std::fs::create_dir_all(state.join(format!("sessions/{}.json", record.key()))).unwrap();
    is_refused("cannot ask you without a terminal");
    assert_eq!(prompts(&stage.session.folder), [prompt]);
    // A person is asked each time.
    for key in ["n", "y"] {
        let terminal = Tmux::with_exit_code(&stage.pilot.command(&["reconnect", "--continue", &id]), 240, 50);
        terminal.shows("Recover it anyway, this once?");
        terminal.press(&[key, "Enter"]);
        terminal.shows(if key == "n" { "left as it is" } else { "your last prompt was sent again" });
    }
    assert_eq!(prompts(&stage.session.folder), [prompt, prompt]);
}
