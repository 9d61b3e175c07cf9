//! Buttons that act: what is clicked on a popup is done to the session of the real CLI that it is about.

use super::stage::Stage;
use crate::support::desktop::popups::{Popup, Popups};
use crate::support::home::Folder;
use crate::support::person::Manner;
use serde_json::Value;

/// Nothing is held back after the start: a test does not wait for what is not its matter.
const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\n";

/// The kind of each answer to a permission request, in order.
fn answers(folder: &Folder) -> Vec<String> {
    let of = |event: &Value| event["data"]["result"]["kind"].as_str().unwrap_or_default().to_owned();
    folder.events().iter().filter(|event| event["type"] == "permission.completed").map(of).collect()
}

/// The first popup, on a session that asks for a permission.
fn asked(stage: &Stage, popups: &Popups) -> Popup {
    stage.told("idle", "");
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    let popup = popups.wait_for(1);
    assert!(popup.title.starts_with("Needs permission: "), "{popup:#?}");
    assert!(popup.body.contains("for i in $(seq 600); do [ -e go ] &amp;&amp; break;"), "{popup:#?}");
    assert_eq!(popup.actions[..6], ["approve", "Approve once", "deny", "Deny", "mute", "Mute"], "{popup:#?}");
    popup
}

#[test]
fn approve_on_a_popup_allows_the_request_that_it_shows() {
    let stage = Stage::set_configured(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = asked(&stage, &popups);
    popups.click(popup.number, "approve");
    stage.session.folder.wait("permission.completed");
    stage.told("working", "");
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    assert_eq!(popups.taken().len(), 1, "{:#?}", popups.taken());
    popups.wait_for_closed(&[popup.number]);
    let log = stage.pilot.log();
    assert!(!log.contains("seq 600") && !log.contains("Paint"), "no content in the log: {log}");
}

#[test]
fn deny_on_a_popup_refuses_the_request_that_it_shows() {
    let stage = Stage::set_configured(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = asked(&stage, &popups);
    popups.click(popup.number, "deny");
    stage.session.folder.wait("tool.execution_complete");
    assert_eq!(answers(&stage.session.folder), ["denied-interactively-by-user"]);
    stage.told("idle", "");
}

/// Somebody else answers: the popup goes, and a click that was on its way answers nothing.
#[test]
fn a_popup_goes_when_somebody_else_answers() {
    let stage = Stage::set_configured(Manner::Waits, AT_ONCE);
    let popups = stage.pilot.popups();
    let popup = asked(&stage, &popups);
    stage.person.now(Manner::Approves);
    popups.wait_for_closed(&[popup.number]);
    popups.click(popup.number, "deny");
    stage.home.go();
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.told("idle", "");
    assert_eq!(answers(&stage.session.folder), ["approved"]);
    assert_eq!(popups.taken().len(), 1, "{:#?}", popups.taken());
}

#[test]
fn stop_on_a_popup_stops_a_stuck_turn() {
    let limits = "[limits]\nfresh-quiet = \"2s\"\nfresh-stuck = \"4s\"\n";
    let stage = Stage::set_configured(Manner::Approves, &format!("{limits}{AT_ONCE}"));
    let popups = stage.pilot.popups();
    stage.told("idle", "");
    stage.session.send("SCRIPT:hang Paint the fence");
    let popup = popups.wait_for(1);
    assert!(popup.title.starts_with("Stuck: "), "{popup:#?}");
    assert_eq!(popup.actions[..6], ["reconnect", "Reconnect", "stop", "Stop", "mute", "Mute"], "{popup:#?}");
    popups.click(popup.number, "stop");
    stage.told("idle", "stopped");
    popups.wait_for_closed(&[popup.number]);
}

#[test]
fn reconnect_on_a_popup_brings_permissions_back() {
    let stage = Stage::without_person_configured(AT_ONCE);
    let popups = stage.pilot.popups();
    stage.told("idle", "");
    stage.session.send("SCRIPT:denied3 Paint the fence");
    let popup = popups.wait_for(1);
    assert!(popup.title.starts_with("Without permissions: "), "{popup:#?}");
    assert_eq!(popup.actions[..2], ["reconnect", "Reconnect"], "{popup:#?}");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    popups.click(popup.number, "reconnect");
    stage.pilot.menu_says(&stage.session.id(), "Our part: attached to its server");
    assert_eq!(popups.wait_for(2).title, "Done");
    stage.told("idle", "");
}
