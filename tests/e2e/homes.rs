//! Two sessions in one server, and two homes.

use super::stage::Stage;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::Pilot;
use crate::support::server::Server;

#[test]
#[ignore = "tests/long.sh"]
fn two_sessions_in_one_server() {
    let mut stage = Stage::new(Manner::Approves);
    let other = stage.server.create(&stage.client, Some(&stage.person));
    stage.session.send("SCRIPT:tool Paint the fence");
    other.send("SCRIPT:question Paint the door");
    stage.session.folder.wait("permission.completed");
    stage.wait_status("working", "");
    stage.pilot.wait_status(&other.id(), "needs-input", "");

    other.send("SCRIPT:plain The second one");
    stage.pilot.wait_status(&other.id(), "idle", "");
    stage.wait_status("working", "");

    stage.server.kill();
    stage.wait_status("crashed", "");
    stage.pilot.wait_status(&other.id(), "ended", "");
}

#[test]
fn two_homes() {
    let (one, two) = (Home::new("fence"), Home::new("door"));
    let model = Model::start();
    let (server_one, server_two) = (Server::start(&one, &model), Server::start(&two, &model));
    let pilot = Pilot::start(&[&one, &two]);
    let person = Person::new(Manner::Waits);
    let (client_one, client_two) = (server_one.connect(), server_two.connect());
    let fence = server_one.create(&client_one, Some(&person));
    let door = server_two.create(&client_two, Some(&person));
    pilot.wait_status(&fence.id(), "idle", "no prompt yet");
    pilot.wait_status(&door.id(), "idle", "no prompt yet");

    fence.send("SCRIPT:tool Paint the fence");
    pilot.wait_status(&fence.id(), "needs-permission", "");
    pilot.wait_status(&door.id(), "idle", "no prompt yet");

    // A Pilotlight that watches one home does not show the other.
    let second = Pilot::start(&[&two]);
    second.wait_status(&door.id(), "idle", "no prompt yet");
    assert_eq!(second.rows().len(), 1);
}
