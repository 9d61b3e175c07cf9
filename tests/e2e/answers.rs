//! Questions, forms and plans of a session are answered from Pilotlight, once it is attached.
//!
//! The CLI does not validate answers. The tests read the given answer from what the model or the tool receives.

use super::stage::Stage;
use super::waiting::Asking;
use crate::support::freeze::freeze;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::Manner;
use crate::support::pilotlight::{CommandOutput, Pilot};
use crate::support::process::signal;
use crate::support::server::Session;
use crate::support::terminal::Terminal;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Popups are not delayed after the start, so that the tests need not wait. A terminal that a test opens for one command
/// is not a person's.
const AT_ONCE: &str = "[actions]\nscripts-may-answer = true\n[notifications]\nafter-start = \"1ms\"\n";
const COLOR: &str = "asks: \"Which color?\" red or blue";
const DATABASE: &str = "asks: \"Which database shall I drop?\" test or prod";

/// A session whose person does not answer, with Pilotlight attached.
fn attached() -> Stage {
    let stage = Stage::with_config(Manner::Waits, AT_ONCE);
    reconnect(&stage.pilot, &stage.session.id());
    stage
}

fn reconnect(pilot: &Pilot, id: &str) {
    let ran = pilot.run(&["reconnect", id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// The results of a session's tools, in order.
fn results(session: &Session) -> Vec<String> {
    let events = session.folder.events();
    let ended = events.iter().filter(|event| event["type"] == "tool.execution_complete");
    let words = |event: &Value| {
        let data = &event["data"];
        let words = data["result"]["content"].as_str().or(data["error"]["message"].as_str());
        words.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
    };
    ended.map(words).collect()
}

/// Waits until `count` tools have ended, and returns the last result.
fn result(session: &Session, count: usize) -> String {
    session.folder.wait_nth("tool.execution_complete", count);
    results(session).pop().unwrap()
}

/// The data of each event that ends a question, in order.
fn ends(session: &Session) -> Vec<Value> {
    let types = ["user_input.completed", "elicitation.completed", "exit_plan_mode.completed"];
    let read = session.call("session.eventLog.read", json!({"types": types, "max": 1000}));
    let mut ends: Vec<Value> = read["events"].as_array().unwrap().iter().map(|event| event["data"].clone()).collect();
    ends.iter_mut().for_each(|end| drop(end.as_object_mut().unwrap().remove("requestId")));
    ends
}

fn actions(row: &Value) -> Vec<&str> {
    row["actions"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

/// Asserts that the command was refused for this reason.
fn assert_refused(ran: &CommandOutput, why: &str) {
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains(why), "{why:?}: {ran:?}");
}

/// Runs the program on a terminal, which finally shows its exit code.
fn on_terminal(pilot: &Pilot, arguments: &[&str]) -> Tmux {
    let command = pilot.command_with_tray(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\"; echo \"exited with $?\"; exec sleep 600"]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?)))).env("TERM", "xterm-256color");
    Tmux::start(&shell, 110, 30)
}

/// Waits until the terminal shows this text, possibly wrapped.
fn wait_screen(terminal: &Tmux, what: &str) {
    let contains = || terminal.screen().split_whitespace().collect::<Vec<_>>().join(" ").contains(what).then_some(());
    wait_until(SOON, &format!("the terminal shows {what:?}"), || terminal.screen(), contains);
}

/// The id of the open question, from the refusal of an `answer` without an id.
fn open(pilot: &Pilot, id: &str) -> String {
    let ran = pilot.run(&["answer", id, "--choice", "1"]);
    let named = ran.err.split_once("`--request ").and_then(|(_, rest)| rest.split_once('`'));
    named.unwrap_or_else(|| panic!("no question is named: {ran:?}")).0.to_owned()
}

