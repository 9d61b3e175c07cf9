//! A bridge that stands still for a while: what it is told meanwhile is for that moment and that turn, and for nothing that comes later.

use super::{Bridged, Stage, at_rest};
use crate::support::freeze::freeze;
use crate::support::process::signal;
use crate::support::terminal::CONSENT;
use rustix::process::Signal;
use serde_json::{Value, json};

/// It takes the order before it reads of what happened meanwhile.
#[test]
fn a_stop_that_waited_does_not_hit_the_next_turn() {
    let stage = Stage::set(&["--allow-all-tools"]);
    let (terminal, extension) = (&stage.terminal, stage.terminal.extension());
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("tool.execution_start");
    freeze(extension);
    stage.line.say(&format!("{}\n", json!({"t": "stop", "id": 7, "after": stage.root()})));
    stage.home.go();
    terminal.folder.wait_nth("assistant.turn_end", 2);
    terminal.enter("SCRIPT:hang Paint the gate");
    stage.model.wait_asked("hang", 0);
    terminal.folder.wait_nth("user.message", 2);
    signal(extension, Signal::CONT);
    let result = stage.line.wait("what came of it", |said| said["t"] == "result" && said["id"] == 7);
    assert_eq!(result["error"], "changed", "{result}");
    stage.line.order(8, json!({"t": "stop", "after": stage.root()})).unwrap();
    terminal.folder.wait("abort");
}

/// Whoever gave it was told that nothing is known of it, and may have gone on.
#[test]
fn an_order_that_is_too_old_is_not_carried_out() {
    let stage = Stage::set(&[]);
    let after = at_rest(&stage)["after"].clone();
    let by = jiff::Timestamp::now().as_millisecond() - 1;
    for (id, verb) in (1..).zip(["elevate", "send", "stop", "approve", "deny", "answer", "plan", "activity"]) {
        let order = json!({"t": verb, "after": after, "prompt": "SCRIPT:two Paint it black", "by": by});
        assert_eq!(stage.line.order(id, order), Err("late".into()), "{verb}");
    }
    // The time until then counts.
    let in_time = json!({"t": "send", "after": after, "prompt": "SCRIPT:plain Paint the gate", "by": by + 600_000});
    stage.line.order(9, in_time).unwrap();
    stage.terminal.folder.wait_nth("assistant.turn_end", 2);
    let types = stage.terminal.folder.types();
    assert_eq!(types.iter().filter(|kind| *kind == "user.message").count(), 2, "{}", stage.terminal.dump());
    assert!(!types.iter().any(|kind| kind == "permission.requested"), "{}", stage.terminal.dump());
}

impl Bridged {
    /// Has its bridge stand still while this is tried, which then is not confirmed.
    fn in_vain(&self, command: &[&str]) {
        let extension = self.terminal.extension();
        freeze(extension);
        let ran = self.pilot.run(command);
        signal(extension, Signal::CONT);
        assert!(ran.code == Some(5) && ran.err.contains("does not answer"), "{ran:?}");
    }
}

/// Its user was told that the bridge does not answer, and types: no dialog comes, and no turn ends, when it goes on.
#[test]
#[ignore = "tests/long.sh"]
fn what_was_clicked_while_the_bridge_stood_still_is_not_done_later() {
    let bridged = Bridged::set(&["--allow-all-tools"]);
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:plain Paint the wall");
    terminal.folder.wait("assistant.turn_end");
    bridged.pilot.told(&id, "idle", "");
    bridged.in_vain(&["let-answer", &id]);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("tool.execution_start");
    bridged.pilot.told(&id, "working", "");
    bridged.in_vain(&["stop", &id]);
    // It is there again, and the tool still runs.
    bridged.home.go();
    let done = terminal.folder.wait("tool.execution_complete");
    assert_eq!(done["data"]["success"], true, "{done}");
    bridged.pilot.told(&id, "idle", "");
    bridged.chosen();
    let events = terminal.folder.events();
    let of_consent = |event: &&Value| event.to_string().contains("extension-permission-access");
    assert_eq!(events.iter().find(of_consent), None, "{}", terminal.dump());
    assert!(!terminal.screen().contains(CONSENT) && !terminal.folder.types().iter().any(|kind| kind == "abort"));
}
