//! Every situation in which a turn is open and its log says nothing, in a terminal, on a server and with the bridge, over
//! twice its limit. What was shown is written to `target/situations/`, and tests/long.sh prints it.

use super::outlook::{FULL, Outlook};
use super::scene::{Place, Scene, model};
use super::stage::Stage;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::server::Server;
use crate::support::stream::Part::{Broken, Headers, Pieces, Silent, Status, SubAgent};
use crate::support::stream::{Part, Piece, UNTIL_TOLD};
use crate::support::terminal::Terminal;
use std::cell::OnceCell;
use std::time::Duration;

/// How many terminals run at a time. Each draws its screen ten times a second.
const TERMINALS: usize = 6;

/// A situation: a name for its play, the answer of the model, and what happens to it.
#[derive(Clone, Copy)]
struct Situation {
    name: &'static str,
    parts: &'static [Part],
    outlook: Outlook,
    twist: Twist,
}

/// What the test does to a situation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twist {
    None,
    /// The model's breaks reset the connection.
    Resets,
    /// The model no longer listens.
    Gone,
    /// Copilot is stopped.
    Stopped,
    /// The sub-agent that it starts plays `parts`.
    InSubAgent,
    /// None: it is a script, and the log says what happens.
    Script,
}

pub(super) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) const fn every_millis(piece: Piece, interval: u64) -> Part {
    Pieces(piece, Duration::from_millis(interval), UNTIL_TOLD)
}

const fn some_text(lasting: u64) -> Part {
    Pieces(Piece::Text, Duration::from_millis(200), seconds(lasting))
}

const fn situation(name: &'static str, parts: &'static [Part], outlook: Outlook) -> Situation {
    Situation { name, parts, outlook, twist: Twist::None }
}

const fn with(twist: Twist, situation: Situation) -> Situation {
    Situation { twist, ..situation }
}

/// What a model can do while the log says nothing.
const SITUATIONS: [Situation; 27] = [
    situation("one-token-a-second", &[every_millis(Piece::Text, 1000)], Outlook::Receives),
    situation("ten-tokens-a-second", &[every_millis(Piece::Text, 100)], Outlook::Receives),
    situation("a-hundred-tokens-a-second", &[every_millis(Piece::Text, 10)], Outlook::Receives),
    situation("a-token-each-five-seconds", &[every_millis(Piece::Text, 5000)], Outlook::Trickles),
    situation("reasoning", &[every_millis(Piece::Reasoning, 1000)], Outlook::Receives),
    situation("arguments", &[every_millis(Piece::Argument, 1000)], Outlook::Receives),
    situation("empty-deltas", &[every_millis(Piece::Empty, 1000)], Outlook::Receives),
    situation("comments", &[Headers, every_millis(Piece::Comment, 5000)], Outlook::Kept),
    situation("pings", &[some_text(2), every_millis(Piece::Ping, 5000)], Outlook::Kept),
    situation("no-headers", &[Silent(UNTIL_TOLD)], Outlook::Silent),
    situation("headers-only", &[Headers, Silent(UNTIL_TOLD)], Outlook::Silent),
    situation("a-stall", &[some_text(4), Silent(UNTIL_TOLD)], Outlook::Silent),
    situation("a-late-answer", &[Silent(seconds(50)), every_millis(Piece::Text, 100)], Outlook::Late),
    situation("breaks", &[some_text(20), Broken], Outlook::Breaks),
    with(Twist::Resets, situation("resets", &[some_text(20), Broken], Outlook::Breaks)),
    situation("refused-to-wait", &[Status(429, Some(40))], Outlook::Waits),
    situation("refused", &[Status(429, None)], Outlook::TriesAgain),
    situation("errors", &[Status(500, None)], Outlook::TriesAgain),
    with(Twist::Gone, situation("gone", &[some_text(4), Broken], Outlook::TriesAgain)),
    with(Twist::Stopped, situation("copilot-stopped", &[every_millis(Piece::Text, 100)], Outlook::Unread)),
    with(Twist::InSubAgent, situation("a-sub-agent-streams", &[every_millis(Piece::Text, 200)], Outlook::Receives)),
    with(Twist::InSubAgent, situation("a-sub-agent-hangs", &[some_text(4), Silent(UNTIL_TOLD)], Outlook::Silent)),
    with(
        Twist::InSubAgent,
        situation("a-sub-agent-is-kept", &[Headers, every_millis(Piece::Comment, 5000)], Outlook::Kept),
    ),
    with(Twist::Script, situation("tool", &[], Outlook::Known("working"))),
    with(Twist::Script, situation("form", &[], Outlook::Known("needs-input"))),
    with(Twist::Script, situation("plain", &[], Outlook::Known("idle"))),
    with(Twist::Script, situation("outside", &[], Outlook::Known("needs-permission"))),
];

