//! What is clicked, on a popup or in the menu, is done in the terminal.

use super::{Bridged, extension_in};
use crate::support::desktop::panel::Entry;
use crate::support::desktop::popups::{Popup, Popups};
use crate::support::terminal::{DIALOG, Terminal};
use crate::support::{SOON, wait_until};
use serde_json::Value;

/// A turn is stuck at once, and each popup comes as if it were the first of its kind.
const AT_ONCE: &str = "cooldown = \"1ms\"\n[limits]\nfresh-quiet = \"2s\"\nfresh-stuck = \"4s\"\n";

/// The newest popup that begins so, and came after that one.
fn next(bridged: &Bridged, popups: &Popups, after: u32, title: &str) -> Popup {
    let what = format!("a popup says {title:?}");
    let dump = || format!("{:#?}\n{}", popups.taken(), bridged.terminal.dump());
    let newest = || popups.taken().into_iter().rfind(|popup| popup.number > after && popup.title == title);
    wait_until(SOON, &what, dump, newest)
}

/// How the `nth` permission request was answered, and whether by a person in the terminal.
fn answer(bridged: &Bridged, nth: usize) -> (Value, Value) {
    let completed = bridged.terminal.folder.wait_nth("permission.completed", nth);
    (completed["data"]["result"]["kind"].clone(), completed["data"]["decisionSource"].clone())
}

#[test]
fn what_is_clicked_on_a_popup_is_done_in_the_terminal() {
    let bridged = Bridged::configured(&[], AT_ONCE);
    bridged.allowed();
    let (id, terminal, popups) = (bridged.id(), &bridged.terminal, bridged.pilot.popups());
    terminal.enter("SCRIPT:many1 Paint the fence");
    terminal.wait_screen(DIALOG);
    let asks = next(&bridged, &popups, 0, "project wants to run");
    assert_eq!(asks.actions[..4], ["approve", "Approve once", "deny", "Deny"], "{asks:#?}");
    popups.click_read(asks.number, "approve");
    assert_eq!(answer(&bridged, 2), ("approved".into(), Value::Null));
    terminal.folder.wait("tool.execution_complete");
    bridged.pilot.told(&id, "idle", "");

    terminal.enter("SCRIPT:many1 Paint the gate");
    terminal.wait_screen(DIALOG);
    let asks = next(&bridged, &popups, asks.number, "project wants to run");
    popups.click_read(asks.number, "deny");
    assert_eq!(answer(&bridged, 3), ("denied-interactively-by-user".into(), Value::Null));
    bridged.pilot.told(&id, "idle", "");

    terminal.enter("SCRIPT:form Paint the shed");
    let asks = next(&bridged, &popups, asks.number, "project waits for your answer");
    assert_eq!(asks.actions[..4], ["choice-1", "red", "choice-2", "blue"], "{asks:#?}");
    popups.click_read(asks.number, "choice-2");
    let answered = terminal.folder.wait_nth("tool.execution_complete", 3);
    assert!(answered.to_string().contains("blue"), "{answered}");
    bridged.pilot.told_beside(&id, "idle", "");

    terminal.enter("SCRIPT:hang Paint the door");
    let stuck = next(&bridged, &popups, asks.number, "project is stuck");
    assert!(stuck.actions.contains(&"stop".to_owned()), "{stuck:#?}");
    popups.click_read(stuck.number, "stop");
    terminal.folder.wait("abort");
    bridged.pilot.told(&id, "idle", "");

    // What was clicked once, and what is over, does nothing more.
    for (popup, action) in [(asks.number, "choice-1"), (stuck.number, "stop")] {
        popups.click(popup, action);
    }
    terminal.enter("SCRIPT:err400 Paint the roof");
    let failed = next(&bridged, &popups, stuck.number, "project failed");
    assert!(failed.actions.contains(&"send-on".to_owned()), "{failed:#?}");
    popups.click_read(failed.number, "send-on");
    terminal.folder.wait_nth("user.message", 7);
    let types = terminal.folder.types();
    assert_eq!(types.iter().filter(|kind| *kind == "abort").count(), 1, "{}", terminal.dump());
}

/// Stop and answer are clicked there in other stories.
#[test]
fn what_is_clicked_in_the_menu_is_done_in_the_terminal() {
    let bridged = Bridged::set(&[]);
    bridged.allowed();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    for (nth, clicked, came) in [(2, "Approve once", "approved"), (3, "Deny", "denied-interactively-by-user")] {
        terminal.enter(&format!("SCRIPT:many1 Paint the fence {nth}"));
        terminal.wait_screen(DIALOG);
        bridged.pilot.click(&id, clicked);
        assert_eq!(answer(&bridged, nth), (came.into(), Value::Null));
        terminal.wait_no_screen(DIALOG);
        bridged.pilot.told(&id, "idle", "");
    }
}

/// After an update the bridge of before works on, and a click has terminals that are started from then on have the new one.
#[test]
fn a_click_renews_the_bridge_for_the_terminals_that_come() {
    let bridged = Bridged::changed(&[], |_, file| {
        let code = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, format!("{code}// of before\n")).unwrap();
    });
    let (file, panel) = (extension_in(bridged.pilot.user()).join("extension.mjs"), bridged.pilot.panel());
    let renews = |entry: &Entry| entry.shown().starts_with("Renew the bridge") && entry.enabled;
    panel.wait_for("it can be renewed", renews);
    panel.rest();
    panel.open();
    assert!(panel.click(panel.wait_for("it can be renewed", renews).id));
    panel.close();
    let renewed = || (!std::fs::read_to_string(&file).unwrap().contains("of before")).then_some(());
    wait_until(SOON, "it is renewed", || bridged.pilot.log(), renewed);
    let offered = || panel.layout().1.find(&renews).is_none().then_some(());
    wait_until(SOON, "nothing is left to renew", || format!("{:#?}", panel.menu()), offered);
    bridged.chosen();
    let second = Terminal::start(&bridged.home, &bridged.model, &[]);
    bridged.pilot.has_bridges(1, &second.folder.id());
    let said: Value = serde_json::from_str(&bridged.done(&["bridge", "status", "--json"]).out).unwrap();
    let is_old = |id: &str| {
        let sessions = said[0]["sessions"].as_array().unwrap();
        sessions.iter().find(|session| session["id"] == id).unwrap()["old"].clone()
    };
    assert_eq!((is_old(&bridged.id()), is_old(&second.folder.id())), (true.into(), false.into()), "{said}");
    let doctor = bridged.pilot.run(&["doctor"]);
    assert!(doctor.out.contains("an older version of the bridge runs in 1 session"), "{doctor:?}");
}
