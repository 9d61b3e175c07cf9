//! Which popups real sessions cause, and when. The buttons are tested in `notifications`.

use super::stage::Stage;
use crate::support::desktop::popups::{Popup, Popups};
use crate::support::freeze::freeze;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::Manner;
use crate::support::pilotlight::Pilot;
use crate::support::process::signal;
use crate::support::terminal::Terminal;
use rustix::process::Signal;

/// Popups are not delayed after the start. That a popup is not sent is shown by the next one.
const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\n";

fn stage(manner: Manner, settings: &str) -> (Stage, Popups) {
    let stage = Stage::with_config(manner, &format!("{AT_ONCE}{settings}"));
    let popups = stage.pilot.popups();
    stage.wait_status("idle", "");
    (stage, popups)
}

/// Waits for the popup with this number, and asserts that its title ends with `title`.
fn wait_popup(popups: &Popups, count: usize, title: &str) -> Popup {
    let popup = popups.wait_for(count);
    assert!(popup.title.ends_with(title), "not {title:?}: {:#?}", popups.received());
    popup
}

/// One session through several statuses: each causes a popup on entry, which is withdrawn at the next change.
#[test]
fn questions_failures_and_crashes_cause_popups_that_are_withdrawn() {
    // A long delay, so that a permission that takes seconds on a slow machine still counts as given at once.
    let (mut stage, popups) = stage(Manner::Approves, "permission-delay = \"30s\"\n");
    stage.session.send("SCRIPT:question Paint the fence");
    let question = wait_popup(&popups, 1, "project waits for your answer");
    stage.session.send("SCRIPT:err400 And the gate");
    let failed = wait_popup(&popups, 2, "project failed");
    popups.wait_for_closed(&[question.number]);
    // Neither a completed turn nor a permission that is given at once causes a popup.
    stage.session.send("SCRIPT:seq And the door");
    stage.session.folder.wait("assistant.turn_end");
    stage.wait_status("idle", "");
    popups.wait_for_closed(&[question.number, failed.number]);
    stage.session.send("SCRIPT:tool And the roof");
    stage.wait_status("working", "bash");
    stage.server.kill();
    wait_popup(&popups, 3, "project crashed");
}

/// Cases 97, 99.
#[test]
#[ignore = "tests/long.sh"]
fn case_97_and_99_four_at_once_are_one_popup_and_repetitions_are_suppressed() {
    let (stage, popups) = stage(Manner::Approves, "");
    let others = [(); 3].map(|()| stage.server.create(&stage.client, Some(&stage.person)));
    // The tray is frozen, so it notices all questions at once.
    freeze(stage.pilot.tray_pid());
    for session in others.iter().chain([&stage.session]) {
        session.send("SCRIPT:question Paint the fence");
        session.folder.wait("assistant.turn_end");
    }
    signal(stage.pilot.tray_pid(), Signal::CONT);
    let digest = wait_popup(&popups, 1, "4 Copilot sessions need you");
    for session in others.iter().chain([&stage.session]) {
        session.send("SCRIPT:plain The first");
    }
    popups.wait_for_closed(&[digest.number]);
    // Within the cooldown, the same question appears only in the menu, but a failure causes a popup.
    others[0].send("SCRIPT:question Paint the fence");
    stage.pilot.wait_status(&others[0].id(), "needs-input", "");
    others[1].send("SCRIPT:err400 And the gate");
    let last = popups.received().last().unwrap().clone();
    let failed = match last.title.ends_with(" failed") {
        true => last,
        false => wait_popup(&popups, popups.received().len() + 1, " failed"),
    };
    assert_eq!(failed.replaces, 0);
}

#[test]
#[ignore = "tests/long.sh"]
fn a_request_that_still_waits_is_reported_again() {
    let (stage, popups) = stage(Manner::Waits, "escalate = \"3s\"\n");
    stage.session.send("SCRIPT:tool Paint the fence");
    let first = wait_popup(&popups, 1, "project wants to run");
    let again = wait_popup(&popups, 2, "project still wants to run");
    // It has an Approve button, so it is a new popup, and the first one is closed.
    assert_eq!((again.replaces, again.hint("urgency"), again.lasts), (0, Some("byte 0x01"), 0));
    popups.wait_for_closed(&[first.number]);
    stage.person.set_manner(Manner::Refuses);
    popups.wait_for_closed(&[first.number, again.number]);
}

/// Cases 47, 100.
#[test]
#[ignore = "tests/long.sh"]
fn case_47_and_100_the_third_stuck_turn_in_a_row_advises_a_new_session() {
    let limits = "cooldown = \"1ms\"\n[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"2s\"\nthinking-quiet = \"1s\"\nthinking-stuck = \"2s\"\n";
    let (stage, popups) = stage(Manner::Approves, limits);
    let mut numbers = Vec::new();
    for time in 1..=3 {
        stage.session.send("SCRIPT:hang Paint the fence");
        let popup = wait_popup(&popups, time, "project is stuck");
        assert_eq!(popup.body.contains("start a new session"), time == 3, "{popup:#?}");
        stage.session.abort();
        numbers.push(popup.number);
        popups.wait_for_closed(&numbers);
    }
}

/// Case 102: "done" causes a popup if that is set, unless the terminal itself notifies.
#[test]
#[ignore = "tests/long.sh"]
fn case_102_done_causes_a_popup_if_it_is_set_and_the_terminal_does_not_notify() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::configured(&[&home], &format!("{AT_ONCE}done = true\ndone-min = \"1ms\"\ncooldown = \"1ms\"\n"));
    let popups = pilot.popups();
    let settings = home.dir().join("settings.json");
    let terminal = Terminal::start(&home, &model, &[]);
    let id = terminal.folder.id();
    let before = std::fs::read_to_string(&settings).unwrap_or_default();
    std::fs::write(&settings, r#"{"notifications": true}"#).unwrap();
    terminal.enter("SCRIPT:sleep1 Paint the fence");
    terminal.folder.wait("permission.requested");
    terminal.approve();
    terminal.folder.wait_nth("assistant.turn_end", 2);
    pilot.wait_status(&id, "idle", "");
    std::fs::write(&settings, if before.is_empty() { "{}" } else { &before }).unwrap();
    terminal.enter("SCRIPT:sleep2 And the gate");
    terminal.folder.wait_nth("permission.requested", 2);
    terminal.approve();
    let popup = wait_popup(&popups, 1, "project is done");
    assert_eq!(popup.hint("urgency"), Some("byte 0x00"));
    assert_eq!(popups.received().len(), 1, "{:#?}", popups.received());
}
