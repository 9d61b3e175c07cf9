//! What is told of real sessions beside the menu, when, and what is not. The buttons are in `notifications`.

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

/// Nothing is held back after the start, and a test shows what is not told by what is told next.
const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\n";

fn stage(manner: Manner, settings: &str) -> (Stage, Popups) {
    let stage = Stage::set_configured(manner, &format!("{AT_ONCE}{settings}"));
    let popups = stage.pilot.popups();
    stage.told("idle", "");
    (stage, popups)
}

/// Waits for the popup of this number; its title ends so.
fn told(popups: &Popups, count: usize, title: &str) -> Popup {
    let popup = popups.wait_for(count);
    assert!(popup.title.ends_with(title), "not {title:?}: {:#?}", popups.taken());
    popup
}

/// One session through what may befall it: each is told on entry, and withdrawn when the next thing happens.
#[test]
fn a_question_a_failure_and_a_crash_are_told_and_withdrawn() {
    // A permission that takes seconds to be given on a slow machine is given at once all the same.
    let (mut stage, popups) = stage(Manner::Approves, "permission-delay = \"30s\"\n");
    stage.session.send("SCRIPT:question Paint the fence");
    let question = told(&popups, 1, "project waits for your answer");
    stage.session.send("SCRIPT:err400 And the gate");
    let failed = told(&popups, 2, "project failed");
    popups.wait_for_closed(&[question.number]);
    // Neither a turn that is done nor a permission that is given at once is told.
    stage.session.send("SCRIPT:seq And the door");
    stage.session.folder.wait("assistant.turn_end");
    stage.told("idle", "");
    popups.wait_for_closed(&[question.number, failed.number]);
    stage.session.send("SCRIPT:tool And the roof");
    stage.told("working", "bash");
    stage.server.kill();
    told(&popups, 3, "project crashed");
}

/// Cases 97, 99.
#[test]
fn four_at_once_are_one_popup_and_the_same_is_not_told_again() {
    let (stage, popups) = stage(Manner::Approves, "");
    let others = [(); 3].map(|()| stage.server.create(&stage.client, Some(&stage.person)));
    // It finds that all of them ask, however slowly they come to it.
    freeze(stage.pilot.tray());
    for session in others.iter().chain([&stage.session]) {
        session.send("SCRIPT:question Paint the fence");
        session.folder.wait("assistant.turn_end");
    }
    signal(stage.pilot.tray(), Signal::CONT);
    let digest = told(&popups, 1, "4 Copilot sessions need you");
    for session in others.iter().chain([&stage.session]) {
        session.send("SCRIPT:plain The first");
    }
    popups.wait_for_closed(&[digest.number]);
    // Within the cooldown, the same question is in the menu alone; a failure is told.
    others[0].send("SCRIPT:question Paint the fence");
    stage.pilot.told(&others[0].id(), "needs-input", "");
    others[1].send("SCRIPT:err400 And the gate");
    let last = popups.taken().last().unwrap().clone();
    let failed = match last.title.ends_with(" failed") {
        true => last,
        false => told(&popups, popups.taken().len() + 1, " failed"),
    };
    assert_eq!(failed.replaces, 0);
}

#[test]
fn what_still_waits_is_told_once_more() {
    let (stage, popups) = stage(Manner::Waits, "escalate = \"3s\"\n");
    stage.session.send("SCRIPT:tool Paint the fence");
    let first = told(&popups, 1, "project wants to run");
    let again = told(&popups, 2, "project still wants to run");
    // It carries Approve: the first one is closed, and this one is new.
    assert_eq!((again.replaces, again.hint("urgency"), again.lasts), (0, Some("byte 0x01"), 0));
    popups.wait_for_closed(&[first.number]);
    stage.person.now(Manner::Refuses);
    popups.wait_for_closed(&[first.number, again.number]);
}

/// Cases 47, 100.
#[test]
fn the_third_time_stuck_in_a_row_advises_a_new_session() {
    let limits = "cooldown = \"1ms\"\n[limits]\nfresh-quiet = \"1s\"\nfresh-stuck = \"2s\"\n";
    let (stage, popups) = stage(Manner::Approves, limits);
    let mut numbers = Vec::new();
    for time in 1..=3 {
        stage.session.send("SCRIPT:hang Paint the fence");
        let popup = told(&popups, time, "project is stuck");
        assert_eq!(popup.body.contains("start a new session"), time == 3, "{popup:#?}");
        stage.session.abort();
        numbers.push(popup.number);
        popups.wait_for_closed(&numbers);
    }
}

/// Case 102: "done" is told where it is wanted, and left to a terminal that tells it by itself.
#[test]
fn done_is_told_where_it_is_wanted_and_the_terminal_does_not() {
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
    pilot.told(&id, "idle", "");
    std::fs::write(&settings, if before.is_empty() { "{}" } else { &before }).unwrap();
    terminal.enter("SCRIPT:sleep2 And the gate");
    terminal.folder.wait_nth("permission.requested", 2);
    terminal.approve();
    let popup = told(&popups, 1, "project is done");
    assert_eq!(popup.hint("urgency"), Some("byte 0x00"));
    assert_eq!(popups.taken().len(), 1, "{:#?}", popups.taken());
}
