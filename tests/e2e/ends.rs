//! The ways in which a session or its turn ends early.

use super::stage::Stage;
use crate::support::person::Manner;
use crate::support::running_time::running_time;
use crate::support::{SOON, wait_until};
use std::time::Duration;

/// A stage in the middle of a tool.
fn in_the_middle() -> Stage {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.wait_status("working", "");
    stage
}

#[test]
#[ignore = "tests/long.sh"]
fn aborted() {
    let stage = in_the_middle();
    stage.session.abort();
    stage.session.folder.wait("abort");
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn killed_mid_turn_is_crashed_at_once() {
    let mut stage = in_the_middle();
    stage.server.kill();
    let start = running_time();
    let row = stage.wait_status("crashed", "");
    let took = running_time() - start;
    assert!(took < Duration::from_secs(5), "reported after {took:?}");
    assert_eq!(row["owner"]["state"], "gone");
    assert_eq!(stage.session.folder.locks().len(), 1, "a kill leaves the lock behind");
}

/// Another Copilot may remove a dead process's lock. The process's own log still identifies the session's owner.
#[test]
fn killed_with_its_lock_removed_is_crashed_and_can_be_resumed() {
    let mut stage = in_the_middle();
    stage.server.kill();
    stage.wait_status("crashed", "");
    let folder = &stage.session.folder;
    for pid in folder.locks() {
        for kind in ["lock", "hold"] {
            std::fs::remove_file(folder.path.join(format!("inuse.{pid}.{kind}"))).unwrap();
        }
    }
    let row = stage.wait_status("crashed", "its process is gone; unfinished: bash");
    assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
    // A Pilotlight that starts later learns it from the log of the dead server.
    let other = crate::support::pilotlight::Pilot::start(&[&stage.home]);
    let row = other.wait_status(&stage.session.id(), "crashed", "its process is gone; unfinished: bash");
    assert_eq!(row["owner"]["state"], "gone", "{row}");
    assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
}

#[test]
#[ignore = "tests/long.sh"]
fn killed_between_turns_is_ended() {
    let mut stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.wait_status("idle", "");
    stage.server.kill();
    stage.wait_status("ended", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn killed_during_a_request_is_crashed() {
    let mut stage = Stage::new(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.wait_status("needs-permission", "");
    stage.server.kill();
    stage.wait_status("crashed", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn terminated_mid_turn_is_ended() {
    let mut stage = in_the_middle();
    stage.server.terminate();
    stage.session.folder.wait("session.shutdown");
    stage.wait_status("ended", "bash");
    // The server releases its lock a moment before it logs the shutdown.
    assert!(!stage.history().contains(&"crashed".to_owned()), "{:?}", stage.history());
    assert!(stage.session.folder.locks().is_empty(), "an orderly end removes the lock");
}

#[test]
#[ignore = "tests/long.sh"]
fn destroyed_while_its_server_stays_is_ended() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.wait_status("idle", "");
    stage.session.destroy();
    stage.session.folder.wait("session.shutdown");
    stage.wait_status("ended", "");
}

#[test]
fn deleted() {
    let stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:plain Paint the fence");
    stage.wait_status("idle", "");
    let id = stage.session.id();
    stage.client.delete(&id);
    stage.pilot.wait_removed(&id);
}

/// Its server stays alive, and does not report the deletion.
#[test]
#[ignore = "tests/long.sh"]
fn deleted_while_attached_closes_our_connection() {
    let stage = Stage::new(Manner::Approves);
    let sockets = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", stage.pilot.tray_pid())).unwrap().flatten();
        let links = open.filter_map(|file| std::fs::read_link(file.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    };
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("working", "");
    let (id, before) = (stage.session.id(), sockets());
    let ran = stage.pilot.run(&["reconnect", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    stage.pilot.wait_menu(&id, "Pilotlight: attached to its server");
    assert!(sockets() > before);
    stage.client.delete(&id);
    stage.pilot.wait_removed(&id);
    let closed = || (sockets() <= before).then_some(());
    wait_until(SOON, "its connection is closed", || format!("{} sockets, {before} before", sockets()), closed);
}