impl Situation {
    /// A model that plays it.
    fn model(&self) -> Model {
        let parts = self.parts.to_vec();
        let plays = match self.twist {
            Twist::Script => vec![],
            Twist::InSubAgent => vec![("inner-play", vec![parts]), (self.name, vec![vec![SubAgent("inner-play")]])],
            _ => vec![(self.name, vec![parts])],
        };
        model(&plays, self.twist == Twist::Resets)
    }
}

/// Plays all situations in terminals, some at a time.
fn in_terminals(mut stage: Stage, has_bridge: bool) {
    let mut started = 0;
    for group in SITUATIONS.chunks(TERMINALS) {
        let scenes = group.iter().map(|situation| {
            let model = situation.model();
            // One has to ask for a permission.
            let args: &[&str] = if situation.name == "outside" { &[] } else { &["--allow-all-tools"] };
            let terminal = Terminal::start(&stage.home, &model, args);
            // The bridge is exact about text, and there is none.
            let is_empty = has_bridge && situation.name == "empty-deltas";
            let outlook = if is_empty { Outlook::Kept } else { situation.outlook };
            (Scene::new(Place::Terminal(terminal), model, situation.name), outlook)
        });
        let scenes: Vec<_> = scenes.collect();
        started += scenes.len();
        if has_bridge {
            stage.pilot.wait_bridges(started, "");
        }
        stage.play(scenes, |scenes| disturb(group, scenes));
    }
    stage.end();
}

/// Plays all situations on one server, but for those that happen to a whole server.
fn on_servers(mut stage: Stage, streams: bool, outlook: impl Fn(&Situation) -> Outlook) {
    let (own, shared): (Vec<Situation>, Vec<Situation>) =
        // A client is asked in another way, and its sub-agents play only with streams.
        SITUATIONS
            .iter()
            .filter(|situation| situation.name != "form" && (streams || situation.twist != Twist::InSubAgent))
            .partition(|one| one.twist == Twist::Stopped);
    for group in [own, shared] {
        let servers = OnceCell::new();
        let scenes = group.iter().map(|situation| {
            let model = situation.model();
            let (server, client) = servers.get_or_init(|| {
                let server = Server::start(&stage.home, &model);
                let client = server.connect();
                (server, client)
            });
            let asks = matches!(situation.name, "form" | "outside");
            let person = Person::new(if asks { Manner::Waits } else { Manner::Approves });
            let session = server.create_for(client, &person, &model, streams);
            (Scene::new(Place::Session(session, server.pid()), model, situation.name), outlook(situation))
        });
        let scenes = scenes.collect();
        stage.play(scenes, |scenes| disturb(&group, scenes));
    }
    stage.end();
}

/// Does to each scene what its situation says.
fn disturb(situations: &[Situation], scenes: &[(Scene, Outlook)]) {
    for (situation, (scene, _)) in situations.iter().zip(scenes) {
        match situation.twist {
            Twist::Gone => scene.model.stop(),
            Twist::Stopped => scene.stop(),
            _ => {}
        }
    }
}

#[test]
#[ignore = "takes minutes: tests/long.sh"]
fn every_situation_in_a_terminal() {
    in_terminals(Stage::new("terminal", &FULL, ""), false);
}

#[test]
#[ignore = "takes minutes: tests/long.sh"]
fn every_situation_in_a_terminal_with_the_bridge() {
    in_terminals(Stage::with_bridge("bridge", &FULL, ""), true);
}

/// Prompts at the same moment: what Copilot itself says tells the sessions apart, and it says nothing of signs of life.
#[test]
#[ignore = "takes minutes: tests/long.sh"]
fn every_situation_on_a_server() {
    on_servers(Stage::new("server", &FULL, ""), true, |situation| match situation.outlook {
        _ if situation.name == "empty-deltas" => Outlook::Unseen,
        Outlook::Silent | Outlook::Kept => Outlook::Unseen,
        Outlook::Waits => Outlook::TriesAgain,
        outlook => outlook,
    });
}

/// A client that wants no stream: nothing arrives before the answer is whole.
#[test]
#[ignore = "takes minutes: tests/long.sh"]
fn every_situation_on_a_server_without_streams() {
    on_servers(Stage::new("server without streams", &FULL, ""), false, |situation| match situation.outlook {
        Outlook::Known(_) | Outlook::TriesAgain | Outlook::Breaks => situation.outlook,
        Outlook::Waits => Outlook::TriesAgain,
        _ => Outlook::Unseen,
    });
}
