//! Copilot's question whether Pilotlight may answer: when it is asked, and when it is not.

use super::{Bridged, Stage, asked_for_consent, at_rest, bridge, extension_in, installed, ours};
use crate::support::home::Home;
use crate::support::listener::Listener;
use crate::support::model::Model;
use crate::support::terminal::{CONSENT, DIALOG, Terminal};
use crate::support::{SOON, wait_until};
use serde_json::json;

/// Whoever types meanwhile would answer it unseen.
#[test]
fn consent_is_not_asked_for_while_a_dialog_is_open_or_a_turn_runs() {
    let stage = Stage::set(&[]);
    at_rest(&stage);
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    stage.terminal.wait_screen(DIALOG);
    stage.terminal.folder.wait_nth("user.message", 2);
    let elevate = json!({"t": "elevate", "after": stage.root()});
    assert_eq!(stage.line.order(2, elevate.clone()), Err("busy".into()));
    stage.terminal.approve();
    stage.terminal.folder.wait("permission.completed");
    assert_eq!(stage.line.order(3, elevate.clone()), Err("busy".into()));
    stage.home.go();
    stage.terminal.folder.wait("tool.execution_complete");
    stage.line.wait("the second turn is over", |_| {
        stage.line.heard().iter().filter(|said| said["type"] == "session.idle").count() == 2
    });
    let asked = stage.terminal.folder.types().iter().filter(|kind| *kind == "permission.requested").count();
    assert_eq!(asked, 1, "nothing was asked beside the tool's own");
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| stage.line.order(4, elevate));
        stage.terminal.wait_screen(CONSENT);
        stage.terminal.press(&["Escape"]);
        asked.join().unwrap().unwrap_err();
    });
}

/// Consent that is remembered is used right after a prompt: never while something is typed, be it at the start or later.
#[test]
#[ignore = "tests/long.sh"]
fn remembered_consent_is_not_used_while_something_is_typed() {
    let stage = Stage::set(&[]);
    asked_for_consent(&stage, &["2"]).unwrap();
    stage.terminal.exit();
    let again = Terminal::start(&stage.home, &stage.model, &[]);
    let draft = "please fix the 2nd bug and the 3rd";
    again.type_only(draft);
    let line = stage.listener.accept();
    assert_eq!(line.order(1, json!({"t": "activity"})).unwrap()["hasActiveWork"], false);
    assert!(!line.heard().iter().any(|said| said["t"] == "consent"), "{:?}", line.heard());
    assert!(again.screen().contains(draft) && !again.screen().contains(CONSENT), "{}", again.dump());
    again.press(&["C-u"]);
    again.enter("SCRIPT:tool Paint the gate");
    line.wait("it may answer", |said| said["t"] == "consent" && said["elevated"] == true);
    assert!(!again.screen().contains(CONSENT), "{}", again.dump());
}

/// Nobody is there to be asked, and Copilot denies what would ask: the bridge does not.
#[test]
#[ignore = "tests/long.sh"]
fn in_autopilot_no_consent_is_asked_for_and_the_turn_is_stopped_all_the_same() {
    let stage = Stage::set(&["--autopilot", "--allow-all"]);
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    stage.terminal.folder.wait("tool.execution_start");
    assert_eq!(stage.line.order(1, json!({"t": "elevate", "after": stage.root()})), Err("busy".into()));
    stage.line.order(2, json!({"t": "stop", "after": stage.root()})).unwrap();
    stage.terminal.folder.wait("abort");
    assert!(
        !stage.terminal.folder.types().iter().any(|kind| kind == "permission.requested"),
        "{}",
        stage.terminal.dump()
    );
}

/// How often permission was asked for, the consent included.
fn asked(terminal: &Terminal) -> usize {
    terminal.folder.types().iter().filter(|kind| *kind == "permission.requested").count()
}

/// What is a repository to the bridge is none to Copilot, which asks where no dialog was expected: never again by itself.
#[test]
#[ignore = "tests/long.sh"]
fn a_record_that_is_misread_is_made_use_of_once() {
    let bridged = Bridged::changed(&[], |home, _| {
        std::fs::create_dir(home.root().join(".git")).unwrap();
        home.remember_consent(home.root());
    });
    let (id, home) = (bridged.id(), &bridged.home);
    let misread = bridged.pilot.user().join(".local/state/pilotlight/bridge.misread");
    bridged.terminal.enter("SCRIPT:plain Paint the fence");
    bridged.terminal.wait_screen(CONSENT);
    wait_until(SOON, "that is kept", || bridged.pilot.log(), || misread.exists().then_some(()));
    bridged.terminal.press(&["Escape"]);
    bridged.terminal.wait_no_screen(CONSENT);
    bridged.terminal.folder.wait("assistant.turn_end");
    // A no takes nothing else away.
    bridged.terminal.enter("SCRIPT:form Paint the gate");
    bridged.pilot.told_beside(&id, "needs-input", "Which color?");
    bridged.pilot.click(&id, "Answer “blue”");
    bridged.terminal.folder.wait("tool.execution_complete");

    let second = Terminal::start(home, &bridged.model, &[]);
    let id = second.folder.id();
    bridged.pilot.has_bridges(1, &id);
    for turn in 1..=2 {
        second.enter(&format!("SCRIPT:plain Paint the shed {turn}"));
        second.folder.wait_nth("assistant.turn_end", turn);
    }
    assert_eq!(asked(&second), 0, "{}", second.dump());
    // Asked by a click it is as before.
    bridged.pilot.click(&id, "Let Pilotlight answer here");
    second.wait_screen(CONSENT);
    second.press(&["1"]);
    second.folder.wait("permission.completed");
}

