//! A frozen bridge: an order that arrives during that time counts only for that moment and turn, and not later.

use super::{Bridged, Stage, idle_elevate_order};
use crate::support::freeze::freeze;
use crate::support::process::{is_live, kill, signal};
use crate::support::terminal::{CONSENT, DIALOG};
use crate::support::{COPILOT, SOON, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
#[ignore = "tests/long.sh"]
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

/// The bridge asks whether an order still stands right before it acts, and once more if Copilot took its time.
#[test]
#[ignore = "tests/long.sh"]
fn case_190_an_order_that_was_withdrawn_is_not_carried_out() {
    let stage = Stage::new(&["--allow-all-tools"]);
    let (terminal, connection) = (&stage.terminal, &stage.connection);
    let after = idle_elevate_order(&stage)["after"].clone();
    connection.set_stands(false);
    for (id, verb) in (1..).zip(["elevate", "send", "stop", "answer", "plan"]) {
        let order =
            json!({"t": verb, "after": after, "prompt": "SCRIPT:two Paint it black", "response": {"approved": false}});
        assert_eq!(connection.order(id, order), Err("withdrawn".into()), "{verb}");
    }
    terminal.enter("SCRIPT:tool Paint the shed");
    terminal.folder.wait("tool.execution_start");
    let stop = json!({"t": "stop", "after": stage.root()});
    assert_eq!(connection.order(10, stop.clone()), Err("withdrawn".into()));
    // Copilot is stopped right after the bridge was told that the order stands, which later is no longer true.
    connection.set_stands(true);
    terminal.freeze();
    connection.send(&format!("{}\n", json!({"t": "stop", "id": 11, "after": stage.root()})));
    connection.wait("it asks", |message| message["t"] == "ask" && message["id"] == 11);
    let asked = Instant::now();
    let is_old = || (asked.elapsed() > Duration::from_millis(600)).then_some(());
    wait_until(SOON, "the answer is old", String::new, is_old);
    connection.set_stands(false);
    terminal.thaw();
    let result = connection.wait("its result", |message| message["t"] == "result" && message["id"] == 11);
    assert_eq!(result["error"], "withdrawn", "{result}");
    assert!(!terminal.folder.types().iter().any(|kind| kind == "abort"), "{}", terminal.dump());
    connection.set_stands(true);
    connection.order(12, stop).unwrap();
    terminal.folder.wait("abort");
}

impl Bridged {
    /// Freezes the bridge during this command, and asserts that nothing is done.
    fn assert_not_done(&self, command: &[&str]) {
        let extension = self.terminal.extension();
        freeze(extension);
        let ran = self.pilot.run(command);
        signal(extension, Signal::CONT);
        assert!(ran.code == Some(1) && ran.err.contains("does not answer, so nothing was done"), "{ran:?}");
    }

    /// Freezes the terminal and its bridge, kills this command after the tray has sent its order, and lets them go on.
    fn give_up(&self, command: &[&str], tag: &str) {
        let extension = self.terminal.extension();
        let count = || self.pilot.log().lines().filter(|line| line.contains(&format!("tag={tag} "))).count();
        let before = count();
        self.terminal.freeze();
        freeze(extension);
        let mut given = self.pilot.command_with_tray(command).spawn().unwrap();
        wait_until(SOON, "the order is sent", || self.pilot.log(), || (count() > before).then_some(()));
        kill(given.id());
        given.wait().unwrap();
        let refused = || self.pilot.log().matches("the command that asked for it has ended").count();
        let before = refused();
        signal(extension, Signal::CONT);
        self.terminal.thaw();
        wait_until(COPILOT, "the bridge asks", || self.pilot.log(), || (refused() > before).then_some(()));
    }
}

/// The bridge connects to a tray that has just started a moment after the tray takes orders. One that is frozen does not
/// connect at all: nothing is ended in its place.
#[test]
fn case_191_stop_waits_for_the_bridge_and_never_ends_the_session() {
    let mut bridged = Bridged::new(&["--allow-all-tools"]);
    let id = bridged.id();
    let begin = |bridged: &Bridged, nth| {
        bridged.terminal.enter(&format!("SCRIPT:hang Paint the fence {nth}"));
        bridged.terminal.folder.wait_nth("user.message", nth);
    };
    begin(&bridged, 1);
    for nth in 1..=3 {
        bridged.pilot.restart_tray();
        bridged.run_ok(&["stop", "--yes", &id]);
        bridged.terminal.folder.wait_nth("abort", nth);
        begin(&bridged, nth + 1);
    }
    let stop = |bridged: &Bridged| {
        let ran = bridged.pilot.run(&["stop", "--yes", &id]);
        assert!(ran.code == Some(4) && ran.err.contains("restart the session to connect its bridge"), "{ran:?}");
    };
    freeze(bridged.terminal.extension());
    bridged.pilot.restart_tray();
    stop(&bridged);
    bridged.pilot.end_tray();
    stop(&bridged);
    signal(bridged.terminal.extension(), Signal::CONT);
    assert!(is_live(bridged.terminal.pid()));
    assert_eq!(bridged.terminal.folder.types().iter().filter(|kind| *kind == "abort").count(), 3);
}

/// The tray has already sent the order when its command is killed; the terminal and the bridge, which were stopped, read
/// it later.
#[test]
#[ignore = "tests/long.sh"]
fn case_190_an_order_dies_with_its_command_on_its_way_through_the_bridge() {
    let bridged = Bridged::consented();
    let (id, terminal) = (bridged.id(), &bridged.terminal);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait_nth("permission.requested", 2);
    terminal.wait_screen(DIALOG);
    bridged.pilot.wait_status(&id, "needs-permission", "");
    bridged.give_up(&["approve", "--yes", &id], "take-over");
    bridged.give_up(&["stop", &id], "abort");
    // It has read both, and answers.
    bridged.answer_request(&["approve", "--yes"], 2);
    bridged.home.release_tools();
    let done = terminal.folder.wait("tool.execution_complete");
    assert_eq!(done["data"]["success"], true, "{done}");
    let types = terminal.folder.types();
    assert!(!types.iter().any(|kind| kind == "abort"), "{}", terminal.dump());
    assert_eq!(types.iter().filter(|kind| *kind == "permission.completed").count(), 2, "{}", terminal.dump());
}

/// Gives `approve` twenty times to a frozen terminal and bridge, kills it after 1.5 s, and lets them go on.
fn approve_given_up_twenty_times(has_tray: bool) {
    let mut bridged = Bridged::consented();
    let id = bridged.id();
    bridged.terminal.enter("SCRIPT:tool Paint the fence");
    bridged.terminal.folder.wait_nth("permission.requested", 2);
    bridged.terminal.wait_screen(DIALOG);
    bridged.pilot.wait_status(&id, "needs-permission", "");
    if !has_tray {
        bridged.pilot.end_tray();
    }
    let (terminal, extension) = (&bridged.terminal, bridged.terminal.extension());
    let pause = |millis| {
        let from = Instant::now();
        wait_until(SOON, "time passes", String::new, || (from.elapsed() > Duration::from_millis(millis)).then_some(()));
    };
    for nth in 1..=20 {
        terminal.freeze();
        freeze(extension);
        let arguments = ["approve", "--yes", &id];
        let mut given = match has_tray {
            true => bridged.pilot.command_with_tray(&arguments),
            false => bridged.pilot.command(&arguments),
        };
        let mut given = given.spawn().unwrap();
        pause(1500);
        kill(given.id());
        given.wait().unwrap();
        signal(extension, Signal::CONT);
        terminal.thaw();
        pause(1500);
        let ended = terminal.folder.types().iter().filter(|kind| *kind == "permission.completed").count();
        assert_eq!(ended, 1, "attempt {nth}: {}", terminal.dump());
    }
    // The same order is carried out if its command stays.
    bridged.run_ok(&["approve", "--yes", &id]);
    terminal.folder.wait_nth("permission.completed", 2);
}

#[test]
#[ignore = "takes a minute: tests/long.sh"]
fn case_190_an_approval_that_is_given_up_never_acts_later_with_a_tray() {
    approve_given_up_twenty_times(true);
}

#[test]
#[ignore = "takes a minute: tests/long.sh"]
fn case_190_an_approval_that_is_given_up_never_acts_later_without_a_tray() {
    approve_given_up_twenty_times(false);
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
    bridged.assert_not_done(&["let-answer", &id]);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("tool.execution_start");
    bridged.pilot.wait_status(&id, "working", "");
    bridged.assert_not_done(&["stop", &id]);
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
