//! Copilot's consent dialog, which asks whether Pilotlight may answer: when it is shown, and when it is not.

use super::{Bridged, Stage, bridge, extension_in, idle_elevate_order, install, ours, request_consent};
use crate::support::home::Home;
use crate::support::listener::Listener;
use crate::support::model::Model;
use crate::support::terminal::{CONSENT, DIALOG, Terminal};
use crate::support::{SOON, wait_until};
use pilotlight_system::process::testing::alone;
use serde_json::json;
use std::path::Path;

/// A user who is typing could answer it by accident. A refusal is final for the session, and affects nothing else.
#[test]
fn consent_is_requested_once_and_not_during_a_dialog_or_a_turn() {
    let stage = Stage::new(&[]);
    idle_elevate_order(&stage);
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    stage.terminal.wait_screen(DIALOG);
    stage.terminal.folder.wait_nth("user.message", 2);
    let elevate = json!({"t": "elevate", "after": stage.root()});
    assert_eq!(stage.connection.order(2, elevate.clone()), Err("busy".into()));
    stage.terminal.approve();
    stage.terminal.folder.wait("permission.completed");
    assert_eq!(stage.connection.order(3, elevate.clone()), Err("busy".into()));
    stage.home.release_tools();
    stage.terminal.folder.wait("tool.execution_complete");
    stage.connection.wait("the second turn is over", |_| {
        stage.connection.received().iter().filter(|message| message["type"] == "session.idle").count() == 2
    });
    let asked = stage.terminal.folder.types().iter().filter(|kind| *kind == "permission.requested").count();
    assert_eq!(asked, 1, "only the tool's own request");
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| stage.connection.order(4, elevate));
        stage.terminal.wait_screen(CONSENT);
        stage.terminal.press(&["Escape"]);
        asked.join().unwrap().unwrap_err();
    });
    stage.terminal.wait_no_screen(CONSENT);
    assert_eq!(stage.connection.order(5, json!({"t": "elevate", "after": stage.root()})), Err("refused".into()));
    stage.terminal.enter("SCRIPT:two Paint the shed");
    stage.terminal.wait_screen(DIALOG);
    stage.terminal.folder.wait_nth("user.message", 3);
    stage.connection.order(6, json!({"t": "stop", "after": stage.root()})).unwrap();
    stage.terminal.folder.wait("abort");
}

/// Remembered consent is used right after a prompt, never while something is typed, neither at the start nor later.
#[test]
#[ignore = "tests/long.sh"]
fn remembered_consent_is_not_used_while_something_is_typed() {
    let stage = Stage::new(&[]);
    request_consent(&stage, &["2"]).unwrap();
    stage.terminal.exit();
    let again = Terminal::start(&stage.home, &stage.model, &[]);
    let draft = "please fix the 2nd bug and the 3rd";
    again.type_only(draft);
    let connection = stage.listener.accept();
    assert_eq!(connection.order(1, json!({"t": "activity"})).unwrap()["hasActiveWork"], false);
    assert!(!connection.received().iter().any(|message| message["t"] == "consent"), "{:?}", connection.received());
    assert!(again.screen().contains(draft) && !again.screen().contains(CONSENT), "{}", again.dump());
    again.press(&["C-u"]);
    again.enter("SCRIPT:tool Paint the gate");
    connection.wait("it may answer", |message| message["t"] == "consent" && message["elevated"] == true);
    assert!(!again.screen().contains(CONSENT), "{}", again.dump());
}

/// Remembered consent is used for the first prompt, too, although it was given on the command line or before anybody
/// listened, and after the dialog that was open meanwhile.
#[test]
#[ignore = "tests/long.sh"]
fn case_200a_remembered_consent_is_used_for_the_first_prompt() {
    let stage = Stage::new(&[]);
    request_consent(&stage, &["2"]).unwrap();
    stage.terminal.exit();
    let elevated = |connection: &crate::support::listener::Connection| {
        connection.wait("it may answer", |message| message["t"] == "consent" && message["elevated"] == true);
    };
    let again = Terminal::start(&stage.home, &stage.model, &["-i", "SCRIPT:hang Paint the gate"]);
    elevated(&stage.listener.accept());
    assert!(!again.screen().contains(CONSENT), "{}", again.dump());
    drop(again);
    // Nobody listens when the prompt is sent, and then a dialog is open.
    let Stage { connection, listener, model, home, .. } = stage;
    let key = std::fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    drop((connection, listener));
    let last = Terminal::start(&home, &model, &[]);
    last.enter("SCRIPT:tool Paint the shed");
    last.wait_screen(DIALOG);
    let listener = Listener::start(&ours(&home).join("run/pilotlight"), &key);
    let connection = listener.accept();
    assert_eq!(connection.order(1, json!({"t": "activity"})).unwrap()["hasActiveWork"], true);
    assert!(!connection.received().iter().any(|message| message["t"] == "consent"), "{:?}", connection.received());
    last.approve();
    elevated(&connection);
    assert!(!last.screen().contains(CONSENT), "{}", last.dump());
}

