//! Whether a silent session receives an answer. Nothing is written to the log while one arrives, nor while the model hangs.

mod network;
mod orders;
mod outlook;
mod scene;
mod situations;
mod stage;

use crate::support::person::{Manner, Person};
use crate::support::server::Server;
use crate::support::stream::Part::{Headers, Silent};
use crate::support::stream::{Part, Piece, UNTIL_TOLD};
use crate::support::terminal::Terminal;
use outlook::{Outlook, QUICK};
use scene::{Place, Scene};
use situations::every_millis;
use stage::Stage;

const TEXT: Part = every_millis(Piece::Text, 100);
const COMMENTS: Part = every_millis(Piece::Comment, 4000);

/// Terminals, and two sessions of one server, of which one streams and one hangs. Copilot itself is stopped in the last.
/// Case 158, too.
#[test]
#[ignore = "tests/long.sh"]
fn case_155_and_158_an_answer_is_told_from_keepalives_and_from_a_dead_connection() {
    let mut stage = Stage::new("quick", &QUICK, "");
    let mut scenes = Vec::new();
    let plays: [(&str, &[Part], Outlook); 3] = [
        ("streams", &[TEXT], Outlook::Receives),
        ("comments", &[Headers, COMMENTS], Outlook::Kept),
        ("hangs", &[Silent(UNTIL_TOLD)], Outlook::Silent),
    ];
    for (play, parts, outlook) in plays {
        let model = scene::model(&[(play, vec![parts.to_vec()])], false);
        let terminal = Terminal::start(&stage.home, &model, &[]);
        scenes.push((Scene::new(Place::Terminal(terminal), model, play), outlook));
    }
    let (model, person) = (scene::model(&[], false), Person::new(Manner::Approves));
    let [shared, stopped] = [(); 2].map(|()| {
        let server = Server::start(&stage.home, &model);
        let client = server.connect();
        (server, client)
    });
    let hangs = (plays[2].0, plays[2].1, Outlook::Unseen);
    let on_servers = [(&shared, plays[0]), (&shared, hangs), (&stopped, ("stopped", &[TEXT], Outlook::Unread))];
    for ((server, client), (play, parts, outlook)) in on_servers {
        let model = scene::model(&[(play, vec![parts.to_vec()])], false);
        let session = server.create_for(client, &person, &model, true);
        scenes.push((Scene::new(Place::Session(session, server.pid()), model, play), outlook));
    }
    stage.play(scenes, |scenes| scenes[5].0.stop());
    stage.end();
}
