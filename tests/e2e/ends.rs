//! The ways in which a session, or its work, ends before its time.

use super::stage::Stage;
use crate::support::person::Manner;
use crate::support::ran::ran;
use crate::support::{SOON, wait_until};
use std::time::Duration;

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
    stage.server.kill();
    let killed = ran();
    let row = stage.told("crashed", "");
    let took = ran() - killed;
    assert!(took < Duration::from_secs(5), "told after {took:?}");
    assert_eq!(row["owner"]["state"], "gone");
    assert_eq!(stage.session.folder.locks().len(), 1, "a kill leaves the lock behind");
}

/// Another Copilot may clean a dead process's lock away: what its own log tells brings the session back all the same.
#[test]
fn killed_and_cleaned_up_after_it_has_crashed_and_can_be_resumed() {
    let mut stage = in_the_middle();
    stage.server.kill();
    stage.told("crashed", "");
    let folder = &stage.session.folder;
    for pid in folder.locks() {
        for kind in ["lock", "hold"] {
            std::fs::remove_file(folder.path.join(format!("inuse.{pid}.{kind}"))).unwrap();
        }
    }
    let row = stage.told("crashed", "its process is gone; unfinished: bash");
    assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
    // One who comes only now knows it, too, from the log that the server kept.
    let other = crate::support::pilotlight::Pilot::start(&[&stage.home]);
    let row = other.told(&stage.session.id(), "crashed", "its process is gone; unfinished: bash");
    assert_eq!(row["owner"]["state"], "gone", "{row}");
    assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
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

/// Its server lives on, and tells nobody.
#[test]
fn deleted_while_we_are_attached_and_nothing_of_the_connection_is_left() {
    let stage = Stage::set(Manner::Approves);
    let sockets = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", stage.pilot.tray())).unwrap().flatten();
        let links = open.filter_map(|file| std::fs::read_link(file.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    };
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.told("working", "");
    let (id, before) = (stage.session.id(), sockets());
    let ran = stage.pilot.run(&["reconnect", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    stage.pilot.menu_says(&id, "Pilotlight: attached to its server");
    assert!(sockets() > before);
    stage.client.delete(&id);
    stage.pilot.told_removed(&id);
    let closed = || (sockets() <= before).then_some(());
    wait_until(SOON, "its connection is closed", || format!("{} sockets, {before} before", sockets()), closed);
}
