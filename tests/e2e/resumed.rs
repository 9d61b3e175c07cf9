//! A crashed session is resumed by another server.

use super::stage::Stage;
use crate::support::person::{Manner, Person};
use crate::support::server::Server;
use serde_json::json;

#[test]
#[ignore = "tests/long.sh"]
fn without_its_pending_work() {
    let mut stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.server.kill();
    stage.wait_status("crashed", "");

    let server = Server::start(&stage.home, &stage.model);
    let client = server.connect();
    let resumed = server.resume(&client, &stage.session.id(), &Person::new(Manner::Approves), None);
    // Neither lock nor log is written before the first prompt, so no file event reports it. A new `status` finds the
    // process.
    stage.pilot.row_where(&stage.session.id(), "the new server has it", |row| {
        row["status"] == "idle" && row["because"].as_str().unwrap().starts_with("opened, not prompted yet")
    });
    let answer = stage.model.hold("plain", 0);
    resumed.send("SCRIPT:plain Go on");
    resumed.folder.wait("session.resume");
    stage.model.wait_requested("plain", 0);
    let row = stage.wait_status("working", "");
    assert_eq!(row["owner"]["pid"], server.pid(), "the new server owns it");
    stage.record("45-resumed-with-a-tool-open");
    answer.release();
    resumed.folder.wait("assistant.turn_end");
    stage.wait_status("idle", "");
}

#[test]
fn with_its_pending_work() {
    let mut stage = Stage::new(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.server.kill();
    stage.wait_status("crashed", "");

    let server = Server::start(&stage.home, &stage.model);
    let client = server.connect();
    let resumed = server.resume(&client, &stage.session.id(), &stage.person, Some(true));
    // Only the lock is written. The request is open again, in a process that did not open it.
    let row = stage.wait_status("needs-permission", "");
    assert_eq!(row["owner"]["pid"], server.pid(), "the new server owns it");
    stage.record("46a-resumed-with-pending-work");

    stage.home.release_tools();
    let open = resumed.call("session.permissions.pendingRequests", json!({}));
    let answer = json!({"requestId": open["items"][0]["requestId"], "result": {"kind": "approve-once"}});
    resumed.call("session.permissions.handlePendingPermissionRequest", answer);
    let event = resumed.folder.wait("session.resume");
    assert_eq!(event["data"]["continuePendingWork"], true);
    // The turn continues without another prompt.
    resumed.folder.wait("assistant.turn_end");
    stage.wait_status("idle", "");
    stage.record("46b-pending-work-done");
}

#[test]
#[ignore = "tests/long.sh"]
fn with_pending_work_that_cannot_continue() {
    let mut stage = Stage::new(Manner::Approves);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.server.kill();
    stage.wait_status("crashed", "");

    // A tool that ran is not run again: its end is logged at once, by a server that does not own the session yet.
    let server = Server::start(&stage.home, &stage.model);
    let client = server.connect();
    let resumed = server.resume(&client, &stage.session.id(), &stage.person, Some(true));
    resumed.folder.wait("session.resume");
    assert!(!resumed.folder.locks().contains(&server.pid()), "the lock comes with the first prompt");
    stage.record("46c-resumed-with-pending-work-lost");
    resumed.send("SCRIPT:plain Go on");
    stage.wait_status("idle", "");
}