#[test]
fn a_question_can_be_answered_by_a_command_in_every_way() {
    let stage = attached();
    let (id, pilot) = (stage.session.id(), &stage.pilot);
    assert_refused(&pilot.run(&["answer", &id, "--choice", "1"]), "it asks nothing that Pilotlight can see");
    for (nth, (arguments, expected)) in (1..).zip([
        (&["--choice", "2"][..], "User selected: blue"),
        (&["red"], "User selected: red"),
        (&["--text", "mauve & <b>"], "User responded: mauve & <b>"),
        (&["mauve"], "User responded: mauve"),
    ]) {
        stage.session.send(&format!("SCRIPT:ask Paint the fence {nth}"));
        let row = pilot.wait_status_in_tray(&id, "needs-input", COLOR);
        assert!(actions(&row).contains(&"answer"), "{row}");
        let open = open(pilot, &id);
        let question = json!({"id": open, "text": "Which color?", "choices": ["red", "blue"]});
        assert_eq!(row["question"], question, "{row}");
        let answer = |arguments: &[&str]| pilot.run(&[&["answer", &id, "--request", &open], arguments].concat());
        // Invalid answers are not sent, and neither are answers without an id or without a value.
        assert_refused(&pilot.run(&["answer", &id, "--request", "nope", "--choice", "1"]), "no longer open");
        assert_refused(&pilot.run(&["answer", &id, "red"]), "say which question");
        for (arguments, why) in [
            (&["--choice", "3"][..], "no number 3"),
            (&["--choice", "0"], "no number 0"),
            (&["--text", " "], "an empty text is no answer"),
            (&["--decline"], "not declined"),
            (&[], "cannot ask you without a terminal"),
        ] {
            assert_refused(&answer(arguments), why);
        }
        let ran = answer(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let shown = format!("    Which color?\nIts id, for --request: {open}\nIts choices:\n    1) red\n    2) blue\n");
        assert!(
            ran.out.contains(&shown)
                && ran.out.ends_with(&format!("answered “{}”\n", expected.split_once(": ").unwrap().1)),
            "{ran:?}"
        );
        assert_eq!(result(&stage.session, nth), expected);
        pilot.wait_status_in_tray(&id, "idle", "");
        assert_eq!(pilot.row_in_tray(&id).unwrap()["question"], Value::Null);
    }
    // The late answer of the client that was asked first does no harm.
    stage.person.set_manner(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the gate");
    pilot.wait_status_in_tray(&id, "idle", "");
    assert_eq!(ends(&stage.session).len(), 4);
    stage.session.folder.assert_one_chain();
    let log = pilot.log();
    for word in ["color", "mauve", "User"] {
        assert!(!log.contains(word), "no content in the log: {word:?}: {log}");
    }
    let diagnostics = pilot.run(&["diagnostics"]);
    assert!(!diagnostics.out.contains("color") && !diagnostics.out.contains("mauve"), "{diagnostics:?}");
}

#[test]
fn a_question_is_shown_and_answered_on_a_terminal() {
    let stage = attached();
    let id = stage.session.id();
    stage.session.send("SCRIPT:ask Paint the fence");
    stage.pilot.wait_status_in_tray(&id, "needs-input", COLOR);
    let answer = |typed: &[&str]| {
        let terminal = on_terminal(&stage.pilot, &["answer", &id]);
        wait_screen(&terminal, "Which color? Its id, for --request:");
        wait_screen(
            &terminal,
            "Its choices: 1) red 2) blue Your answer (1 to 2, or any text; Enter alone leaves it open):",
        );
        terminal.press(typed);
        terminal
    };
    let terminal = answer(&["Enter"]);
    wait_screen(&terminal, "the question was left open exited with 4");
    let terminal = answer(&["9", "Enter"]);
    wait_screen(&terminal, "no number 9: the question was left open exited with 4");
    assert!(results(&stage.session).is_empty());
    let terminal = answer(&["2", "Enter"]);
    wait_screen(&terminal, "answered “blue” exited with 0");
    assert_eq!(result(&stage.session, 1), "User selected: blue");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_choice_can_be_clicked_in_the_menu() {
    let stage = attached();
    let id = stage.session.id();
    stage.session.send("SCRIPT:ask Paint the fence");
    stage.pilot.wait_status_in_tray(&id, "needs-input", COLOR);
    for text in ["Asks: Which color?", "Answer “red”", "Answer in your own words…"] {
        stage.pilot.wait_menu(&id, text);
    }
    stage.pilot.click(&id, "Answer “blue”");
    assert_eq!(result(&stage.session, 1), "User selected: blue");
    stage.pilot.wait_status_in_tray(&id, "idle", "");
    assert_eq!(ends(&stage.session), [json!({"answer": "blue", "wasFreeform": false})]);
}

#[test]
fn a_choice_can_be_clicked_on_a_popup() {
    let stage = attached();
    let popups = stage.pilot.popups();
    stage.session.send("SCRIPT:ask Paint the fence");
    // For a moment the question may be known from the log alone; then the popup is sent again with the choices.
    let has_choices = || {
        popups
            .received()
            .into_iter()
            .rev()
            .find(|popup| popup.actions.get(..2).is_some_and(|first| first == ["choice-1", "red"]))
    };
    let popup = wait_until(SOON, "a popup has the choices", || format!("{:#?}", popups.received()), has_choices);
    let buttons = ["choice-1", "red", "choice-2", "blue", "answer", "Answer…", "default", ""];
    assert_eq!(popup.actions[..8], buttons, "{popup:#?}");
    assert!(popup.title == "project waits for your answer" && popup.body.starts_with("Which color?\n"), "{popup:#?}");
    popups.click_after_reading(popup.number, "choice-1");
    assert_eq!(result(&stage.session, 1), "User selected: red");
    stage.pilot.wait_status_in_tray(&stage.session.id(), "idle", "");
}

/// An attached session in which a tool of an MCP server will ask a question.
fn asker() -> Asking {
    let asker = Asking::before(AT_ONCE);
    asker.session.send("SCRIPT:plain Hello");
    asker.session.folder.wait("assistant.turn_end");
    reconnect(&asker.pilot, &asker.session.id());
    asker
}

/// Makes the tool ask, once the row no longer shows an earlier question with the same words.
fn ask(asker: &Asking, prompt: &str) -> Value {
    asker.pilot.wait_status_in_tray(&asker.session.id(), "idle", "");
    asker.session.send(&format!("SCRIPT:mcp {prompt}"));
    asker.pilot.wait_status_in_tray(&asker.session.id(), "needs-input", DATABASE)
}

#[test]
#[ignore = "tests/long.sh"]
fn a_tools_form_can_be_filled_in_declined_and_cancelled() {
    let asker = asker();
    let id = asker.session.id();
    let row = ask(&asker, "Drop one");
    assert!(actions(&row).contains(&"answer"), "{row}");
    // The name of the asking server is shown, and free text is no valid answer.
    asker.pilot.wait_menu(&id, "Asks: asker: Which database shall I drop?");
    assert_refused(
        &asker.pilot.run(&["answer", &id, "--request", &open(&asker.pilot, &id), "--text", "prod"]),
        "it takes one of its choices",
    );
    asker.pilot.click(&id, "Answer “prod”");
    result(&asker.session, 1);
    ask(&asker, "Drop two");
    let ran = asker.pilot.run(&["answer", &id, "--request", &open(&asker.pilot, &id), "test"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    result(&asker.session, 2);
    ask(&asker, "Drop three");
    asker.pilot.click(&id, "Decline to answer");
    result(&asker.session, 3);
    ask(&asker, "Drop four");
    let ran = asker.pilot.run(&["answer", &id, "--request", &open(&asker.pilot, &id), "--cancel"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    result(&asker.session, 4);
    let accepted = |db: &str| json!({"action": "accept", "content": {"db": db}});
    let all = [accepted("prod"), accepted("test"), json!({"action": "decline"}), json!({"action": "cancel"})];
    assert_eq!(ends(&asker.session), all);
    asker.pilot.wait_status_in_tray(&id, "idle", "");
    let log = asker.pilot.log();
    assert!(!log.contains("database") && !log.contains("prod"), "no content in the log: {log}");
}

/// Somebody else answers first: that is reported, and their answer counts.
#[test]
fn a_question_that_somebody_else_answered_is_not_answered_again() {
    let asker = asker();
    let id = asker.session.id();
    ask(&asker, "Drop one");
    let terminal = on_terminal(&asker.pilot, &["answer", &id]);
    wait_screen(&terminal, "1) test 2) prod Your answer");
    asker.person.set_manner(Manner::Refuses);
    result(&asker.session, 1);
    asker.pilot.wait_status_in_tray(&id, "idle", "");
    terminal.press(&["2", "Enter"]);
    wait_screen(&terminal, "it asks nothing that Pilotlight can see");
    // Another question with the same text is a different question.
    asker.person.set_manner(Manner::Waits);
    ask(&asker, "Drop two");
    let terminal = on_terminal(&asker.pilot, &["answer", &id]);
    wait_screen(&terminal, "1) test 2) prod Your answer");
    asker.session.abort();
    asker.pilot.wait_status_in_tray(&id, "idle", "stopped");
    ask(&asker, "Drop three");
    terminal.press(&["2", "Enter"]);
    wait_screen(&terminal, "no longer open");
    assert_eq!(ends(&asker.session), [json!({"action": "decline"})]);
    asker.pilot.wait_status_in_tray(&id, "needs-input", DATABASE);
}

/// Two clients answer at once: one answer counts, and the command reports truthfully whether it was its own.
fn answer_at_once(rounds: usize) -> usize {
    let stage = attached();
    let id = stage.session.id();
    // When they meet depends on the machine. The one that was late gets a head start in the next round, so most rounds
    // are close.
    let (mut ours, mut head_start, mut step) = (0, 200_u64, 128);
    for round in 1..=rounds {
        stage.person.set_manner(Manner::Waits);
        stage.pilot.wait_status_in_tray(&id, "idle", ""); // Not an earlier question with the same words.
        stage.session.send(&format!("SCRIPT:ask Paint the fence {round}"));
        stage.pilot.wait_status_in_tray(&id, "needs-input", COLOR);
        let mut command =
            stage.pilot.command_with_tray(&["answer", &id, "--request", &open(&stage.pilot, &id), "blue"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test tries different moments of two answers")]
        std::thread::sleep(Duration::from_millis(head_start));
        stage.person.set_manner(Manner::Approves);
        let output = started.wait_with_output().unwrap();
        result(&stage.session, round);
        let all = ends(&stage.session);
        assert_eq!(all.len(), round, "one answer per question: {all:?}");
        let was_ours = all[round - 1] == json!({"answer": "blue", "wasFreeform": false});
        assert_eq!(output.status.code(), Some(if was_ours { 0 } else { 4 }), "{output:?}: {:?}", all[round - 1]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let reasons = ["no longer open", "it asks nothing", "somebody else answered it first", "reports no question"];
        assert!(was_ours || reasons.iter().any(|reason| stderr.contains(reason)), "{stderr}");
        ours += usize::from(was_ours);
        head_start = if was_ours { head_start.saturating_sub(step) } else { head_start + step };
        step = (step / 2).max(8);
    }
    stage.session.folder.assert_one_chain();
    ours
}

#[test]
#[ignore = "tests/long.sh"]
fn of_two_simultaneous_answers_one_counts() {
    answer_at_once(6);
}

#[test]
#[ignore = "minutes: tests/long.sh"]
fn of_many_simultaneous_answers_one_counts_each_time() {
    let ours = answer_at_once(60);
    eprintln!("{ours} of 60 answers were ours");
    assert!((1..60).contains(&ours), "they did not meet: {ours}");
}

/// While an answer is sent, its question is answered elsewhere and replaced by another with the same text. The answer
/// never reaches that one.
fn replace_the_question(rounds: usize) -> usize {
    let stage = attached();
    let id = stage.session.id();
    let asked = || {
        let read = stage.session.call("session.eventLog.read", json!({"types": ["user_input.requested"], "max": 1000}));
        read["events"].as_array().unwrap().len()
    };
    let mut ours = 0;
    for round in 1..=rounds {
        let before = 2 * (round - 1);
        stage.person.set_manner(Manner::Waits);
        stage.pilot.wait_status_in_tray(&id, "idle", ""); // Not an earlier question with the same words.
        stage.session.send(&format!("SCRIPT:ask Paint the fence {round}"));
        stage.pilot.wait_status_in_tray(&id, "needs-input", COLOR);
        let mut command =
            stage.pilot.command_with_tray(&["answer", &id, "--request", &open(&stage.pilot, &id), "blue"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test tries different moments of two answers")]
        std::thread::sleep(Duration::from_millis((round as u64 * 37) % 230));
        stage.person.set_manner(Manner::Approves);
        result(&stage.session, before + 1);
        stage.person.set_manner(Manner::Waits);
        stage.session.send(&format!("SCRIPT:ask Paint the gate {round}"));
        let is_asked = || (asked() == before + 2).then_some(());
        wait_until(SOON, "the next question is asked", || stage.session.folder.dump(), is_asked);
        let output = started.wait_with_output().unwrap();
        // The server has handled all earlier requests when it answers this.
        stage.session.call("session.metadata.activity", json!({}));
        let all = ends(&stage.session);
        assert_eq!(all.len(), before + 1, "another question was answered: {output:?} {all:?}");
        let was_ours = all[before] == json!({"answer": "blue", "wasFreeform": false});
        assert_eq!(output.status.code(), Some(if was_ours { 0 } else { 4 }), "{output:?}: {:?}", all[before]);
        ours += usize::from(was_ours);
        stage.person.set_manner(Manner::Approves);
        result(&stage.session, before + 2);
    }
    stage.session.folder.assert_one_chain();
    ours
}

#[test]
fn an_answer_does_not_reach_a_later_question_with_the_same_text() {
    replace_the_question(3);
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn an_answer_does_not_reach_a_later_question_with_the_same_text_often() {
    let ours = replace_the_question(30);
    eprintln!("{ours} of 30 answers were ours");
}

/// A frozen server may have received the answer, so it is reported neither as done nor as failed.
#[test]
#[ignore = "tests/long.sh"]
fn an_answer_to_a_frozen_server_is_reported_as_uncertain() {
    let asker = asker();
    let id = asker.session.id();
    ask(&asker, "Drop one");
    let terminal = on_terminal(&asker.pilot, &["answer", &id]);
    wait_screen(&terminal, "1) test 2) prod Your answer");
    freeze(asker.server.pid());
    terminal.press(&["2", "Enter"]);
    wait_screen(&terminal, "may have happened: ");
    wait_screen(&terminal, "exited with 5");
    signal(asker.server.pid(), Signal::CONT);
    // Here it has.
    result(&asker.session, 1);
    assert_eq!(ends(&asker.session), [json!({"action": "accept", "content": {"db": "prod"}})]);
    asker.pilot.wait_status_in_tray(&id, "idle", "");
}

#[test]
fn a_plan_can_be_approved_interactively_or_rejected() {
    let stage = attached();
    let (id, pilot) = (stage.session.id(), &stage.pilot);
    let present = |n: usize| {
        pilot.wait_status_in_tray(&id, "idle", ""); // Not an earlier plan with the same words.
        stage.session.set_mode("plan");
        stage.session.send(&format!("SCRIPT:plan Paint the fence {n}"));
        pilot.wait_status_in_tray(&id, "needs-input", "Approve, and go on interactively or Do not approve")
    };
    let row = present(1);
    assert_eq!(row["question"]["text"], "Paint the fence white.", "{row}");
    pilot.click(&id, "Answer “Approve, and go on interactively”");
    assert_eq!(result(&stage.session, 1), "Plan approved! Exited plan mode.");
    present(2);
    let ran = pilot.run(&["answer", &id, "--request", &open(pilot, &id), "--text", "make it blue"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(result(&stage.session, 2), "Plan not approved. User feedback:");
    present(3);
    let ran = pilot.run(&["answer", &id, "--request", &open(pilot, &id), "--decline"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(result(&stage.session, 3), "Plan not approved. User feedback:");
    present(4);
    assert_refused(&pilot.run(&["answer", &id, "--request", &open(pilot, &id), "--choice", "3"]), "no number 3");
    let ran = pilot.run(&["answer", &id, "--request", &open(pilot, &id), "--choice", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let approved = json!({"approved": true, "selectedAction": "interactive"});
    let blue = json!({"approved": false, "feedback": "make it blue"});
    result(&stage.session, 4);
    assert_eq!(ends(&stage.session), [approved.clone(), blue, json!({"approved": false}), approved]);
    pilot.wait_status_in_tray(&id, "idle", "");
    let log = pilot.log();
    assert!(!log.contains("fence") && !log.contains("blue"), "no content in the log: {log}");
}

/// Without being attached, no answer is offered, and the refusal names where to answer.
#[test]
#[ignore = "tests/long.sh"]
fn without_being_attached_nothing_can_be_answered() {
    let stage = Stage::new(Manner::Waits);
    let id = stage.session.id();
    stage.session.send("SCRIPT:ask Paint the fence");
    let row = stage.wait_status("needs-input", COLOR);
    assert!(!actions(&row).contains(&"answer"), "{row}");
    for ran in [stage.pilot.run(&["answer", &id, "red"]), stage.pilot.run_without_tray(&["answer", &id, "red"])] {
        assert_refused(&ran, "reconnect first, or answer it in the program that runs it");
    }
    let explained = stage.pilot.run(&["explain", &id]);
    assert!(
        explained.out.contains("answer          refused — reconnect first, or answer it in the program"),
        "{explained:?}"
    );
    // Once attached, the earlier question can be answered.
    reconnect(&stage.pilot, &id);
    let row = stage.pilot.wait_status_in_tray(&id, "needs-input", COLOR);
    assert!(actions(&row).contains(&"answer"), "{row}");
    let explained = stage.pilot.run(&["explain", &id]);
    assert!(explained.out.contains("asks you        \"Which color?\", asked "), "{explained:?}");
    let ran = stage.pilot.run(&["answer", &id, "--request", &open(&stage.pilot, &id), "red"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(result(&stage.session, 1), "User selected: red");
}

/// The terminal of a `--ui-server` shows the same form, which disappears when it is answered here.
#[test]
#[ignore = "tests/long.sh"]
fn a_form_in_a_terminal_with_a_server_can_be_answered_from_the_menu() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Hello");
    terminal.folder.wait("assistant.turn_end");
    reconnect(&pilot, &id);
    terminal.enter("SCRIPT:form Paint the fence");
    terminal.wait_screen("Which color?");
    let row = pilot.wait_status_in_tray(&id, "needs-input", COLOR);
    assert!(actions(&row).contains(&"answer"), "{row}");
    pilot.click(&id, "Answer “blue”");
    terminal.folder.wait("tool.execution_complete");
    pilot.wait_status_in_tray(&id, "idle", "");
    let event = terminal.folder.events().into_iter().find(|event| event["type"] == "tool.execution_complete").unwrap();
    assert!(event["data"]["result"].to_string().contains("blue"), "{event}");
}
