//! Permissions: requested, granted, denied, and lost because nobody could be asked.

use super::stage::Stage;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::Manner;
use crate::support::pilotlight::Pilot;
use crate::support::record;
use crate::support::terminal::Unattended;
use crate::support::{SOON, wait_until};
use serde_json::Value;

/// A prompt with as many denied tools as make the status `permission-lost`.
const DENIED: &str = "SCRIPT:denied3 Paint the fence";

#[test]
#[ignore = "tests/long.sh"]
fn lost_when_the_person_is_away() {
    let stage = Stage::new(Manner::Away);
    stage.session.send(DENIED);
    stage.session.folder.wait_nth("tool.execution_complete", 3);
    stage.wait_status("permission-lost", "");
    // A prompt means that a user is back.
    stage.person.set_manner(Manner::Approves);
    stage.session.send("SCRIPT:plain Never mind");
    stage.wait_status("idle", "");
}

#[test]
#[ignore = "tests/long.sh"]
fn lost_when_the_client_cannot_ask() {
    let stage = Stage::without_person();
    stage.session.send(DENIED);
    stage.session.folder.wait_nth("tool.execution_complete", 3);
    assert!(!stage.session.folder.types().iter().any(|kind| kind.starts_with("permission.")), "no request is made");
    stage.wait_status("permission-lost", "");
}

#[test]
fn lost_when_run_unattended() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let last = model.hold("denied", 3);
    let run = Unattended::start(&home, &model, DENIED);
    model.wait_requested("denied", 3);
    let folder = home.sessions().remove(0);
    pilot.wait_status(&folder.id(), "permission-lost", "");
    record::keep(&home, "44a-unattended-denied-live");

    last.release();
    run.wait();
    pilot.wait_status(&folder.id(), "failed", "ended with permissions lost: 3 of its last 3 tools denied");
    record::keep(&home, "44b-unattended-denied-ended");
}

/// Case 128: reported once, as lost permissions, whether that is noticed before its end or not, and gone once marked as
/// seen.
#[test]
#[ignore = "tests/long.sh"]
fn case_128_a_run_that_ends_denied_is_reported_once() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::configured(&[&home], "[notifications]\nafter-start = \"1ms\"\n");
    let popups = pilot.popups();
    for run in 1..=2 {
        Unattended::start(&home, &model, DENIED).wait();
        let folders = home.sessions();
        assert_eq!(folders.len(), run);
        let popup = popups.wait_for(run);
        let title = &popup.title;
        assert!(title.starts_with("project") && title.ends_with(" lost its permissions"), "{popup:#?}");
    }
    for folder in home.sessions() {
        let row =
            pilot.wait_status(&folder.id(), "failed", "ended with permissions lost: 3 of its last 3 tools denied");
        assert!(row["actions"].as_array().unwrap().contains(&"resume".into()), "{row}");
        assert_eq!(row["turn"], Value::Null);
    }
    assert_eq!(popups.received().len(), 2, "{:#?}", popups.received());
    for folder in home.sessions() {
        pilot.click(&folder.id(), "Mark as seen");
        pilot.wait_status(&folder.id(), "ended", "ended with permissions lost");
    }
    assert_eq!(popups.received().len(), 2, "{:#?}", popups.received());
}

#[test]
fn case_128_a_servers_session_that_ends_denied_is_failed() {
    let stage = Stage::without_person();
    stage.session.send(DENIED);
    stage.session.folder.wait_nth("tool.execution_complete", 3);
    stage.wait_status("permission-lost", "");
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.session.destroy();
    stage.session.folder.wait("session.shutdown");
    stage.wait_status("failed", "ended with permissions lost: 3 of its last 3 tools denied");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_183_a_session_that_was_denied_and_whose_server_is_killed_is_failed() {
    let mut stage = Stage::without_person();
    stage.session.send(DENIED);
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.wait_status("permission-lost", "");
    stage.server.kill();
    let row = stage.wait_status("failed", "ended with permissions lost: 3 of its last 3 tools denied");
    for action in ["continue", "resume"] {
        assert!(row["actions"].as_array().unwrap().contains(&action.into()), "{row}");
    }
    stage.pilot.click(&stage.session.id(), "Mark as seen");
    let row = stage.wait_status("ended", "ended with permissions lost");
    assert!(row["actions"].as_array().unwrap().contains(&"continue".into()), "{row}");
}

#[test]
fn not_lost_when_the_user_denies() {
    let stage = Stage::new(Manner::Refuses);
    stage.session.send(DENIED);
    stage.session.folder.wait_nth("tool.execution_complete", 3);
    stage.session.folder.wait_nth("assistant.turn_end", 4);
    stage.wait_status("idle", "");
    assert!(!stage.history().contains(&"permission-lost".to_owned()), "{:?}", stage.history());
}

#[test]
#[ignore = "tests/long.sh"]
fn two_requests_are_answered_one_by_one() {
    let stage = Stage::new(Manner::Waits);
    stage.session.send("SCRIPT:two Paint the fence");
    stage.session.folder.wait_nth("permission.requested", 2);
    stage.wait_status("needs-permission", "");

    let answer = |index: usize| {
        let open = stage.session.call("session.permissions.pendingRequests", serde_json::json!({}));
        let request = &open["items"][index]["requestId"];
        let given = serde_json::json!({"requestId": request, "result": {"kind": "approve-once"}});
        stage.session.call("session.permissions.handlePendingPermissionRequest", given);
    };
    answer(0);
    stage.session.folder.wait_nth("permission.completed", 1);
    stage.wait_status("needs-permission", "");
    answer(0);
    stage.session.folder.wait_nth("assistant.turn_end", 2);
    stage.wait_status("idle", "");
}

#[test]
fn the_request_of_a_disconnected_client_is_closed() {
    let stage = Stage::new(Manner::Waits);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.requested");
    stage.wait_status("needs-permission", "");
    // The only client: the server shuts the session down.
    let Stage { pilot, session, client, .. } = &stage;
    client.leave();
    let is_shutdown = |event: &Value| event["type"] == "session.shutdown";
    wait_until(
        SOON,
        "the session is shut down",
        || session.folder.dump(),
        || session.folder.events().iter().any(is_shutdown).then_some(()),
    );
    pilot.wait_status(&session.id(), "ended", "");
}
