//! A frozen bridge: an order that arrives during that time counts only for that moment and turn, and not later.

use super::{Bridged, Stage, idle_elevate_order};
use crate::support::freeze::freeze;
use crate::support::process::signal;
use crate::support::terminal::CONSENT;
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn late_orders_are_not_carried_out() {
    let stage = Stage::new(&[]);
    let (terminal, extension) = (&stage.terminal, stage.terminal.extension());
    let after = idle_elevate_order(&stage)["after"].clone();
    // Expired: its sender was already told that the result is unknown, and may have done something else.
    let by = jiff::Timestamp::now().as_millisecond() - 1;
    for (id, verb) in (1..).zip(["elevate", "send", "stop", "approve", "deny", "answer", "plan", "activity"]) {
        let order = json!({"t": verb, "after": after, "prompt": "SCRIPT:two Paint it black", "by": by});
        assert_eq!(stage.connection.order(id, order), Err("late".into()), "{verb}");
    }
    // An order before its deadline is carried out.
    let in_time = json!({"t": "send", "after": after, "prompt": "SCRIPT:plain Paint the gate", "by": by + 600_000});
    stage.connection.order(9, in_time).unwrap();
    terminal.folder.wait_nth("assistant.turn_end", 2);
    let types = terminal.folder.types();
    assert_eq!(types.iter().filter(|kind| *kind == "user.message").count(), 2, "{}", terminal.dump());
    assert!(!types.iter().any(|kind| kind == "permission.requested"), "{}", terminal.dump());

    // Delayed: the bridge reads the order before it learns that the next turn has begun.
    terminal.enter("SCRIPT:tool Paint the shed");
    terminal.approve();
    terminal.folder.wait("permission.completed");
    freeze(extension);
    stage.connection.send(&format!("{}\n", json!({"t": "stop", "id": 10, "after": stage.root()})));
    stage.home.release_tools();
    terminal.folder.wait_nth("assistant.turn_end", 4);
    terminal.enter("SCRIPT:hang Paint the door");
    stage.model.wait_requested("hang", 0);
    terminal.folder.wait_nth("user.message", 4);
    signal(extension, Signal::CONT);
    let result = stage.connection.wait("its result", |message| message["t"] == "result" && message["id"] == 10);
    assert_eq!(result["error"], "changed", "{result}");
    stage.connection.order(11, json!({"t": "stop", "after": stage.root()})).unwrap();
    terminal.folder.wait("abort");
}

impl Bridged {
    /// Freezes the bridge during this command, and asserts that it is not confirmed.
    fn assert_unconfirmed(&self, command: &[&str]) {
        let extension = self.terminal.extension();
        freeze(extension);
        let ran = self.pilot.run(command);
        signal(extension, Signal::CONT);
        assert!(ran.code == Some(5) && ran.err.contains("does not answer"), "{ran:?}");
    }
}

/// The user was told that the bridge does not answer, and continues to type. When the bridge runs again, no dialog
/// appears and no turn is stopped.
#[test]
#[ignore = "tests/long.sh"]
fn orders_to_a_frozen_bridge_are_not_carried_out_later() {
    let bridged = Bridged::new(&["--allow-all-tools"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:plain Paint the wall");
    terminal.folder.wait("assistant.turn_end");
    bridged.pilot.wait_status(&id, "idle", "");
    bridged.assert_unconfirmed(&["let-answer", &id]);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("tool.execution_start");
    bridged.pilot.wait_status(&id, "working", "");
    bridged.assert_unconfirmed(&["stop", &id]);
    // The bridge runs again, and the tool is still running.
    bridged.home.release_tools();
    let done = terminal.folder.wait("tool.execution_complete");
    assert_eq!(done["data"]["success"], true, "{done}");
    bridged.pilot.wait_status(&id, "idle", "");
    bridged.choose_blue();
    let events = terminal.folder.events();
    let of_consent = |event: &&Value| event.to_string().contains("extension-permission-access");
    assert_eq!(events.iter().find(of_consent), None, "{}", terminal.dump());
    assert!(!terminal.screen().contains(CONSENT) && !terminal.folder.types().iter().any(|kind| kind == "abort"));
}