/// Copilot may still list the request that was just answered.
#[test]
#[ignore = "tests/long.sh"]
fn case_204_an_answered_request_that_is_still_listed_does_not_hold_up_remembered_consent() {
    let Stage { terminal, connection, listener, model, home } = Stage::in_home(&[], |home| {
        home.remember_consent(&home.project());
        let file = extension_in(&ours(home)).join("extension.mjs");
        let code = std::fs::read_to_string(&file).unwrap();
        let call = "session.rpc.permissions.pendingRequests()";
        let late = "((now) => (globalThis.listed = now.items.length ? now : globalThis.listed ?? now))";
        let changed = code.replace(call, &format!("{call}.then({late})"));
        assert_ne!(code, changed);
        std::fs::write(file, changed).unwrap();
    });
    let key = std::fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    drop((connection, listener));
    terminal.enter("SCRIPT:tool Paint the shed");
    terminal.wait_screen(DIALOG);
    let listener = Listener::start(&ours(&home).join("run/pilotlight"), &key);
    let connection = listener.accept();
    connection.wait("what is open", |message| message["items"][0].is_object());
    assert_eq!(connection.order(1, json!({"t": "activity"})).unwrap()["hasActiveWork"], true);
    terminal.approve();
    connection.wait("it may answer", |message| message["t"] == "consent" && message["elevated"] == true);
    assert!(!terminal.screen().contains(CONSENT), "{}", terminal.dump());
    drop(model);
}

/// In autopilot nobody can be asked and Copilot would deny the dialog, so the bridge does not request it.
#[test]
#[ignore = "tests/long.sh"]
fn in_autopilot_no_consent_is_requested_and_a_turn_can_be_stopped() {
    let stage = Stage::new(&["--autopilot", "--allow-all"]);
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    stage.terminal.folder.wait("tool.execution_start");
    assert_eq!(stage.connection.order(1, json!({"t": "elevate", "after": stage.root()})), Err("busy".into()));
    stage.connection.order(2, json!({"t": "stop", "after": stage.root()})).unwrap();
    stage.terminal.folder.wait("abort");
    assert!(
        !stage.terminal.folder.types().iter().any(|kind| kind == "permission.requested"),
        "{}",
        stage.terminal.dump()
    );
}

/// The number of permission requests, including the one for consent.
fn request_count(terminal: &Terminal) -> usize {
    terminal.folder.types().iter().filter(|kind| *kind == "permission.requested").count()
}

/// The bridge takes a folder for a repository, but Copilot does not and unexpectedly shows the dialog. The bridge never
/// requests it again on its own.
#[test]
#[ignore = "tests/long.sh"]
fn a_misread_record_of_consent_is_used_only_once() {
    let bridged = Bridged::prepared(&[], |home, _| {
        std::fs::create_dir(home.root().join(".git")).unwrap();
        home.remember_consent(home.root());
    });
    let (id, home) = (bridged.id(), &bridged.home);
    let misread = bridged.pilot.user().join(".local/state/pilotlight/bridge.misread");
    bridged.terminal.enter("SCRIPT:plain Paint the fence");
    bridged.terminal.wait_screen(CONSENT);
    wait_until(SOON, "that is recorded", || bridged.pilot.log(), || misread.exists().then_some(()));
    bridged.terminal.press(&["Escape"]);
    bridged.terminal.wait_no_screen(CONSENT);
    bridged.terminal.folder.wait("assistant.turn_end");
    // A refusal does not affect anything else.
    bridged.terminal.enter("SCRIPT:form Paint the gate");
    bridged.pilot.wait_status_in_tray(&id, "needs-input", "Which color?");
    bridged.pilot.click(&id, "Answer “blue”");
    bridged.terminal.folder.wait("tool.execution_complete");

    let second = Terminal::start(home, &bridged.model, &[]);
    let id = second.folder.id();
    bridged.pilot.wait_bridges(1, &id);
    for turn in 1..=2 {
        second.enter(&format!("SCRIPT:plain Paint the shed {turn}"));
        second.folder.wait_nth("assistant.turn_end", turn);
        bridged.pilot.wait_status(&id, "idle", "");
    }
    assert_eq!(request_count(&second), 0, "{}", second.dump());
    // A click still requests it.
    bridged.pilot.click(&id, "Let Pilotlight answer here");
    second.wait_screen(CONSENT);
    second.press(&["1"]);
    second.folder.wait("permission.completed");
}