/// Another terminal's Copilot keeps a consent while this one runs, which does not know of it: nothing is asked here, nor after `/clear`.
#[test]
#[ignore = "tests/long.sh"]
fn consent_that_another_terminal_keeps_meanwhile_is_not_used() {
    let stage = Stage::set(&[]);
    stage.home.remember_consent(&stage.home.project());
    for turn in 1..=2 {
        stage.terminal.enter(&format!("SCRIPT:plain Paint the fence {turn}"));
        stage.terminal.folder.wait_nth("assistant.turn_end", turn);
    }
    stage.terminal.enter("/clear");
    let line = stage.listener.accept();
    let folder = stage.home.session(line.hello["session"].as_str().unwrap());
    for turn in 1..=2 {
        stage.terminal.enter(&format!("SCRIPT:plain Paint the gate {turn}"));
        folder.wait_nth("assistant.turn_end", turn);
    }
    for line in [&stage.line, &line] {
        assert!(!line.heard().iter().any(|said| said["t"] == "consent"), "{:?}", line.heard());
    }
    assert!(!stage.terminal.screen().contains(CONSENT), "{}", stage.terminal.dump());
}

/// `/cwd` leads to a folder for which nothing was allowed: the record of the one before counts no more, until the session is back.
#[test]
#[ignore = "tests/long.sh"]
fn after_a_change_of_folder_the_record_of_that_folder_counts() {
    let elsewhere = |home: &Home| home.root().join("elsewhere");
    let stage = Stage::in_home(&[], |home| {
        std::fs::create_dir(elsewhere(home)).unwrap();
        home.trust(&[&home.project(), &elsewhere(home)]);
        home.remember_consent(&home.project());
    });
    let elsewhere = elsewhere(&stage.home);
    let go = |folder: &std::path::Path| {
        stage.terminal.enter(&format!("/cwd {}", folder.display()));
        stage.terminal.wait_screen(&format!("directory to: {}", folder.display()));
    };
    go(&elsewhere);
    for turn in 1..=2 {
        stage.terminal.enter(&format!("SCRIPT:plain Paint the fence {turn}"));
        stage.terminal.folder.wait_nth("assistant.turn_end", turn);
    }
    assert_eq!(asked(&stage.terminal), 0, "{}", stage.terminal.dump());
    assert!(!stage.line.heard().iter().any(|said| said["t"] == "consent"), "{:?}", stage.line.heard());
    go(&stage.home.project());
    stage.terminal.enter("SCRIPT:plain Paint the gate");
    stage.line.wait("it may answer", |said| said["t"] == "consent" && said["elevated"] == true);
    assert!(!stage.terminal.screen().contains(CONSENT), "{}", stage.terminal.dump());
}

/// The bridge takes itself for allowed, and Copilot says no: nothing is answered, and whoever ordered is told so.
#[test]
fn consent_that_copilot_does_not_know_of_is_given_up() {
    let Stage { terminal, line, listener, model: _model, home } = Stage::in_home(&[], |home| {
        let file = extension_in(&ours(home)).join("extension.mjs");
        let code = std::fs::read_to_string(&file).unwrap();
        let believes = code.replace("let elevated = false;", "let elevated = true;");
        assert_ne!(code, believes);
        std::fs::write(file, believes).unwrap();
    });
    assert_eq!(line.hello["elevated"], true);
    terminal.enter("SCRIPT:many1 Paint the fence");
    terminal.wait_screen(DIALOG);
    // Copilot tells it of no request; what is open is told to whoever comes.
    let key = std::fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    drop((line, listener));
    let listener = Listener::start(&ours(&home).join("run/pilotlight"), &key);
    let line = listener.accept();
    let said = line.wait("what is open", |said| said["items"][0].is_object());
    let open = &said["items"][0];
    let order = json!({"t": "approve", "requestId": open["requestId"], "toolCallId": open["request"]["toolCallId"], "text": open["mark"]});
    assert_eq!(line.order(1, order), Err("not-elevated".into()));
    line.wait("that it may not", |said| said["t"] == "consent" && said["elevated"] == false);
    assert!(terminal.screen().contains(DIALOG), "{}", terminal.dump());
    terminal.approve();
    terminal.folder.wait("tool.execution_complete");
}

