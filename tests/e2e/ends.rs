//! The ways in which a session, or its work, ends before its time.

use super::stage::Stage;
use crate::support::person::Manner;
use std::time::{Duration, Instant};

/// A stage in the middle of a tool.
fn in_the_middle() -> Stage {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.told("working", "");
    stage
}

#[test]
fn aborted() {
    let stage = in_the_middle();
    stage.session.abort();
    stage.session.folder.wait("abort");
    stage.told("idle", "");
}

#[test]
fn killed_in_the_middle_crashed_at_once() {
    let mut stage = in_the_middle();
    let killed = Instant::now();
    stage.server.kill();
    let row = stage.told("crashed", "");
    assert!(killed.elapsed() < Duration::from_secs(3), "told after {:?}", killed.elapsed());
    assert_eq!(row["owner"]["state"], "gone");
    assert_eq!(stage.session.folder.locks().len(), 1, "a kill leaves the lock behind");
}

#[test]
fn killed_between_turns_ended() {
    let mut stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.told("idle", "");
    stage.server.kill();
    stage.told("ended", "");
}

#[test]
fn killed_while_it_asks_crashed() {
    let mut stage = Stage::set(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.told("needs-permission", "");
    stage.server.kill();
    stage.told("crashed", "");
}

#[test]
fn terminated_in_the_middle_ended() {
    let mut stage = in_the_middle();
    stage.server.terminate();
    stage.session.folder.wait("session.shutdown");
    stage.told("ended", "bash");
    // The server lets go of its lock a moment before it writes the shutdown.
    assert!(!stage.history().contains(&"crashed".to_owned()), "{:?}", stage.history());
    assert!(stage.session.folder.locks().is_empty(), "an orderly end removes the lock");
}

#[test]
fn destroyed_while_its_server_stays() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.told("idle", "");
    stage.session.destroy();
    stage.session.folder.wait("session.shutdown");
    stage.told("ended", "");
}

#[test]
fn deleted() {
    let stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.told("idle", "");
    let id = stage.session.id();
    stage.client.delete(&id);
    stage.pilot.told_removed(&id);
}
