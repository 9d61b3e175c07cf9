//! Orders that are given because a session is stuck, and that find its answer arriving: nothing is aborted.

use super::outlook::QUICK;
use super::scene::{Place, Scene, model};
use super::situations::every_millis;
use super::stage::Stage;
use crate::support::desktop::popups::{Popup, Popups};
use crate::support::person::{Manner, Person};
use crate::support::server::Server;
use crate::support::stream::Part::Silent;
use crate::support::stream::{Piece, Play, UNTIL_TOLD};
use crate::support::terminal::Terminal;
use crate::support::{COPILOT, wait_until};

/// Popups are not delayed after the start, nor suppressed as repetitions.
const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\ncooldown = \"1ms\"\n";
const REFUSED: &str = "it is receiving an answer: not stopped";

/// An answer that comes when the session is stuck already.
fn late() -> Play {
    vec![vec![Silent(UNTIL_TOLD), every_millis(Piece::Text, 100)]]
}

/// Makes the session stuck, and lets its answer begin right after. Returns the popup of before.
fn begin_late(stage: &Stage, popups: &Popups, scene: &mut Scene) -> Popup {
    scene.begin();
    stage.pilot.wait_status_in_tray(&scene.id(), "stuck", "has been silent");
    let stuck = popups.wait_for(1);
    assert_eq!(stuck.title, "project is stuck", "{stuck:#?}");
    scene.model.go_on(scene.play);
    let arrives = || (!scene.model.text(scene.play).is_empty()).then_some(());
    wait_until(COPILOT, "its answer arrives", || scene.folder().dump(), arrives);
    stuck
}

/// Waits until a popup says that the answer arrives.
fn wait_refused(popups: &Popups) {
    let says = || popups.received().iter().any(|popup| popup.body.contains(REFUSED)).then_some(());
    wait_until(COPILOT, "a popup says why nothing was stopped", || format!("{:#?}", popups.received()), says);
}

#[test]
#[ignore = "tests/long.sh"]
fn case_156_a_servers_answer_is_not_aborted() {
    let stage = Stage::new("late on a server", &QUICK, AT_ONCE);
    let (model, popups, person) =
        (model(&[("late", late())], false), stage.pilot.popups(), Person::new(Manner::Approves));
    let server = Server::start(&stage.home, &model);
    let client = server.connect();
    let session = server.create_for(&client, &person, &model, true);
    let mut scene = Scene::new(Place::Session(session, server.pid()), model, "late");
    let (id, stuck) = (scene.id(), begin_late(&stage, &popups, &mut scene));
    popups.click_after_reading(stuck.number, "stop");
    wait_refused(&popups);
    let ran = stage.pilot.run(&["reconnect", &id]);
    assert!(!ran.err.contains("abort"), "{ran:?}");
    assert_eq!(scene.finish(), None);
    stage.pilot.wait_status_in_tray(&id, "idle", "");

    // The user's own Stop stops.
    let again = scene.model.hold("plain", 0);
    scene.prompt("SCRIPT:plain Go on");
    scene.model.wait_requested("plain", 0);
    let ran = stage.pilot.run(&["stop", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    scene.folder().wait("abort");
    again.release();
}

#[test]
fn case_156_a_terminals_answer_is_not_aborted_over_the_bridge() {
    let stage = Stage::with_bridge("late in a terminal", &QUICK, AT_ONCE);
    let (model, popups) = (model(&[("late", late())], false), stage.pilot.popups());
    let terminal = Terminal::start(&stage.home, &model, &[]);
    stage.pilot.wait_bridges(1, "");
    let mut scene = Scene::new(Place::Terminal(terminal), model, "late");
    let (id, stuck) = (scene.id(), begin_late(&stage, &popups, &mut scene));
    popups.click_after_reading(stuck.number, "stop");
    wait_refused(&popups);
    stage.pilot.wait_status_in_tray(&id, "working", "receiving an answer");
    assert_eq!(scene.finish(), None);
}
