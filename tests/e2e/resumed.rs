//! A session that died and is taken up again, by another server.

use super::stage::Stage;
use crate::support::person::{Manner, Person};
use crate::support::server::Server;
use serde_json::json;

#[test]
fn without_its_pending_work() {
    let mut stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.server.kill();
    stage.told("crashed", "");

    let server = Server::start(&stage.home, &stage.model);
    let client = server.connect();
    let resumed = server.resume(&client, &stage.session.id(), &Person::who(Manner::Approves), None);
    // Neither lock nor log is written before the first prompt, and no file event tells of it: who looks anew finds who has it.
    stage.pilot.row_where(&stage.session.id(), "the new server has it", |row| {
        row["status"] == "idle" && row["because"].as_str().unwrap().starts_with("opened, not prompted yet")
    });
    let answer = stage.model.hold("plain", 0);
    resumed.send("SCRIPT:plain Go on");
    resumed.folder.wait("session.resume");
    stage.model.wait_asked("plain", 0);
    let row = stage.told("working", "");
    assert_eq!(row["owner"]["pid"], server.pid(), "the new server owns it");
    stage.record("45-resumed-with-a-tool-open");
    answer.release();
    resumed.folder.wait("assistant.turn_end");
    stage.told("idle", "");
}

#[test]
fn with_its_pending_work() {
    let mut stage = Stage::set(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.server.kill();
    stage.told("crashed", "");

    let server = Server::start(&stage.home, &stage.model);
    let client = server.connect();
    let resumed = server.resume(&client, &stage.session.id(), &stage.person, Some(true));
    // Nothing is written yet, but the lock: the request is open again, in a process that never opened it.
    let row = stage.told("needs-permission", "");
    assert_eq!(row["owner"]["pid"], server.pid(), "the new server owns it");
    stage.record("46a-resumed-with-pending-work");

    stage.home.go();
    let open = resumed.call("session.permissions.pendingRequests", json!({}));
    let answer = json!({"requestId": open["items"][0]["requestId"], "result": {"kind": "approve-once"}});
    resumed.call("session.permissions.handlePendingPermissionRequest", answer);
    let event = resumed.folder.wait("session.resume");
    assert_eq!(event["data"]["continuePendingWork"], true);
    // The turn goes on without a prompt of its own.
    resumed.folder.wait("assistant.turn_end");
    stage.told("idle", "");
    stage.record("46b-pending-work-done");
}

#[test]
fn with_pending_work_that_cannot_go_on() {
    let mut stage = Stage::set(Manner::Approves);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.server.kill();
    stage.told("crashed", "");

    // A tool that ran is not run again: its end is written at once, by a server that does not own the session yet.
    let server = Server::start(&stage.home, &stage.model);
    let client = server.connect();
    let resumed = server.resume(&client, &stage.session.id(), &stage.person, Some(true));
    resumed.folder.wait("session.resume");
    assert!(!resumed.folder.locks().contains(&server.pid()), "the lock comes with the first prompt");
    stage.record("46c-resumed-with-pending-work-lost");
    resumed.send("SCRIPT:plain Go on");
    stage.told("idle", "");
}
