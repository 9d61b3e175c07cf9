//! Orders take effect in the terminal in every state of a turn, for every kind of question, and with others answering
//! too.

use super::{Bridged, extension_in};
use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::pilotlight::Pilot;
use crate::support::terminal::{DIALOG, Terminal};
use serde_json::Value;
use std::time::Instant;

/// The answer to each permission request of a session, in order, and whether a person gave it in the terminal.
pub(super) fn ends(folder: &Folder) -> Vec<(String, bool)> {
    let events = folder.events();
    let ended = events.iter().filter(|event| event["type"] == "permission.completed");
    let how = |event: &Value| {
        let kind = event["data"]["result"]["kind"].as_str().unwrap_or_default().to_owned();
        (kind, event["data"]["decisionSource"] == "human_response")
    };
    ended.map(how).collect()
}

#[test]
#[ignore = "tests/long.sh"]
fn a_turn_is_stopped_in_every_state_and_continued_after_a_failure() {
    let bridged = Bridged::with_tap(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    let stop = |nth| {
        bridged.run_ok(&["stop", &id]);
        terminal.folder.wait_nth("abort", nth);
        bridged.pilot.wait_status(&id, "idle", "");
    };
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.wait_screen(DIALOG);
    bridged.pilot.wait_status(&id, "needs-permission", "");
    stop(1);
    terminal.wait_no_screen(DIALOG);
    terminal.enter("SCRIPT:hang Paint the gate");
    bridged.model.wait_requested("hang", 0);
    bridged.pilot.wait_status(&id, "working", "");
    stop(2);
    let hold = bridged.model.hold("inner", 0);
    terminal.enter("SCRIPT:sub Paint the shed");
    bridged.model.wait_requested("inner", 0);
    bridged.pilot.wait_status(&id, "working", "");
    stop(3);
    hold.release();
    terminal.enter("SCRIPT:err400 Paint the roof");
    bridged.pilot.wait_status(&id, "failed", "");
    let prompts = || terminal.folder.types().iter().filter(|kind| *kind == "user.message").count();
    let before = prompts();
    bridged.pilot.click(&id, "Continue");
    terminal.folder.wait_nth("user.message", before + 1);
    bridged.pilot.wait_status(&id, "failed", "");
    assert_eq!(prompts(), before + 1, "one click sends one prompt\n{}", terminal.dump());
    // The session continues to work, and no second prompt came late.
    terminal.enter("SCRIPT:two Paint the door");
    terminal.wait_screen(DIALOG);
    // Its dialog may be drawn before the log has it.
    terminal.folder.wait_nth("user.message", before + 2);
    assert_eq!(prompts(), before + 2, "{}", terminal.dump());
    let aborts = terminal.folder.events().iter().filter(|e| e["type"] == "abort" && e["agentId"].is_null()).count();
    assert_eq!(aborts, 3, "{}", terminal.dump());
    bridged.assert_calls_only(&["session.abort", "session.resume", "session.send"]);
}

/// The id of the open question, from the refusal of an `answer` without an id.
pub(super) fn open(bridged: &Bridged) -> String {
    let ran = bridged.pilot.run(&["answer", &bridged.id(), "--choice", "1"]);
    let named = ran.err.split_once("`--request ").and_then(|(_, rest)| rest.split_once('`'));
    named.unwrap_or_else(|| panic!("no question is named: {ran:?}")).0.to_owned()
}

#[test]
#[ignore = "tests/long.sh"]
fn each_kind_of_question_is_answered() {
    let bridged = Bridged::with_tap(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    let answer = |prompt: &str, question: &str, arguments: &[&str], nth: usize| {
        terminal.enter(prompt);
        bridged.pilot.wait_status_in_tray(&id, "needs-input", question);
        bridged.run_ok(&[&["answer", &id, "--request", &open(&bridged)], arguments].concat());
        let result = terminal.folder.wait_nth("tool.execution_complete", nth).to_string();
        bridged.pilot.wait_status_in_tray(&id, "idle", "");
        result
    };
    let result = answer("SCRIPT:form Paint the fence", "Which color?", &["--choice", "2"], 1);
    assert!(result.contains("blue"), "{result}");
    let result = answer("SCRIPT:name Paint the gate", "Which name?", &["--text", "Ada <b> & \"B\""], 2);
    assert!(result.contains("Ada <b>"), "{result}");
    let result = answer("SCRIPT:form Paint the shed", "Which color?", &["--decline"], 3);
    assert!(!result.contains("blue") && !result.contains("red"), "{result}");
    let fields = ["--field", "color=blue", "--field", "coats=3", "--field", "rooms=attic"];
    let result = answer("SCRIPT:fields Paint the door", "How shall it look?", &fields, 4);
    assert!(["blue", "attic", "3"].iter().all(|given| result.contains(given)) && !result.contains("hall"), "{result}");
    bridged.assert_calls_only(&["session.ui.handlePendingElicitation"]);
}

#[test]
#[ignore = "tests/long.sh"]
fn a_plan_in_a_terminal_is_rejected_or_approved_interactively() {
    let bridged = Bridged::with_tap(&["--plan"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    for (nth, arguments, expected) in [(1, &["--text", "in blue"][..], "in blue"), (2, &["--choice", "1"], "approved")]
    {
        terminal.enter(&format!("SCRIPT:plan Paint the fence {nth}"));
        bridged.pilot.wait_status_in_tray(&id, "needs-input", "Paint the fence white.");
        bridged.run_ok(&[&["answer", &id, "--request", &open(&bridged)], arguments].concat());
        let result = terminal.folder.wait_nth("tool.execution_complete", nth).to_string();
        assert!(result.contains(expected), "{result}");
        bridged.pilot.wait_status_in_tray(&id, "idle", "");
    }
    // It left plan mode for interactive mode, and never entered autopilot.
    let events = terminal.folder.events();
    let modes: Vec<_> = events.iter().filter(|event| event["type"] == "session.mode_changed").collect();
    assert!(!modes.iter().any(|event| event["data"]["newMode"] == "autopilot"), "{modes:?}");
    assert_eq!(modes.last().unwrap()["data"]["newMode"], "interactive", "{modes:?}");
    bridged.assert_calls_only(&["session.ui.handlePendingExitPlanMode"]);
}

/// The bridge names a request that is too large, without its text. It is denied by its id, and never approved unread; a
/// small one beside it is answered.
#[test]
#[ignore = "tests/long.sh"]
fn case_192_a_request_that_is_too_large_is_denied_and_does_not_hide_others() {
    let mut bridged = Bridged::consented();
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    bridged.terminal.enter("SCRIPT:beside400 Paint the fence");
    folder.wait_nth("permission.requested", 3);
    let named = |kind: &str| {
        let of_kind = |event: &&Value| event["data"]["permissionRequest"]["kind"] == kind;
        folder.events().iter().find(of_kind).unwrap()["data"]["requestId"].as_str().unwrap().to_owned()
    };
    let (large, small) = (named("write"), named("shell"));
    bridged.pilot.wait_status(&id, "needs-permission", "");
    let refused = |pilot: &Pilot| {
        let ran = pilot.run(&["approve", &id, "--request", &large]);
        assert!(ran.code == Some(4) && ran.err.contains("too large to be read here"), "{:.999}", format!("{ran:?}"));
        assert!(ran.out.contains("new.txt"), "{}", ran.out);
    };
    refused(&bridged.pilot);
    // This tray learns of both from a list of what is open.
    bridged.pilot.restart_tray();
    bridged.pilot.wait_bridges(2, &id);
    bridged.pilot.wait_status_in_tray(&id, "needs-permission", "");
    refused(&bridged.pilot);
    bridged.run_ok(&["approve", &id, "--request", &small]);
    bridged.run_ok(&["deny", &id, "--request", &large]);
    assert_eq!(ends(folder)[1..], [("approved".to_owned(), false), ("denied-interactively-by-user".to_owned(), false)]);
    assert!(!bridged.home.project().join("new.txt").exists());
}

/// Copilot draws a long dialog for seconds. Answered before that, it would appear afterwards and take the user's keys, so
/// the bridge waits for it.
#[test]
#[ignore = "tests/long.sh: needs a machine that is not busy"]
fn case_193_a_request_is_answered_once_its_dialog_is_drawn() {
    let bridged = Bridged::consented();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.record();
    terminal.enter("SCRIPT:file200 Paint the fence");
    terminal.folder.wait_nth("permission.requested", 2);
    let mut command = bridged.pilot.command_with_tray(&["approve", "--yes", &id]);
    let given = std::thread::spawn(move || command.output().unwrap());
    terminal.folder.wait_nth("permission.completed", 2);
    // It may be gone again from the screen.
    let drawn = terminal.recorded();
    assert!(drawn.contains("Do you want to"), "{drawn}\n{}", terminal.dump());
    assert!(given.join().unwrap().status.success());
    terminal.wait_no_screen("Do you want to");
    bridged.pilot.wait_status(&id, "idle", "");
    assert!(!terminal.screen().contains("Do you want to"), "{}", terminal.dump());
}

/// What draws a long dialog waits for other threads of Copilot, which a busy machine may leave no time for.
#[test]
#[ignore = "tests/long.sh"]
fn case_193_a_long_request_is_answered_once_no_thread_of_copilot_works_on_it() {
    const DRAWS: u128 = 4000;
    let bridged = Bridged::prepared(&[], |_, file| {
        let code = std::fs::read_to_string(file).unwrap();
        let (asked, begun) = ("function drawingTimes(ofAll) {\n", "globalThis.begun ??= Date.now()");
        let works = format!("Math.min(Date.now() - ({begun}), {DRAWS})");
        let works = format!("{asked}  return new Map([[\"main\", 0], ...(ofAll ? [[\"other\", {works}]] : [])]);\n");
        let changed = code.replace(asked, &works);
        assert_ne!(code, changed);
        std::fs::write(file, changed).unwrap();
    });
    bridged.give_consent();
    let (id, folder) = (bridged.id(), &bridged.terminal.folder);
    let took = |script: &str, nth| {
        bridged.terminal.enter(&format!("SCRIPT:{script} Paint the fence"));
        folder.wait_nth("permission.requested", nth);
        bridged.pilot.wait_status(&id, "needs-permission", "");
        let begun = Instant::now();
        bridged.run_ok(&["deny", "--yes", &id]);
        folder.wait_nth("permission.completed", nth);
        bridged.pilot.wait_status(&id, "idle", "");
        begun.elapsed().as_millis()
    };
    took("many1", 2); // has not begun the time
    let long = took("file60", 3);
    assert!(long >= DRAWS, "{long} ms");
}

/// Twenty requests at once, a request of a sub-agent, denials, and a path.
#[test]
#[ignore = "tests/long.sh"]
fn every_request_is_answered_by_its_id() {
    let bridged = Bridged::with_tap(&[]);
    bridged.give_consent();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:many20 Paint the fence");
    bridged.answer_request(&["approve", "--yes", "--all"], 21);
    let ended = ends(&terminal.folder);
    assert_eq!(ended[1..], vec![("approved".to_owned(), false); 20], "{}", terminal.dump());
    terminal.folder.wait_nth("tool.execution_complete", 20);
    assert!((1..=20).all(|n| bridged.home.project().join(format!("many{n}.txt")).exists()));
    bridged.pilot.wait_status(&id, "idle", "");

    terminal.enter("SCRIPT:subtool Paint the gate");
    let asked = terminal.folder.wait_nth("permission.requested", 22);
    assert!(asked["agentId"].is_string(), "{asked}");
    bridged.answer_request(&["approve", "--yes"], 22);
    bridged.home.release_tools();
    terminal.wait_no_screen(DIALOG);
    bridged.pilot.wait_status(&id, "idle", "");

    terminal.enter("SCRIPT:two Paint the shed");
    bridged.answer_request(&["deny", "--yes", "--all"], 24);
    let ended = ends(&terminal.folder);
    assert_eq!(ended[21], ("approved".to_owned(), false));
    assert_eq!(ended[22..], vec![("denied-interactively-by-user".to_owned(), false); 2], "{}", terminal.dump());
    assert!(!bridged.home.project().join("one.txt").exists() && !bridged.home.project().join("two.txt").exists());
    bridged.pilot.wait_status(&id, "idle", "");

    // For a file outside the project, Copilot asks for its path before the command.
    terminal.enter("SCRIPT:outside Paint the door");
    let asked = terminal.folder.wait_nth("permission.requested", 25);
    assert_eq!(asked["data"]["promptRequest"]["kind"], "path", "{asked}");
    bridged.pilot.wait_status(&id, "needs-permission", "");
    let ran = bridged.run_ok(&["approve", "--yes", &id]);
    assert!(ran.out.contains("/etc/hostname"), "the path is shown: {ran:?}");
    terminal.folder.wait_nth("permission.completed", 25);
    let done = terminal.folder.wait_nth("tool.execution_complete", 25);
    assert_eq!(done["data"]["success"], true, "{done}");
    assert_eq!(ends(&terminal.folder)[24], ("approved".to_owned(), false), "{}", terminal.dump());
    bridged.assert_calls_only(&["session.permissions.handlePendingPermissionRequest"]);
}

/// In autopilot nobody can be asked and Copilot denies: three times, then the agent gives up. The user continues it.
#[test]
#[ignore = "tests/long.sh"]
fn a_denied_turn_is_continued() {
    let bridged = Bridged::new(&["--autopilot"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:giveup3 Paint the fence");
    terminal.wait_screen("Use Manual Approval for this session");
    terminal.press(&["2"]);
    terminal.folder.wait("session.task_complete");
    bridged.pilot.wait_status(&id, "permission-lost", "");
    bridged.pilot.click(&id, "Continue");
    // No tool ran except the agent's completion: the last prompt is sent again, or the continue prompt.
    let sent = terminal.folder.wait_nth("user.message", 2)["data"]["content"].to_string();
    assert!(sent.contains("SCRIPT:giveup3") || sent.contains("Go on from where you stopped"), "{sent}");
    assert!(!sent.contains("permission"), "{sent}");
}

/// A stop affects only the terminal of its home.
#[test]
#[ignore = "tests/long.sh"]
fn terminals_of_two_homes_do_not_interfere() {
    let (one, two, model) = (Home::new("fence"), Home::new("gate"), Model::start());
    // A program without its own `COPILOT_HOME`, as in the search path: the caller sets the home.
    let program = one.program(&model);
    let script = std::fs::read_to_string(&program).unwrap();
    let lines = script.lines().filter(|line| !line.starts_with("export COPILOT_HOME="));
    std::fs::write(&program, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let pilot = Pilot::configured(&[&one, &two], &format!("[actions]\ncopilot = {program:?}\n"));
    let ran = pilot.run(&["bridge", "install", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let terminals = [&one, &two].map(|home| Terminal::start(home, &model, &["--allow-all-tools"]));
    let ids = terminals.each_ref().map(|terminal| terminal.folder.id());
    ids.iter().for_each(|id| pilot.wait_bridges(1, id));
    for terminal in &terminals {
        terminal.enter("SCRIPT:tool Paint it");
        terminal.folder.wait("tool.execution_start");
        pilot.wait_status(&terminal.folder.id(), "working", "");
    }
    let ran = pilot.run(&["stop", &ids[1]]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    terminals[1].folder.wait("abort");
    pilot.wait_status(&ids[1], "idle", "");
    pilot.wait_status(&ids[0], "working", "");
    assert!(!terminals[0].folder.types().iter().any(|kind| kind == "abort"), "{}", terminals[0].dump());
    one.release_tools();
    terminals[0].folder.wait("tool.execution_complete");
}

/// The user answers before or after the tray. The second answer is refused or has no effect.
#[test]
#[ignore = "tests/long.sh"]
fn an_answered_request_is_not_answered_again() {
    let bridged = Bridged::consented();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:seq Paint the fence");
    let asked = terminal.folder.wait_nth("permission.requested", 2)["data"]["requestId"].as_str().unwrap().to_owned();
    terminal.approve();
    terminal.folder.wait_nth("permission.completed", 2);
    let ran = bridged.pilot.run(&["approve", &id, "--request", &asked]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    terminal.folder.wait_nth("permission.requested", 3);
    terminal.wait_screen(DIALOG);
    assert_eq!(ends(&terminal.folder).len(), 2, "the next request is another one\n{}", terminal.dump());
    bridged.answer_request(&["deny", "--yes"], 3);
    terminal.wait_no_screen(DIALOG);
    bridged.pilot.wait_status(&id, "idle", "");
    // A late key of the user goes to an empty prompt.
    terminal.press(&["Enter"]);
    bridged.choose_blue();
    assert_eq!(ends(&terminal.folder).len(), 3, "{}", terminal.dump());
    assert_eq!(terminal.folder.types().iter().filter(|kind| *kind == "user.message").count(), 3, "{}", terminal.dump());
}

/// The user and the tray give opposite answers at the same moment. One of them counts, once, and the command reports
/// which.
fn answer_at_once(runs: usize) {
    let bridged = Bridged::consented();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    for run in 0..runs {
        let marker = bridged.home.project().join("many1.txt");
        let _ = std::fs::remove_file(&marker);
        terminal.enter(&format!("SCRIPT:many1 Paint the fence {run}"));
        terminal.folder.wait_nth("permission.requested", run + 2);
        terminal.wait_screen(DIALOG);
        bridged.pilot.wait_status_in_tray(&id, "needs-permission", "");
        let ran = std::thread::scope(|threads| {
            let clicked = threads.spawn(|| bridged.pilot.run(&["deny", "--yes", &id]));
            // At different moments of the command.
            #[expect(clippy::disallowed_methods, reason = "the test tries different moments")]
            std::thread::sleep(std::time::Duration::from_millis(7 * run as u64));
            terminal.press(&["Enter"]);
            clicked.join().unwrap()
        });
        terminal.folder.wait_nth("tool.execution_complete", run + 1);
        let ended = ends(&terminal.folder);
        assert_eq!(ended.len(), run + 2, "each request has one answer\n{}", terminal.dump());
        let (how, by_user) = &ended[run + 1];
        assert_eq!(how == "approved", *by_user, "{ended:?}");
        assert_eq!(marker.exists(), *by_user, "{ended:?}");
        assert_eq!(ran.code == Some(0), !by_user, "{ran:?}\n{ended:?}");
        bridged.pilot.wait_status_in_tray(&id, "idle", "");
        // A key that is too late for the dialog sends an empty prompt, which has no effect.
        terminal.wait_no_screen(DIALOG);
    }
}

#[test]
#[ignore = "tests/long.sh"]
fn of_two_answers_at_the_same_moment_one_counts() {
    answer_at_once(3);
}

#[test]
#[ignore = "ten times as often"]
fn of_two_answers_at_the_same_moment_one_counts_often() {
    answer_at_once(30);
}

impl Bridged {
    /// A terminal whose extension records what it sends to Copilot.
    fn with_tap(args: &[&str]) -> Self {
        Self::prepared(args, |_, file| {
            let code = std::fs::read_to_string(file).unwrap();
            let tap = file.with_file_name("wire");
            let head = format!(
                "import {{ appendFileSync }} from 'node:fs';\nconst write = process.stdout.write;\n\
                 process.stdout.write = function (...args) {{ appendFileSync({tap:?}, args[0]); return write.apply(this, args); }};\n"
            );
            std::fs::write(file, head + &code).unwrap();
        })
    }

    /// Asserts that the extension called these methods, and none outside its list, by every line that it sent to Copilot.
    fn assert_calls_only(&self, expected: &[&str]) {
        let allowed = [
            "connect",
            "ping",
            "session.resume",
            "session.abort",
            "session.send",
            "session.metadata.activity",
            "session.permissions.getMode",
            "session.permissions.pendingRequests",
            "session.permissions.handlePendingPermissionRequest",
            "session.ui.handlePendingElicitation",
            "session.ui.handlePendingExitPlanMode",
        ];
        let called = self.calls();
        let others: Vec<_> = called.iter().filter(|method| !allowed.contains(&method.as_str())).collect();
        assert!(others.is_empty(), "{others:?} of {called:?}");
        for method in expected {
            assert!(called.iter().any(|one| one == method), "{method} is not seen on the wire: {called:?}");
        }
    }

    /// The methods that the extension called.
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(extension_in(self.pilot.user()).join("wire")).unwrap();
        let mut calls: Vec<_> =
            text.split("\"method\":\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
        calls.sort();
        calls.dedup();
        calls
    }
}
