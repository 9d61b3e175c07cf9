//! Clicks on a popup or in the menu take effect in the terminal.

use super::{Bridged, extension_in};
use crate::support::desktop::panel::Entry;
use crate::support::desktop::popups::{Popup, Popups};
use crate::support::terminal::{DIALOG, Terminal};
use crate::support::{SOON, wait_until};
use serde_json::Value;

/// A turn is stuck soon, and repeated popups are not suppressed.
const AT_ONCE: &str = "cooldown = \"1ms\"\n[limits]\nfresh-quiet = \"2s\"\nfresh-stuck = \"4s\"\nthinking-quiet = \"2s\"\nthinking-stuck = \"4s\"\n";

/// The newest popup with this title and a higher number than `after`.
fn next(bridged: &Bridged, popups: &Popups, after: u32, title: &str) -> Popup {
    let what = format!("a popup says {title:?}");
    let dump = || format!("{:#?}\n{}", popups.received(), bridged.terminal.dump());
    let newest = || popups.received().into_iter().rfind(|popup| popup.number > after && popup.title == title);
    wait_until(SOON, &what, dump, newest)
}

/// The answer to the `nth` permission request, and its source: null, or a person in the terminal.
fn answer(bridged: &Bridged, nth: usize) -> (Value, Value) {
    let completed = bridged.terminal.folder.wait_nth("permission.completed", nth);
    (completed["data"]["result"]["kind"].clone(), completed["data"]["decisionSource"].clone())
}

#[test]
#[ignore = "tests/long.sh"]
fn clicks_on_a_popup_take_effect_in_the_terminal() {
    let bridged = Bridged::configured(&[], AT_ONCE);
    bridged.give_consent();
    let (id, terminal, popups) = (bridged.id(), &bridged.terminal, bridged.pilot.popups());
    terminal.enter("SCRIPT:many1 Paint the fence");
    terminal.wait_screen(DIALOG);
    let asks = next(&bridged, &popups, 0, "project wants to run");
    assert_eq!(asks.actions[..4], ["approve", "Approve once", "deny", "Deny"], "{asks:#?}");
    popups.click_after_reading(asks.number, "approve");
    assert_eq!(answer(&bridged, 2), ("approved".into(), Value::Null));
    terminal.folder.wait("tool.execution_complete");
    bridged.pilot.wait_status(&id, "idle", "");

    terminal.enter("SCRIPT:many1 Paint the gate");
    terminal.wait_screen(DIALOG);
    let asks = next(&bridged, &popups, asks.number, "project wants to run");
    popups.click_after_reading(asks.number, "deny");
    assert_eq!(answer(&bridged, 3), ("denied-interactively-by-user".into(), Value::Null));
    bridged.pilot.wait_status(&id, "idle", "");

    terminal.enter("SCRIPT:form Paint the shed");
    let asks = next(&bridged, &popups, asks.number, "project waits for your answer");
    assert_eq!(asks.actions[..4], ["choice-1", "red", "choice-2", "blue"], "{asks:#?}");
    popups.click_after_reading(asks.number, "choice-2");
    let answered = terminal.folder.wait_nth("tool.execution_complete", 3);
    assert!(answered.to_string().contains("blue"), "{answered}");
    bridged.pilot.wait_status_in_tray(&id, "idle", "");

    terminal.enter("SCRIPT:hang Paint the door");
    let stuck = next(&bridged, &popups, asks.number, "project is stuck");
    assert!(stuck.actions.contains(&"stop".to_owned()), "{stuck:#?}");
    popups.click_after_reading(stuck.number, "stop");
    terminal.folder.wait("abort");
    bridged.pilot.wait_status(&id, "idle", "");

    // A second click on an answered or outdated popup has no effect.
    for (popup, action) in [(asks.number, "choice-1"), (stuck.number, "stop")] {
        popups.click(popup, action);
    }
    terminal.enter("SCRIPT:err400 Paint the roof");
    let failed = next(&bridged, &popups, stuck.number, "project failed");
    assert!(failed.actions.contains(&"send-on".to_owned()), "{failed:#?}");
    popups.click_after_reading(failed.number, "send-on");
    terminal.folder.wait_nth("user.message", 7);
    let types = terminal.folder.types();
    assert_eq!(types.iter().filter(|kind| *kind == "abort").count(), 1, "{}", terminal.dump());
}

#[test]
fn clicks_in_the_menu_take_effect_in_the_terminal() {
    let bridged = Bridged::consented();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    for (nth, label, expected) in [(2, "Approve once", "approved"), (3, "Deny", "denied-interactively-by-user")] {
        terminal.enter(&format!("SCRIPT:many1 Paint the fence {nth}"));
        terminal.wait_screen(DIALOG);
        bridged.pilot.click(&id, label);
        assert_eq!(answer(&bridged, nth), (expected.into(), Value::Null));
        terminal.wait_no_screen(DIALOG);
        bridged.pilot.wait_status(&id, "idle", "");
    }
    bridged.choose_blue();
    bridged.pilot.wait_status_in_tray(&id, "idle", "");
    terminal.enter("SCRIPT:hang Paint the gate");
    bridged.model.wait_requested("hang", 0);
    bridged.pilot.wait_status(&id, "working", "");
    bridged.pilot.click(&id, "Stop the turn");
    terminal.folder.wait("abort");
    bridged.pilot.wait_status(&id, "idle", "");
}

/// Case 197b: after an update, the old bridge continues to work, and its session says so. A click installs the new one for terminals that are started
/// later.
#[test]
#[ignore = "tests/long.sh"]
fn case_197b_a_click_renews_the_bridge_for_new_terminals() {
    let bridged = Bridged::prepared(&[], |_, file| {
        let code = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, format!("{code}// old version\n")).unwrap();
    });
    let (file, panel) = (extension_in(bridged.pilot.user()).join("extension.mjs"), bridged.pilot.panel());
    let renews = |entry: &Entry| entry.shown().starts_with("Renew the bridge") && entry.enabled;
    panel.wait_for("it can be renewed", renews);
    panel.open();
    assert!(panel.click(panel.wait_for("it can be renewed", renews).id));
    panel.close();
    let renewed = || (!std::fs::read_to_string(&file).unwrap().contains("old version")).then_some(());
    wait_until(SOON, "it is renewed", || bridged.pilot.log(), renewed);
    let offered = || panel.layout().1.find(&renews).is_none().then_some(());
    wait_until(SOON, "nothing is left to renew", || format!("{:#?}", panel.menu()), offered);
    bridged.choose_blue();
    let second = Terminal::start(&bridged.home, &bridged.model, &[]);
    bridged.pilot.wait_bridges(1, &second.folder.id());
    let status: Value = serde_json::from_str(&bridged.run_ok(&["bridge", "status", "--json"]).out).unwrap();
    let is_old = |id: &str| {
        let sessions = status[0]["sessions"].as_array().unwrap();
        sessions.iter().find(|session| session["id"] == id).unwrap()["old"].clone()
    };
    assert_eq!((is_old(&bridged.id()), is_old(&second.folder.id())), (true.into(), false.into()), "{status}");
    let doctor = bridged.pilot.run(&["doctor"]);
    assert!(doctor.out.contains("another version of the bridge runs in 1 session"), "{doctor:?}");
    let told = "it is another version of the bridge: restart the session";
    let explained = |id: &str| bridged.run_ok(&["explain", id]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(explained(&bridged.id()).contains(told) && !explained(&second.folder.id()).contains(told));
}