/// Another terminal's Copilot records a consent, which this running one does not know. No dialog is shown here, nor
/// after `/clear`.
#[test]
#[ignore = "tests/long.sh"]
fn consent_recorded_by_another_terminal_meanwhile_is_not_used() {
    let stage = Stage::new(&[]);
    stage.home.remember_consent(&stage.home.project());
    for turn in 1..=2 {
        stage.terminal.enter(&format!("SCRIPT:plain Paint the fence {turn}"));
        stage.terminal.folder.wait_nth("assistant.turn_end", turn);
    }
    stage.terminal.enter("/clear");
    let connection = stage.listener.accept();
    let folder = stage.home.session(connection.hello["session"].as_str().unwrap());
    for turn in 1..=2 {
        stage.terminal.enter(&format!("SCRIPT:plain Paint the gate {turn}"));
        folder.wait_nth("assistant.turn_end", turn);
    }
    for connection in [&stage.connection, &connection] {
        assert!(!connection.received().iter().any(|message| message["t"] == "consent"), "{:?}", connection.received());
    }
    assert!(!stage.terminal.screen().contains(CONSENT), "{}", stage.terminal.dump());
}

/// `/cwd` changes to a folder without recorded consent: the consent of the previous folder no longer counts, until the
/// session returns.
#[test]
#[ignore = "tests/long.sh"]
fn after_a_change_of_folder_the_consent_of_that_folder_counts() {
    let elsewhere = |home: &Home| home.root().join("elsewhere");
    let stage = Stage::in_home(&[], |home| {
        std::fs::create_dir(elsewhere(home)).unwrap();
        home.trust(&[&home.project(), &elsewhere(home)]);
        home.remember_consent(&home.project());
    });
    let elsewhere = elsewhere(&stage.home);
    let change_to = |folder: &Path| {
        stage.terminal.enter(&format!("/cwd {}", folder.display()));
        stage.terminal.wait_screen(&format!("directory to: {}", folder.display()));
    };
    change_to(&elsewhere);
    for turn in 1..=2 {
        stage.terminal.enter(&format!("SCRIPT:plain Paint the fence {turn}"));
        stage.terminal.folder.wait_nth("assistant.turn_end", turn);
    }
    assert_eq!(request_count(&stage.terminal), 0, "{}", stage.terminal.dump());
    assert!(
        !stage.connection.received().iter().any(|message| message["t"] == "consent"),
        "{:?}",
        stage.connection.received()
    );
    change_to(&stage.home.project());
    stage.terminal.enter("SCRIPT:plain Paint the gate");
    stage.connection.wait("it may answer", |message| message["t"] == "consent" && message["elevated"] == true);
    assert!(!stage.terminal.screen().contains(CONSENT), "{}", stage.terminal.dump());
}

