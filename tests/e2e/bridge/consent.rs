//! Copilot's question whether Pilotlight may answer: when it is asked, and when it is not.

use super::{Stage, asked_for_consent, at_rest};
use crate::support::terminal::{DIALOG, Terminal};
use serde_json::json;

const CONSENT: &str = "wants elevated permissions";

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
