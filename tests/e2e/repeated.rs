//! Repeated and concurrent recoveries, and quitting as the last client.

use super::stage::Stage;
use crate::support::desktop::panel::Entry;
use crate::support::person::Manner;
use crate::support::pilotlight::CommandOutput;
use crate::support::{SOON, wait_until};

/// Case 37: only the user's action or a completed turn resets the count of recoveries.
#[test]
fn case_37_a_third_recovery_of_a_turn_is_refused() {
    let stage = Stage::new(Manner::Approves);
    let id = stage.session.id();
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("working", "");
    for _ in 0..2 {
        let ran = stage.pilot.run(&["reconnect", &id]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        stage.pilot.wait_menu(&id, "Pilotlight: attached to its server");
        stage.pilot.click(&id, "Detach");
        stage.pilot.wait_menu(&id, "Pilotlight: its server can be reached");
    }
    let third = stage.pilot.run(&["reconnect", &id]);
    assert_eq!(third.code, Some(4), "{third:?}");
    assert!(third.err.contains("tried 2 times without a completed turn"), "{third:?}");
    // Our own stop does not reset the count, the user's prompt does.
    assert_eq!(stage.pilot.run(&["stop", &id]).code, Some(0));
    stage.wait_status("idle", "stopped");
    let fourth = stage.pilot.run(&["reconnect", &id]);
    assert_eq!(fourth.code, Some(4), "{fourth:?}");
    stage.session.send("SCRIPT:hang And the gate");
    stage.wait_status("working", "");
    let again = stage.pilot.run(&["reconnect", &id]);
    assert_eq!(again.code, Some(0), "{again:?}");
    stage.session.folder.assert_one_chain();
}

/// Case 38.
#[test]
#[ignore = "tests/long.sh"]
fn case_38_two_orders_at_once_are_one_recovery() {
    let stage = Stage::without_person();
    let id = stage.session.id();
    stage.session.send("SCRIPT:denied3 Paint the fence");
    stage.wait_status("permission-lost", "");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    let commands = [(); 2].map(|()| stage.pilot.command_with_tray(&["reconnect", &id]));
    let ran: Vec<CommandOutput> = std::thread::scope(|scope| {
        let running: Vec<_> = commands.into_iter().map(|command| scope.spawn(|| CommandOutput::of(command))).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut codes: Vec<_> = ran.iter().map(|ran| ran.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(4)], "{ran:?}");
    let refused = ran.iter().find(|ran| ran.code == Some(4)).unwrap();
    let reasons = ["reconnect is under way", "already attached to it"];
    assert!(reasons.iter().any(|reason| refused.err.contains(reason)), "{refused:?}");
    assert_eq!(stage.pilot.log().matches("attached to its server: its requests").count(), 1, "{}", stage.pilot.log());
}

/// Case 107e.
#[test]
fn case_107e_quitting_as_the_last_client_of_a_working_session_asks_for_confirmation() {
    let stage = Stage::new(Manner::Waits);
    let id = stage.session.id();
    stage.session.send("SCRIPT:tool Paint the fence");
    let row = stage.wait_status("needs-permission", "");
    stage.pilot.click(&id, "Reconnect");
    stage.pilot.wait_menu(&id, "Pilotlight: attached to its server");
    stage.client.leave();
    // It continues to work, because we stay connected.
    stage.pilot.click(&id, "Approve once");
    stage.session.folder.wait("permission.completed");
    let find = |label: &str| {
        let label = label.to_owned();
        let starts = move |entry: &Entry| entry.shown().starts_with(&label);
        wait_until(
            SOON,
            "the entry is there",
            || format!("{:#?}", stage.pilot.panel().menu()),
            || stage.pilot.panel().layout().1.find(&starts).cloned(),
        )
    };
    let named = find("This may end: ");
    // After that text, its name is cut at thirty columns.
    let name: String = row["label"].as_str().unwrap().chars().take(25).collect();
    assert!(named.shown().contains(&name), "{named:?}");
    let first = find("Quit…");
    assert_eq!(first.entries.len(), 2, "{first:?}");
    // The first click only opens the submenu.
    stage.pilot.panel().click(first.id);
    assert_eq!(stage.pilot.run(&["stop", "no-such-id"]).code, Some(2));
    stage.pilot.wait_menu(&id, "Pilotlight: attached to its server");
    assert!(!stage.session.folder.types().contains(&"session.shutdown".to_owned()));
    assert!(stage.pilot.panel().click(find("Quit anyway").id));
    stage.session.folder.wait("session.shutdown");
}