/// The user lets the bridge answer, and then goes elsewhere and back with `/cwd`.
#[test]
fn case_198_after_a_change_of_folder_nothing_is_approved_there() {
    let elsewhere = |home: &Home| home.root().join("elsewhere");
    let bridged = Bridged::prepared(&[], |home, _| {
        std::fs::create_dir(elsewhere(home)).unwrap();
        home.trust(&[&home.project(), &elsewhere(home)]);
    });
    bridged.give_consent();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    let change_to = |folder: &Path| {
        terminal.enter(&format!("/cwd {}", folder.display()));
        terminal.wait_screen(&format!("directory to: {}", folder.display()));
    };
    change_to(&elsewhere(&bridged.home));
    terminal.enter("SCRIPT:sleep0 Paint the fence");
    terminal.folder.wait_nth("permission.requested", 2);
    terminal.wait_screen(DIALOG);
    bridged.pilot.wait_status(&id, "needs-permission", "");
    let ran = bridged.pilot.run(&["approve", "--yes", &id]);
    assert!(ran.code == Some(4) && ran.err.contains("answer it in its terminal"), "{ran:?}");
    let completed = terminal.folder.types().into_iter().filter(|kind| kind == "permission.completed").count();
    assert_eq!(completed, 1, "{}", terminal.dump());
    terminal.approve();
    terminal.folder.wait_nth("permission.completed", 2);
    bridged.pilot.wait_status(&id, "idle", "");
    change_to(&bridged.home.project());
    terminal.enter("SCRIPT:sleep0 Paint the gate");
    let done = bridged.answer_request(&["approve", "--yes"], 3);
    assert_eq!(done["data"]["result"]["kind"], "approved", "{done}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_199_approvals_that_are_switched_off_show_in_the_row_and_by_a_popup() {
    let bridged = Bridged::new(&[]);
    let (id, terminal, pilot) = (bridged.id(), &bridged.terminal, &bridged.pilot);
    let popups = pilot.popups();
    terminal.enter("SCRIPT:plain Paint the wall");
    terminal.folder.wait("assistant.turn_end");
    pilot.wait_status(&id, "idle", "");
    terminal.enter("/allow-all on");
    pilot.wait_status(&id, "idle", "approvals are switched off");
    let is_told = || popups.received().into_iter().any(|popup| popup.title == "project approves everything now");
    wait_until(SOON, "a popup tells", || format!("{:#?}", popups.received()), || is_told().then_some(()));
    // Copilot says so to the bridge as well, which the log does not depend on.
    terminal.enter("SCRIPT:plain Paint the gate");
    terminal.folder.wait_nth("assistant.turn_end", 2);
    pilot.wait_status_in_tray(&id, "idle", "approvals are switched off");
    terminal.enter("/allow-all off");
    terminal.enter("SCRIPT:plain Paint the shed");
    terminal.folder.wait_nth("assistant.turn_end", 3);
    let is_off = |row: &serde_json::Value| !row["because"].as_str().unwrap_or_default().contains("switched off");
    pilot.row_where(&id, "approvals are on again", is_off);
}

/// Copilot writes no log before the first prompt.
#[test]
#[ignore = "tests/long.sh"]
fn case_199_approvals_that_are_switched_off_before_the_first_prompt_are_told() {
    let bridged = Bridged::new(&[]);
    let popups = bridged.pilot.popups();
    bridged.terminal.enter("/allow-all on");
    bridged.pilot.wait_status_in_tray(&bridged.id(), "idle", "approvals are switched off");
    let is_told = || popups.received().into_iter().any(|popup| popup.title == "project approves everything now");
    wait_until(SOON, "a popup tells", || format!("{:#?}", popups.received()), || is_told().then_some(()));
    assert!(!bridged.terminal.folder.types().iter().any(|kind| kind == "user.message"));
}

#[test]
#[ignore = "tests/long.sh"]
fn case_199_the_bridge_reports_the_permission_mode_at_each_turn() {
    let stage = Stage::new(&["--allow-all"]);
    let modes = || stage.connection.received().iter().filter(|message| message["t"] == "mode").count();
    let first = stage.connection.wait("the mode is told", |message| message["t"] == "mode");
    assert_eq!(first["all"], true, "it was started so");
    let before = modes();
    stage.terminal.enter("SCRIPT:plain Paint the wall");
    let told = || (modes() >= before + 2).then_some(());
    wait_until(
        SOON,
        "the mode is told at the start and the end",
        || format!("{:?}", stage.connection.received()),
        told,
    );
}

/// The bridge believes that it may answer, but Copilot refuses: nothing is answered, and the order fails with that
/// reason.
#[test]
#[ignore = "tests/long.sh"]
fn consent_that_copilot_does_not_know_is_dropped() {
    let Stage { terminal, connection, listener, model: _model, home } = Stage::in_home(&[], |home| {
        let file = extension_in(&ours(home)).join("extension.mjs");
        let code = std::fs::read_to_string(&file).unwrap();
        let changed = code.replace("let elevated = false;", "let elevated = true;");
        assert_ne!(code, changed);
        std::fs::write(file, changed).unwrap();
    });
    connection.wait("that it may", |message| message["t"] == "consent" && message["elevated"] == true);
    terminal.enter("SCRIPT:many1 Paint the fence");
    terminal.wait_screen(DIALOG);
    // Copilot sends it no request events. It reports open requests on every new connection.
    let key = std::fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    drop((connection, listener));
    let listener = Listener::start(&ours(&home).join("run/pilotlight"), &key);
    let connection = listener.accept();
    let message = connection.wait("what is open", |message| message["items"][0].is_object());
    let open = &message["items"][0];
    let order = json!({"t": "approve", "requestId": open["requestId"], "toolCallId": open["request"]["toolCallId"], "text": open["mark"]});
    assert_eq!(connection.order(1, order), Err("not-elevated".into()));
    connection.wait("that it may not", |message| message["t"] == "consent" && message["elevated"] == false);
    assert!(terminal.screen().contains(DIALOG), "{}", terminal.dump());
    terminal.approve();
    terminal.folder.wait("tool.execution_complete");
}

/// An organisation requires a person to approve commands: the bridge leaves them alone, even with consent.
#[test]
#[ignore = "tests/long.sh"]
fn requests_that_a_policy_reserves_for_a_person_are_answered_in_the_terminal() {
    let mut policy = Home::new("policy");
    policy.set_policy(&json!({"permissions": {"ask": ["shell"]}}));
    // The bridge obeys only a process of its own mount namespace.
    alone!(|command| policy.with_policy(command));
    let stage = Stage::new(&[]);
    request_consent(&stage, &["1"]).unwrap();
    stage.terminal.enter("SCRIPT:many1 Paint the fence");
    stage.terminal.wait_screen("Organization policy requires confirmation");
    let message = stage.connection.wait("the request", |message| message["type"] == "permission.requested");
    let request = &message["data"]["promptRequest"];
    assert_eq!(request["managedApprovalRequired"], true, "{message}");
    for (id, verb) in [(11, "approve"), (12, "deny")] {
        let order = json!({"t": verb, "requestId": message["data"]["requestId"], "toolCallId": request["toolCallId"], "text": message["mark"]});
        assert_eq!(stage.connection.order(id, order), Err("managed".into()));
    }
    stage.terminal.approve();
    stage.terminal.folder.wait("tool.execution_complete");
}

/// With a policy that allows only its own marketplaces, Copilot does not start the bridge, and that is reported.
#[test]
#[ignore = "tests/long.sh"]
fn a_bridge_forbidden_by_a_policy_is_not_started_and_that_is_reported() {
    let (mut home, model) = (Home::new("project"), Model::start());
    install(&home, &model);
    home.set_policy(&json!({"strictKnownMarketplaces": []}));
    let terminal = Terminal::start(&home, &model, &[]);
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    assert_eq!(terminal.find_extension(), None);
    let ran = bridge(&home, &model, &["status"]);
    assert!(ran.out.contains("a policy of your organisation forbids it"), "{ran:?}");
}

/// With everything allowed, no permission is requested. The bridge gets consent without a dialog, and still answers
/// questions.
#[test]
#[ignore = "tests/long.sh"]
fn with_everything_allowed_the_bridge_needs_no_dialog_and_answers_questions() {
    let bridged = Bridged::new(&["--allow-all"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:form Paint the fence");
    bridged.pilot.wait_status_in_tray(&id, "needs-input", "Which color?");
    bridged.pilot.click(&id, "Answer “blue”");
    let answered = terminal.folder.wait("tool.execution_complete");
    assert!(answered.to_string().contains("blue"), "{answered}");
    bridged.pilot.wait_status_in_tray(&id, "idle", "");
    let ran = bridged.run_ok(&["let-answer", &id]);
    assert!(ran.out.contains("may answer permission requests in this terminal"), "{ran:?}");
    assert!(!terminal.screen().contains(CONSENT), "{}", terminal.dump());
    terminal.enter("SCRIPT:many1 Paint the gate");
    terminal.folder.wait_nth("tool.execution_complete", 2);
    assert!(bridged.home.project().join("many1.txt").exists());
}

/// In a release with which the bridge was not tested, questions are reported, and orders are refused unless a setting
/// allows them.
#[test]
#[ignore = "tests/long.sh"]
fn in_an_untested_release_it_only_watches() {
    let bridged = Bridged::prepared(&[], |_, file| {
        let code = std::fs::read_to_string(file).unwrap();
        let other = code.replace("const { COPILOT_CLI_BINARY_VERSION: cli } = process.env;", "const cli = '9.9.9';");
        assert_ne!(code, other);
        std::fs::write(file, other).unwrap();
    });
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:form Paint the fence");
    bridged.pilot.wait_status_in_tray(&id, "needs-input", "Which color?");
    for verb in [&["answer", &id, "--choice", "1"][..], &["let-answer", &id]] {
        let ran = bridged.pilot.run(verb);
        assert!(ran.code == Some(4) && ran.err.contains("untested with Copilot 9.9.9"), "{ran:?}");
    }
    let status = bridged.run_ok(&["bridge", "status"]).out;
    assert!(status.contains("untested with 9.9.9: it only watches"), "{status}");
    let config = bridged.pilot.user().join("pilotlight.toml");
    let config = std::fs::read_to_string(config).unwrap();
    bridged.pilot.configure(&config.replace("[actions]\n", "[actions]\nbridge-untried = true\n"));
    bridged.pilot.click(&id, "Answer “blue”");
    let answered = terminal.folder.wait("tool.execution_complete");
    assert!(answered.to_string().contains("blue"), "{answered}");
}
