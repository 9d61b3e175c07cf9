//! What is clicked in Pilotlight happens in the terminal: wherever its turn is, whatever it asks, and whoever else answers.

use super::{Bridged, extension_in};
use crate::support::home::{Folder, Home};
use crate::support::model::Model;
use crate::support::pilotlight::Pilot;
use crate::support::process::is_live;
use crate::support::terminal::{DIALOG, Terminal};
use serde_json::Value;

/// How the permission requests of a session ended, in order: what came of each, and whether a person said so in the terminal.
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
fn a_turn_is_stopped_in_a_dialog_in_a_silent_model_and_in_a_sub_agent() {
    let bridged = Bridged::set(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    let stopped = |nth| {
        bridged.done(&["stop", &id]);
        terminal.folder.wait_nth("abort", nth);
        bridged.pilot.told(&id, "idle", "");
    };
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.wait_screen(DIALOG);
    bridged.pilot.told(&id, "needs-permission", "");
    stopped(1);
    terminal.wait_no_screen(DIALOG);
    terminal.enter("SCRIPT:hang Paint the gate");
    bridged.model.wait_asked("hang", 0);
    bridged.pilot.told(&id, "working", "");
    stopped(2);
    let hold = bridged.model.hold("inner", 0);
    terminal.enter("SCRIPT:sub Paint the shed");
    bridged.model.wait_asked("inner", 0);
    bridged.pilot.told(&id, "working", "");
    stopped(3);
    hold.release();
    // It lives on.
    terminal.enter("SCRIPT:two Paint the door");
    terminal.wait_screen(DIALOG);
    let aborts = terminal.folder.events().iter().filter(|e| e["type"] == "abort" && e["agentId"].is_null()).count();
    assert_eq!(aborts, 3, "{}", terminal.dump());
}

/// The id of the question that is open, as `answer` names it to who says an answer without it.
pub(super) fn open(bridged: &Bridged) -> String {
    let ran = bridged.pilot.run(&["answer", &bridged.id(), "--choice", "1"]);
    let named = ran.err.split_once("`--request ").and_then(|(_, rest)| rest.split_once('`'));
    named.unwrap_or_else(|| panic!("no question is named: {ran:?}")).0.to_owned()
}

#[test]
fn each_kind_of_question_is_answered() {
    let bridged = Bridged::set(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    let answered = |prompt: &str, asks: &str, with: &[&str], nth: usize| {
        terminal.enter(prompt);
        bridged.pilot.told_beside(&id, "needs-input", asks);
        bridged.done(&[&["answer", &id, "--request", &open(&bridged)], with].concat());
        let result = terminal.folder.wait_nth("tool.execution_complete", nth).to_string();
        bridged.pilot.told_beside(&id, "idle", "");
        result
    };
    let result = answered("SCRIPT:form Paint the fence", "Which color?", &["--choice", "2"], 1);
    assert!(result.contains("blue"), "{result}");
    let result = answered("SCRIPT:name Paint the gate", "Which name?", &["--text", "Ada <b> & \"B\""], 2);
    assert!(result.contains("Ada <b>"), "{result}");
    let result = answered("SCRIPT:form Paint the shed", "Which color?", &["--decline"], 3);
    assert!(!result.contains("blue") && !result.contains("red"), "{result}");
    let fields = ["--field", "color=blue", "--field", "coats=3", "--field", "rooms=attic"];
    let result = answered("SCRIPT:fields Paint the door", "How shall it look?", &fields, 4);
    assert!(["blue", "attic", "3"].iter().all(|given| result.contains(given)) && !result.contains("hall"), "{result}");
}

#[test]
#[ignore = "tests/long.sh"]
fn a_plan_is_sent_back_or_approved_for_going_on_interactively() {
    let bridged = Bridged::tapped(&["--plan"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    for (nth, with, came) in [(1, &["--text", "in blue"][..], "in blue"), (2, &["--choice", "1"], "approved")] {
        terminal.enter(&format!("SCRIPT:plan Paint the fence {nth}"));
        bridged.pilot.told_beside(&id, "needs-input", "Paint the fence white.");
        bridged.done(&[&["answer", &id, "--request", &open(&bridged)], with].concat());
        let result = terminal.folder.wait_nth("tool.execution_complete", nth).to_string();
        assert!(result.contains(came), "{result}");
        bridged.pilot.told_beside(&id, "idle", "");
    }
    // It was in plan mode, and is in none that acts without asking.
    let events = terminal.folder.events();
    let modes: Vec<_> = events.iter().filter(|event| event["type"] == "session.mode_changed").collect();
    assert!(!modes.iter().any(|event| event["data"]["newMode"] == "autopilot"), "{modes:?}");
    assert_eq!(modes.last().unwrap()["data"]["newMode"], "interactive", "{modes:?}");
    bridged.calls_only(&["session.ui.handlePendingExitPlanMode"]);
}

/// Twenty at once, the requests of a sub-agent, and a denial.
#[test]
fn all_that_is_asked_is_answered_each_by_its_id() {
    let bridged = Bridged::set(&[]);
    bridged.allowed();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:many20 Paint the fence");
    bridged.answered(&["approve", "--all"], 21);
    let ended = ends(&terminal.folder);
    assert_eq!(ended[1..], vec![("approved".to_owned(), false); 20], "{}", terminal.dump());
    terminal.folder.wait_nth("tool.execution_complete", 20);
    assert!((1..=20).all(|n| bridged.home.project().join(format!("many{n}.txt")).exists()));
    bridged.pilot.told(&id, "idle", "");

    terminal.enter("SCRIPT:subtool Paint the gate");
    let asked = terminal.folder.wait_nth("permission.requested", 22);
    assert!(asked["agentId"].is_string(), "{asked}");
    bridged.answered(&["approve"], 22);
    bridged.home.go();
    terminal.wait_no_screen(DIALOG);
    bridged.pilot.told(&id, "idle", "");

    terminal.enter("SCRIPT:two Paint the shed");
    bridged.answered(&["deny", "--all"], 24);
    let ended = ends(&terminal.folder);
    assert_eq!(ended[21], ("approved".to_owned(), false));
    assert_eq!(ended[22..], vec![("denied-interactively-by-user".to_owned(), false); 2], "{}", terminal.dump());
    assert!(!bridged.home.project().join("one.txt").exists() && !bridged.home.project().join("two.txt").exists());
    bridged.pilot.told(&id, "idle", "");

    // To read elsewhere is asked for by its path, before the command is.
    terminal.enter("SCRIPT:outside Paint the door");
    let asked = terminal.folder.wait_nth("permission.requested", 25);
    assert_eq!(asked["data"]["promptRequest"]["kind"], "path", "{asked}");
    bridged.pilot.told(&id, "needs-permission", "");
    let ran = bridged.done(&["approve", &id]);
    assert!(ran.out.contains("/etc/hostname"), "the path is shown: {ran:?}");
    terminal.folder.wait_nth("permission.completed", 25);
    let done = terminal.folder.wait_nth("tool.execution_complete", 25);
    assert_eq!(done["data"]["success"], true, "{done}");
    assert_eq!(ends(&terminal.folder)[24], ("approved".to_owned(), false), "{}", terminal.dump());
}

/// In autopilot nobody is asked, and Copilot denies: three times, then the agent gives up. Its user sends it on.
#[test]
#[ignore = "tests/long.sh"]
fn a_turn_that_was_denied_is_sent_on() {
    let bridged = Bridged::set(&["--autopilot"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:giveup3 Paint the fence");
    terminal.wait_screen("Use Manual Approval for this session");
    terminal.press(&["2"]);
    terminal.folder.wait("session.task_complete");
    bridged.pilot.told(&id, "permission-lost", "");
    bridged.pilot.click(&id, "Send on");
    // Nothing ran, but what was denied and the agent's own word: the last prompt is sent again, or it is told to go on.
    let sent = terminal.folder.wait_nth("user.message", 2)["data"]["content"].to_string();
    assert!(sent.contains("SCRIPT:giveup3") || sent.contains("Go on from where you stopped"), "{sent}");
    assert!(!sent.contains("permission"), "{sent}");
}

/// The model failed: the session is told to go on, in words of the user's own or with its last prompt, and is not before it is idle.
#[test]
fn a_turn_that_died_is_sent_on() {
    let bridged = Bridged::set(&["--allow-all-tools"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:err400 Paint the fence");
    bridged.pilot.told(&id, "failed", "");
    let prompts = || terminal.folder.types().iter().filter(|kind| *kind == "user.message").count();
    assert_eq!(prompts(), 1);
    bridged.pilot.click(&id, "Send on");
    terminal.folder.wait_nth("user.message", 2);
    bridged.pilot.told(&id, "failed", "");
    assert_eq!(prompts(), 2, "one click sends one prompt\n{}", terminal.dump());
    assert!(is_live(terminal.pid()));
}

/// Each home's terminal is stopped by itself.
#[test]
#[ignore = "tests/long.sh"]
fn terminals_of_two_homes_do_not_meet() {
    let (one, two, model) = (Home::new("fence"), Home::new("gate"), Model::start());
    // Copilot's program as it is found in a path: which home is meant, its caller says.
    let program = one.program(&model);
    let script = std::fs::read_to_string(&program).unwrap();
    let lines = script.lines().filter(|line| !line.starts_with("export COPILOT_HOME="));
    std::fs::write(&program, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let pilot = Pilot::configured(&[&one, &two], &format!("[actions]\ncopilot = {program:?}\n"));
    let ran = pilot.run(&["bridge", "install", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let terminals = [&one, &two].map(|home| Terminal::start(home, &model, &["--allow-all-tools"]));
    let ids = terminals.each_ref().map(|terminal| terminal.folder.id());
    ids.iter().for_each(|id| pilot.has_bridges(1, id));
    for terminal in &terminals {
        terminal.enter("SCRIPT:tool Paint it");
        terminal.folder.wait("tool.execution_start");
        pilot.told(&terminal.folder.id(), "working", "");
    }
    let ran = pilot.run(&["stop", &ids[1]]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    terminals[1].folder.wait("abort");
    pilot.told(&ids[1], "idle", "");
    pilot.told(&ids[0], "working", "");
    assert!(!terminals[0].folder.types().iter().any(|kind| kind == "abort"), "{}", terminals[0].dump());
    one.go();
    terminals[0].folder.wait("tool.execution_complete");
}

/// The user answers before the tray does, or after: what comes second is told so, and does nothing.
#[test]
#[ignore = "tests/long.sh"]
fn what_was_answered_first_is_not_answered_again() {
    let bridged = Bridged::set(&[]);
    bridged.allowed();
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
    bridged.answered(&["deny"], 3);
    terminal.wait_no_screen(DIALOG);
    bridged.pilot.told(&id, "idle", "");
    // The key of a user who comes after the tray is for an empty prompt.
    terminal.press(&["Enter"]);
    bridged.chosen();
    assert_eq!(ends(&terminal.folder).len(), 3, "{}", terminal.dump());
    assert_eq!(terminal.folder.types().iter().filter(|kind| *kind == "user.message").count(), 3, "{}", terminal.dump());
}

/// The user and the tray answer at the same moment, with opposite words: one of them counts, once, and both are told which.
fn both_at_once(runs: usize) {
    let bridged = Bridged::set(&[]);
    bridged.allowed();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    for run in 0..runs {
        let marker = bridged.home.project().join("many1.txt");
        let _ = std::fs::remove_file(&marker);
        terminal.enter(&format!("SCRIPT:many1 Paint the fence {run}"));
        terminal.folder.wait_nth("permission.requested", run + 2);
        terminal.wait_screen(DIALOG);
        bridged.pilot.told_beside(&id, "needs-permission", "");
        let ran = std::thread::scope(|threads| {
            let clicked = threads.spawn(|| bridged.pilot.run(&["deny", &id]));
            // At any moment of what the command does.
            #[expect(clippy::disallowed_methods, reason = "the moments are what is tried")]
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
        bridged.pilot.told_beside(&id, "idle", "");
        // A key that came too late for the dialog is an empty line in the prompt, and nothing.
        terminal.wait_no_screen(DIALOG);
    }
}

#[test]
#[ignore = "tests/long.sh"]
fn of_two_answers_at_once_one_counts() {
    both_at_once(3);
}

#[test]
#[ignore = "the same often"]
fn of_two_answers_at_once_one_counts_often() {
    both_at_once(30);
}

impl Bridged {
    /// One whose extension writes down what it sends to Copilot.
    fn tapped(args: &[&str]) -> Self {
        Self::changed(args, |_, file| {
            let code = std::fs::read_to_string(file).unwrap();
            let tap = file.with_file_name("wire");
            let head = format!(
                "import {{ appendFileSync }} from 'node:fs';\nconst write = process.stdout.write;\n\
                 process.stdout.write = function (...args) {{ appendFileSync({tap:?}, args[0]); return write.apply(this, args); }};\n"
            );
            std::fs::write(file, head + &code).unwrap();
        })
    }

    /// It called these methods, and none that its list does not name.
    fn calls_only(&self, done: &[&str]) {
        let allowed = [
            "connect",
            "ping",
            "session.resume",
            "session.abort",
            "session.send",
            "session.metadata.activity",
            "session.permissions.pendingRequests",
            "session.permissions.handlePendingPermissionRequest",
            "session.ui.handlePendingElicitation",
            "session.ui.handlePendingExitPlanMode",
        ];
        let called = self.calls();
        let others: Vec<_> = called.iter().filter(|method| !allowed.contains(&method.as_str())).collect();
        assert!(others.is_empty(), "{others:?} of {called:?}");
        for one in done {
            assert!(called.iter().any(|method| method == one), "{one} is not seen on the wire: {called:?}");
        }
    }

    /// The methods that it called.
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(extension_in(self.pilot.user()).join("wire")).unwrap();
        let mut calls: Vec<_> =
            text.split("\"method\":\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
        calls.sort();
        calls.dedup();
        calls
    }
}

/// The extension speaks to Copilot by the methods of its list and no other: every line that it sends is looked at.
#[test]
fn on_the_wire_it_calls_nothing_but_what_its_list_names() {
    let bridged = Bridged::tapped(&[]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    bridged.allowed();
    terminal.enter("SCRIPT:form Paint the fence");
    bridged.pilot.told_beside(&id, "needs-input", "Which color?");
    bridged.done(&["answer", &id, "--request", &open(&bridged), "--choice", "1"]);
    terminal.folder.wait("tool.execution_complete");
    bridged.pilot.told_beside(&id, "idle", "");
    terminal.enter("SCRIPT:tool Paint the gate");
    bridged.answered(&["approve"], 2);
    bridged.done(&["stop", &id]);
    terminal.folder.wait("abort");
    bridged.pilot.told(&id, "idle", "");
    terminal.enter("SCRIPT:err400 Paint the shed");
    bridged.pilot.told(&id, "failed", "");
    bridged.pilot.click(&id, "Send on");
    terminal.folder.wait_nth("user.message", 5);
    bridged.calls_only(&[
        "session.abort",
        "session.resume",
        "session.send",
        "session.permissions.handlePendingPermissionRequest",
        "session.ui.handlePendingElicitation",
    ]);
}
