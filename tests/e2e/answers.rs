//! What a session asks its user is answered from Pilotlight, once it is attached: questions, forms, plans.
//!
//! The CLI checks no answer. What it was given is read from what the model, or the tool, gets of it.

use super::stage::Stage;
use super::waiting::Asking;
use crate::support::freeze::freeze;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::Manner;
use crate::support::pilotlight::{Pilot, Ran};
use crate::support::process::signal;
use crate::support::server::Session;
use crate::support::terminal::Terminal;
use crate::support::tmux::Tmux;
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Nothing is held back after the start: a test does not wait for what is not its matter.
const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\n";
const COLOR: &str = "asks: \"Which color?\" (red, blue)";
const DATABASE: &str = "asks: \"Which database shall I drop?\" (test, prod)";

/// A session whose person waits, and which Pilotlight is attached to.
fn attached() -> Stage {
    let stage = Stage::set_configured(Manner::Waits, AT_ONCE);
    reconnect(&stage.pilot, &stage.session.id());
    stage
}

fn reconnect(pilot: &Pilot, id: &str) {
    let ran = pilot.run(&["reconnect", id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// What the tools of a session came to, in order.
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

/// Waits until so many tools have ended, and says what the last came to.
fn result(session: &Session, count: usize) -> String {
    session.folder.wait_nth("tool.execution_complete", count);
    results(session).pop().unwrap()
}

/// What was told of the end of each question, in order.
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

/// It was refused, for this reason.
fn refuses(ran: &Ran, why: &str) {
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.err.contains(why), "{why:?}: {ran:?}");
}

/// The program on a terminal, which says at last what it exited with.
fn on_terminal(pilot: &Pilot, arguments: &[&str]) -> Tmux {
    let mine = pilot.command_beside(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\"; echo \"exited with $?\"; exec sleep 600"]);
    shell.arg(mine.get_program()).args(mine.get_args());
    shell.envs(mine.get_envs().filter_map(|(key, value)| Some((key, value?)))).env("TERM", "xterm-256color");
    Tmux::start(&shell, 110, 30)
}

fn shows(terminal: &Tmux, what: &str) {
    let says = || terminal.screen().split_whitespace().collect::<Vec<_>>().join(" ").contains(what).then_some(());
    wait_until(SOON, &format!("the terminal shows {what:?}"), || terminal.screen(), says);
}

/// The id of the question that is open, as `answer` names it to who says an answer without it.
fn open(pilot: &Pilot, id: &str) -> String {
    let ran = pilot.run(&["answer", id, "--choice", "1"]);
    let named = ran.err.split_once("`--request ").and_then(|(_, rest)| rest.split_once('`'));
    named.unwrap_or_else(|| panic!("no question is named: {ran:?}")).0.to_owned()
}

#[test]
fn a_question_is_answered_by_a_command_in_every_way() {
    let stage = attached();
    let (id, pilot) = (stage.session.id(), &stage.pilot);
    refuses(&pilot.run(&["answer", &id, "--choice", "1"]), "it asks nothing that Pilotlight can see");
    for (nth, (arguments, came)) in (1..).zip([
        (&["--choice", "2"][..], "User selected: blue"),
        (&["red"], "User selected: red"),
        (&["--text", "mauve & <b>"], "User responded: mauve & <b>"),
        (&["mauve"], "User responded: mauve"),
    ]) {
        stage.session.send(&format!("SCRIPT:ask Paint the fence {nth}"));
        let row = pilot.told_beside(&id, "needs-input", COLOR);
        assert!(actions(&row).contains(&"answer"), "{row}");
        assert_eq!(row["question"], json!({"text": "Which color?", "choices": ["red", "blue"]}), "{row}");
        let open = open(pilot, &id);
        let answer = |arguments: &[&str]| pilot.run(&[&["answer", &id, "--request", &open], arguments].concat());
        // What is no answer is not sent, and nothing is where nobody says one, or not to which question.
        refuses(&pilot.run(&["answer", &id, "--request", "nope", "--choice", "1"]), "no longer open");
        refuses(&pilot.run(&["answer", &id, "red"]), "say which question");
        for (arguments, why) in [
            (&["--choice", "3"][..], "no number 3"),
            (&["--choice", "0"], "no number 0"),
            (&["--text", " "], "an empty text is no answer"),
            (&["--decline"], "not declined"),
            (&[], "no terminal here to ask you on"),
        ] {
            refuses(&answer(arguments), why);
        }
        let ran = answer(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let shown = "    Which color?\nIts choices:\n    1) red\n    2) blue\n";
        assert!(ran.out.contains(shown) && ran.out.ends_with("answered\n"), "{ran:?}");
        assert_eq!(result(&stage.session, nth), came);
        pilot.told_beside(&id, "idle", "");
        assert_eq!(pilot.row_beside(&id).unwrap()["question"], Value::Null);
    }
    // The client that was asked first comes too late with its own answer, and hurts nothing.
    stage.person.now(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the gate");
    pilot.told_beside(&id, "idle", "");
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
fn a_question_is_answered_on_a_terminal_that_shows_it() {
    let stage = attached();
    let id = stage.session.id();
    stage.session.send("SCRIPT:ask Paint the fence");
    stage.pilot.told_beside(&id, "needs-input", COLOR);
    let ask = |typed: &[&str]| {
        let terminal = on_terminal(&stage.pilot, &["answer", &id]);
        shows(
            &terminal,
            "Which color? Its choices: 1) red 2) blue Your answer (1 to 2, or any text; Enter alone leaves it open):",
        );
        terminal.press(typed);
        terminal
    };
    let terminal = ask(&["Enter"]);
    shows(&terminal, "the question was left open exited with 4");
    let terminal = ask(&["9", "Enter"]);
    shows(&terminal, "no number 9: it was left open exited with 4");
    assert!(results(&stage.session).is_empty());
    let terminal = ask(&["2", "Enter"]);
    shows(&terminal, "answered exited with 0");
    assert_eq!(result(&stage.session, 1), "User selected: blue");
}

#[test]
fn a_choice_is_clicked_in_the_menu() {
    let stage = attached();
    let id = stage.session.id();
    stage.session.send("SCRIPT:ask Paint the fence");
    stage.pilot.told_beside(&id, "needs-input", COLOR);
    for says in ["Asks: Which color?", "Answer “red”", "Answer in your own words…"] {
        stage.pilot.menu_says(&id, says);
    }
    stage.pilot.click(&id, "Answer “blue”");
    assert_eq!(result(&stage.session, 1), "User selected: blue");
    stage.pilot.told_beside(&id, "idle", "");
    assert_eq!(ends(&stage.session), [json!({"answer": "blue", "wasFreeform": false})]);
}

#[test]
fn a_choice_is_clicked_on_a_popup() {
    let stage = attached();
    let popups = stage.pilot.popups();
    stage.session.send("SCRIPT:ask Paint the fence");
    // The question may be told by the log alone for a moment; then the popup comes anew.
    let has_choices = || {
        popups
            .taken()
            .into_iter()
            .rev()
            .find(|popup| popup.actions.get(..2).is_some_and(|first| first == ["choice-1", "red"]))
    };
    let popup = wait_until(SOON, "a popup has the choices", || format!("{:#?}", popups.taken()), has_choices);
    let buttons = ["choice-1", "red", "choice-2", "blue", "answer", "Answer…", "default", ""];
    assert_eq!(popup.actions[..8], buttons, "{popup:#?}");
    assert!(popup.title == "project waits for your answer" && popup.body.starts_with("Which color?\n"), "{popup:#?}");
    popups.click_read(popup.number, "choice-1");
    assert_eq!(result(&stage.session, 1), "User selected: red");
    stage.pilot.told_beside(&stage.session.id(), "idle", "");
}

/// A session that is attached to, in which a tool of an MCP server will ask.
fn asker() -> Asking {
    let asker = Asking::quiet(AT_ONCE);
    asker.session.send("SCRIPT:plain Hello");
    asker.session.folder.wait("assistant.turn_end");
    reconnect(&asker.pilot, &asker.session.id());
    asker
}

/// Has it ask.
fn asks(asker: &Asking, prompt: &str) -> Value {
    asker.session.send(&format!("SCRIPT:mcp {prompt}"));
    asker.pilot.told_beside(&asker.session.id(), "needs-input", DATABASE)
}

#[test]
fn a_tools_form_is_filled_in_declined_and_put_away() {
    let asker = asker();
    let id = asker.session.id();
    let row = asks(&asker, "Drop one");
    assert!(actions(&row).contains(&"answer"), "{row}");
    // Whose tool asks is shown; any text is no answer to it.
    asker.pilot.menu_says(&id, "Asks: asker: Which database shall I drop?");
    refuses(
        &asker.pilot.run(&["answer", &id, "--request", &open(&asker.pilot, &id), "--text", "prod"]),
        "it takes one of its choices",
    );
    asker.pilot.click(&id, "Answer “prod”");
    result(&asker.session, 1);
    asks(&asker, "Drop two");
    let ran = asker.pilot.run(&["answer", &id, "--request", &open(&asker.pilot, &id), "test"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    result(&asker.session, 2);
    asks(&asker, "Drop three");
    asker.pilot.click(&id, "Decline to answer");
    result(&asker.session, 3);
    asks(&asker, "Drop four");
    let ran = asker.pilot.run(&["answer", &id, "--request", &open(&asker.pilot, &id), "--cancel"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    result(&asker.session, 4);
    let accepted = |db: &str| json!({"action": "accept", "content": {"db": db}});
    let all = [accepted("prod"), accepted("test"), json!({"action": "decline"}), json!({"action": "cancel"})];
    assert_eq!(ends(&asker.session), all);
    asker.pilot.told_beside(&id, "idle", "");
    let log = asker.pilot.log();
    assert!(!log.contains("database") && !log.contains("prod"), "no content in the log: {log}");
}

/// Somebody else is first: that is said, and theirs is what counts.
#[test]
fn a_question_that_somebody_else_answered_is_not_answered() {
    let asker = asker();
    let id = asker.session.id();
    asks(&asker, "Drop one");
    let terminal = on_terminal(&asker.pilot, &["answer", &id]);
    shows(&terminal, "1) test 2) prod Your answer");
    asker.person.now(Manner::Refuses);
    result(&asker.session, 1);
    asker.pilot.told_beside(&id, "idle", "");
    terminal.press(&["2", "Enter"]);
    shows(&terminal, "it asks nothing that Pilotlight can see");
    // Another one of the same words is another question.
    asker.person.now(Manner::Waits);
    asks(&asker, "Drop two");
    let terminal = on_terminal(&asker.pilot, &["answer", &id]);
    shows(&terminal, "1) test 2) prod Your answer");
    asker.session.abort();
    asker.pilot.told_beside(&id, "idle", "stopped");
    asks(&asker, "Drop three");
    terminal.press(&["2", "Enter"]);
    shows(&terminal, "no longer open");
    assert_eq!(ends(&asker.session), [json!({"action": "decline"})]);
    asker.pilot.told_beside(&id, "needs-input", DATABASE);
}

/// Two answer at once: one answer counts, and who is told that it was theirs is told the truth.
fn two_at_once(rounds: usize) -> usize {
    let stage = attached();
    let id = stage.session.id();
    // Where they meet depends on the machine: whoever was late is given a start the next time, so that most rounds are close.
    let (mut ours, mut start, mut step) = (0, 200_u64, 128);
    for round in 1..=rounds {
        stage.person.now(Manner::Waits);
        stage.session.send(&format!("SCRIPT:ask Paint the fence {round}"));
        stage.pilot.told_beside(&id, "needs-input", COLOR);
        let mut command = stage.pilot.command_beside(&["answer", &id, "--request", &open(&stage.pilot, &id), "blue"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the moments of two who answer are what is tried")]
        std::thread::sleep(Duration::from_millis(start));
        stage.person.now(Manner::Approves);
        let output = started.wait_with_output().unwrap();
        result(&stage.session, round);
        let all = ends(&stage.session);
        assert_eq!(all.len(), round, "one answer a question: {all:?}");
        let was_ours = all[round - 1] == json!({"answer": "blue", "wasFreeform": false});
        assert_eq!(output.status.code(), Some(if was_ours { 0 } else { 4 }), "{output:?}: {:?}", all[round - 1]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let over = ["no longer open", "it asks nothing", "somebody else answered it first", "it was answered just now"];
        assert!(was_ours || over.iter().any(|over| said.contains(over)), "{said}");
        ours += usize::from(was_ours);
        start = if was_ours { start.saturating_sub(step) } else { start + step };
        step = (step / 2).max(8);
    }
    stage.session.folder.assert_one_chain();
    ours
}

#[test]
fn of_two_answers_at_once_one_counts_and_is_told() {
    two_at_once(6);
}

#[test]
#[ignore = "minutes: tests/long.sh"]
fn of_many_answers_at_once_one_counts_each_time() {
    let ours = two_at_once(60);
    eprintln!("{ours} of 60 answers were ours");
    assert!((1..60).contains(&ours), "they did not meet: {ours}");
}

/// While an answer is on its way, its question is answered elsewhere, and another one of the same words takes its place: that one is
/// never hit.
fn another_takes_its_place(rounds: usize) -> usize {
    let stage = attached();
    let id = stage.session.id();
    let asked = || {
        let read = stage.session.call("session.eventLog.read", json!({"types": ["user_input.requested"], "max": 1000}));
        read["events"].as_array().unwrap().len()
    };
    let mut ours = 0;
    for round in 1..=rounds {
        let before = 2 * (round - 1);
        stage.person.now(Manner::Waits);
        stage.session.send(&format!("SCRIPT:ask Paint the fence {round}"));
        stage.pilot.told_beside(&id, "needs-input", COLOR);
        let mut command = stage.pilot.command_beside(&["answer", &id, "--request", &open(&stage.pilot, &id), "blue"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the moments of two who answer are what is tried")]
        std::thread::sleep(Duration::from_millis((round as u64 * 37) % 230));
        stage.person.now(Manner::Approves);
        result(&stage.session, before + 1);
        stage.person.now(Manner::Waits);
        stage.session.send(&format!("SCRIPT:ask Paint the gate {round}"));
        let is_asked = || (asked() == before + 2).then_some(());
        wait_until(SOON, "the next question is asked", || stage.session.folder.dump(), is_asked);
        let output = started.wait_with_output().unwrap();
        // Its server has done all that it was sent before this.
        stage.session.call("session.metadata.activity", json!({}));
        let all = ends(&stage.session);
        assert_eq!(all.len(), before + 1, "another question was answered: {output:?} {all:?}");
        let was_ours = all[before] == json!({"answer": "blue", "wasFreeform": false});
        assert_eq!(output.status.code(), Some(if was_ours { 0 } else { 4 }), "{output:?}: {:?}", all[before]);
        ours += usize::from(was_ours);
        stage.person.now(Manner::Approves);
        result(&stage.session, before + 2);
    }
    stage.session.folder.assert_one_chain();
    ours
}

#[test]
fn an_answer_hits_no_question_that_took_the_place_of_its_own() {
    another_takes_its_place(3);
}

#[test]
#[ignore = "ten times as often: tests/long.sh"]
fn an_answer_hits_no_question_that_took_the_place_of_its_own_often() {
    let ours = another_takes_its_place(30);
    eprintln!("{ours} of 30 answers were ours");
}

/// A server that froze may have the answer: neither done nor failed.
#[test]
fn an_answer_to_a_frozen_server_may_have_happened() {
    let asker = asker();
    let id = asker.session.id();
    asks(&asker, "Drop one");
    let terminal = on_terminal(&asker.pilot, &["answer", &id]);
    shows(&terminal, "1) test 2) prod Your answer");
    freeze(asker.server.pid());
    terminal.press(&["2", "Enter"]);
    shows(&terminal, "may have happened: ");
    shows(&terminal, "exited with 5");
    signal(asker.server.pid(), Signal::CONT);
    // And here it has.
    result(&asker.session, 1);
    assert_eq!(ends(&asker.session), [json!({"action": "accept", "content": {"db": "prod"}})]);
    asker.pilot.told_beside(&id, "idle", "");
}

#[test]
fn a_plan_is_approved_for_going_on_interactively_or_sent_back() {
    let stage = attached();
    let (id, pilot) = (stage.session.id(), &stage.pilot);
    let asks = |n: usize| {
        stage.session.set_mode("plan");
        stage.session.send(&format!("SCRIPT:plan Paint the fence {n}"));
        pilot.told_beside(&id, "needs-input", "(Approve, and go on interactively, Do not approve)")
    };
    let row = asks(1);
    assert_eq!(row["question"]["text"], "Paint the fence white.", "{row}");
    pilot.click(&id, "Answer “Approve, and go on interactively”");
    assert_eq!(result(&stage.session, 1), "Plan approved! Exited plan mode.");
    asks(2);
    let ran = pilot.run(&["answer", &id, "--request", &open(pilot, &id), "--text", "make it blue"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(result(&stage.session, 2), "Plan not approved. User feedback:");
    asks(3);
    let ran = pilot.run(&["answer", &id, "--request", &open(pilot, &id), "--decline"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(result(&stage.session, 3), "Plan not approved. User feedback:");
    asks(4);
    refuses(&pilot.run(&["answer", &id, "--request", &open(pilot, &id), "--choice", "3"]), "no number 3");
    let ran = pilot.run(&["answer", &id, "--request", &open(pilot, &id), "--choice", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let approved = json!({"approved": true, "selectedAction": "interactive"});
    let blue = json!({"approved": false, "feedback": "make it blue"});
    result(&stage.session, 4);
    assert_eq!(ends(&stage.session), [approved.clone(), blue, json!({"approved": false}), approved]);
    pilot.told_beside(&id, "idle", "");
    let log = pilot.log();
    assert!(!log.contains("fence") && !log.contains("blue"), "no content in the log: {log}");
}

/// Who is not attached is told of nothing that could be answered; where to answer is said.
#[test]
fn without_being_attached_nothing_is_answered() {
    let stage = Stage::set(Manner::Waits);
    let id = stage.session.id();
    stage.session.send("SCRIPT:ask Paint the fence");
    let row = stage.told("needs-input", COLOR);
    assert!(!actions(&row).contains(&"answer"), "{row}");
    for ran in [stage.pilot.run(&["answer", &id, "red"]), stage.pilot.run_alone(&["answer", &id, "red"])] {
        refuses(&ran, "answer it in the program that runs it, or reconnect first");
    }
    let explained = stage.pilot.run(&["explain", &id]);
    assert!(explained.out.contains("answer          refused: answer it in the program"), "{explained:?}");
    // Once attached, what was asked before is answered.
    reconnect(&stage.pilot, &id);
    let row = stage.pilot.told_beside(&id, "needs-input", COLOR);
    assert!(actions(&row).contains(&"answer"), "{row}");
    let explained = stage.pilot.run(&["explain", &id]);
    assert!(explained.out.contains("asks you        \"Which color?\" for"), "{explained:?}");
    let ran = stage.pilot.run(&["answer", &id, "--request", &open(&stage.pilot, &id), "red"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(result(&stage.session, 1), "User selected: red");
}

/// The terminal of a `--ui-server` shows the same form, which goes when it is answered here.
#[test]
fn a_form_in_a_terminal_with_a_server_is_answered_from_here() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &["--ui-server", "--port", "0"]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Hello");
    terminal.folder.wait("assistant.turn_end");
    reconnect(&pilot, &id);
    terminal.enter("SCRIPT:form Paint the fence");
    terminal.wait_screen("Which color?");
    let row = pilot.told_beside(&id, "needs-input", COLOR);
    assert!(actions(&row).contains(&"answer"), "{row}");
    pilot.click(&id, "Answer “blue”");
    terminal.folder.wait("tool.execution_complete");
    pilot.told_beside(&id, "idle", "");
    let told = terminal.folder.events().into_iter().find(|event| event["type"] == "tool.execution_complete").unwrap();
    assert!(told["data"]["result"].to_string().contains("blue"), "{told}");
}
