//! More than one session: in one server, and in two homes.

use super::stage::Stage;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::Pilot;
use crate::support::server::Server;

#[test]
fn two_sessions_in_one_server() {
    let mut stage = Stage::set(Manner::Approves);
    let other = stage.server.create(&stage.client, Some(&stage.person));
    stage.session.send("SCRIPT:tool Paint the fence");
    other.send("SCRIPT:question Paint the door");
    stage.session.folder.wait("permission.completed");
    stage.told("working", "");
    stage.pilot.told(&other.id(), "needs-input", "");

    other.send("SCRIPT:plain The second one");
    stage.pilot.told(&other.id(), "idle", "");
    stage.told("working", "");

    stage.server.kill();
    stage.told("crashed", "");
    stage.pilot.told(&other.id(), "ended", "");
}

#[test]
fn two_homes() {
    let (one, two) = (Home::new("fence"), Home::new("door"));
    let model = Model::start();
    let (server_one, server_two) = (Server::start(&one, &model), Server::start(&two, &model));
    let pilot = Pilot::start(&[&one, &two]);
    let person = Person::who(Manner::Waits);
    let (client_one, client_two) = (server_one.connect(), server_two.connect());
    let fence = server_one.create(&client_one, Some(&person));
    let door = server_two.create(&client_two, Some(&person));
    pilot.told(&fence.id(), "idle", "no prompt yet");
    pilot.told(&door.id(), "idle", "no prompt yet");

    fence.send("SCRIPT:tool Paint the fence");
    pilot.told(&fence.id(), "needs-permission", "");
    pilot.told(&door.id(), "idle", "no prompt yet");

    // A Pilotlight of one home knows nothing of the other.
    let of_two = Pilot::start(&[&two]);
    of_two.told(&door.id(), "idle", "no prompt yet");
    assert_eq!(of_two.rows().len(), 1);
}