/// An organisation wants a person to answer commands: the bridge leaves them alone, though it may answer.
#[test]
#[ignore = "tests/long.sh"]
fn what_a_policy_wants_a_person_to_answer_is_answered_in_the_terminal() {
    let stage = Stage::in_home(&[], |home| home.lay_down(&json!({"permissions": {"ask": ["shell"]}})));
    asked_for_consent(&stage, &["1"]).unwrap();
    stage.terminal.enter("SCRIPT:many1 Paint the fence");
    stage.terminal.wait_screen("Organization policy requires confirmation");
    let said = stage.line.wait("the request", |said| said["type"] == "permission.requested");
    let request = &said["data"]["promptRequest"];
    assert_eq!(request["managedApprovalRequired"], true, "{said}");
    for (id, verb) in [(11, "approve"), (12, "deny")] {
        let order = json!({"t": verb, "requestId": said["data"]["requestId"], "toolCallId": request["toolCallId"], "text": said["mark"]});
        assert_eq!(stage.line.order(id, order), Err("managed".into()));
    }
    stage.terminal.approve();
    stage.terminal.folder.wait("tool.execution_complete");
}

/// A policy that knows no marketplace but its own: Copilot starts no bridge, and that is told.
#[test]
#[ignore = "tests/long.sh"]
fn a_bridge_that_a_policy_forbids_is_not_started_and_that_is_told() {
    let (mut home, model) = (Home::new("project"), Model::start());
    installed(&home, &model);
    home.lay_down(&json!({"strictKnownMarketplaces": []}));
    let terminal = Terminal::start(&home, &model, &[]);
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    assert_eq!(terminal.find_extension(), None);
    let ran = bridge(&home, &model, &["status"]);
    assert!(ran.out.contains("a policy of your organisation forbids it"), "{ran:?}");
}

/// Where all is allowed nothing is asked for permission, the bridge is let in unasked, and still answers questions.
#[test]
#[ignore = "tests/long.sh"]
fn with_everything_allowed_the_bridge_is_let_in_and_answers_questions() {
    let bridged = Bridged::set(&["--allow-all"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:form Paint the fence");
    bridged.pilot.told_beside(&id, "needs-input", "Which color?");
    bridged.pilot.click(&id, "Answer “blue”");
    let answered = terminal.folder.wait("tool.execution_complete");
    assert!(answered.to_string().contains("blue"), "{answered}");
    bridged.pilot.told_beside(&id, "idle", "");
    let ran = bridged.done(&["let-answer", &id]);
    assert!(ran.out.contains("may answer permission requests in this terminal"), "{ran:?}");
    assert!(!terminal.screen().contains(CONSENT), "{}", terminal.dump());
    terminal.enter("SCRIPT:many1 Paint the gate");
    terminal.folder.wait_nth("tool.execution_complete", 2);
    assert!(bridged.home.project().join("many1.txt").exists());
}

/// In a release that the bridge was not tried with, what the session asks is told, and nothing is done there before its user's settings
/// say so.
#[test]
#[ignore = "tests/long.sh"]
fn in_a_release_that_was_not_tried_it_only_watches() {
    let bridged = Bridged::changed(&[], |_, file| {
        let code = std::fs::read_to_string(file).unwrap();
        let other = code.replace("const { COPILOT_CLI_BINARY_VERSION: cli } = process.env;", "const cli = '9.9.9';");
        assert_ne!(code, other);
        std::fs::write(file, other).unwrap();
    });
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:form Paint the fence");
    bridged.pilot.told_beside(&id, "needs-input", "Which color?");
    for verb in [&["answer", &id, "--choice", "1"][..], &["let-answer", &id]] {
        let ran = bridged.pilot.run(verb);
        assert!(ran.code == Some(4) && ran.err.contains("not tried with Copilot 9.9.9"), "{ran:?}");
    }
    let said = bridged.done(&["bridge", "status"]).out;
    assert!(said.contains("not tried with 9.9.9: watching only"), "{said}");
    let config = bridged.pilot.user().join("pilotlight.toml");
    let config = std::fs::read_to_string(config).unwrap();
    bridged.pilot.configure(&config.replace("[actions]\n", "[actions]\nbridge-untried = true\n"));
    bridged.pilot.click(&id, "Answer “blue”");
    let answered = terminal.folder.wait("tool.execution_complete");
    assert!(answered.to_string().contains("blue"), "{answered}");
}
