//! A model that the network no longer reaches, while its connection is open.

use super::outlook::{FULL, Outlook};
use super::scene::{Place, Scene};
use super::situations::every_millis;
use super::stage::Stage;
use crate::support::model::Model;
use crate::support::network::Network;
use crate::support::person::{Manner, Person};
use crate::support::server::Server;
use crate::support::stream::Part::Silent;
use crate::support::stream::{Part, Piece, UNTIL_TOLD};
use crate::support::terminal::Terminal;

/// Plays each of these on a terminal and on a server, and then `breaks` the network.
fn in_a_broken_network(name: &'static str, on_server: Outlook, breaks: fn(&Network)) {
    let Some(network) = Network::new() else {
        println!("{name}: skipped, it needs root and the command `ip`");
        return;
    };
    network.enter();
    let mut stage = Stage::new(name, &FULL, "");
    let plays = [("streams", every_millis(Piece::Text, 200)), ("thinks", Silent(UNTIL_TOLD))];
    let far_model = |(play, part): (&str, Part)| {
        let model = network.remote(|address| Model::at(address, false));
        model.play(play, vec![vec![part]]);
        model
    };
    let server = Server::start(&stage.home, &far_model(plays[0]));
    let client = server.connect();
    let mut scenes = Vec::new();
    for play in plays {
        let model = far_model(play);
        let terminal = Terminal::start(&stage.home, &model, &[]);
        scenes.push((Scene::new(Place::Terminal(terminal), model, play.0), Outlook::Unanswered));
        let model = far_model(play);
        let session = server.create_for(&client, &Person::new(Manner::Approves), &model, true);
        scenes.push((Scene::new(Place::Session(session, server.pid()), model, play.0), on_server));
    }
    stage.play(scenes, |_| breaks(&network));
    stage.end();
}

#[test]
#[ignore = "takes minutes, and root: tests/long.sh"]
fn case_157_a_route_that_drops_everything() {
    in_a_broken_network("dropped route", Outlook::Unanswered, |network| network.forward(false));
}

#[test]
#[ignore = "takes minutes, and root: tests/long.sh"]
fn case_157_an_interface_that_goes_down() {
    in_a_broken_network("interface down", Outlook::CutOff, Network::unplug);
}
