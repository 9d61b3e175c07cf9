//! What only waits for a person: never called stuck, as far as each connection can know, and never aborted where it is known.

use super::stage::Stage;
use crate::support::freeze::freeze;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::Pilot;
use crate::support::process::signal;
use crate::support::server::{Client, Server, Session};
use crate::support::{SOON, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

const LIMITS: &str = "[limits]\ntool-quiet = \"2s\"\ntool-stuck = \"5s\"\nfresh-quiet = \"2s\"\nfresh-stuck = \"5s\"\n";

/// A session in which a tool of an MCP server asks its user a question, which nobody answers. Fields drop from the top.
pub(super) struct Asking {
    pub(super) pilot: Pilot,
    pub(super) session: Session,
    _client: Client,
    pub(super) person: Person,
    pub(super) server: Server,
    _model: Model,
    home: Home,
}

impl Asking {
    fn set(config: &str) -> Self {
        let asking = Self::quiet(config);
        asking.session.send("SCRIPT:mcp Drop it");
        asking.session.folder.wait("tool.execution_start");
        asking
    }

    /// The same before anything is asked.
    pub(super) fn quiet(config: &str) -> Self {
        let (home, model) = (Home::new("project"), Model::start());
        let server = Server::start(&home, &model);
        let pilot = Pilot::configured(&[&home], config);
        let (client, person) = (server.connect(), Person::who(Manner::Waits));
        let session = server.create_with_asker(&client, &person);
        Self { pilot, session, _client: client, person, server, _model: model, home }
    }

    fn id(&self) -> String {
        self.session.id()
    }

    /// Waits until the silence has lasted for so long, by the log.
    fn silent_for(&self, span: Duration) {
        let events = self.session.folder.events();
        let last: jiff::Timestamp = events.last().unwrap()["timestamp"].as_str().unwrap().parse().unwrap();
        let until = last + span;
        wait_until(SOON + span, "the silence is long", String::new, || (jiff::Timestamp::now() > until).then_some(()));
    }

    fn aborts(&self) -> usize {
        self.session.folder.types().iter().filter(|kind| *kind == "abort").count()
    }
}

/// Case 126: who is not attached is told that there is work, and not of what is asked.
#[test]
fn case_126_unattached_it_is_busy_or_asks_and_never_stuck() {
    let asking = Asking::set(LIMITS);
    let id = asking.id();
    asking.pilot.told_beside(&id, "quiet", "busy, or asking you there");
    asking.silent_for(Duration::from_secs(8));
    // The tray, what reaches it, and what asks by itself (`watch`, and `status` where no tray runs) say the same.
    let row = asking.pilot.told_beside(&id, "quiet", "busy, or asking you there");
    assert_eq!(row["question"], Value::Null, "{row}");
    assert!(!asking.pilot.history(&id).contains(&"stuck".to_owned()), "{:?}", asking.pilot.history(&id));
    let alone = asking.pilot.row(&id).unwrap();
    assert_eq!((&alone["status"], &alone["because"]), (&row["status"], &row["because"]), "{alone}");
    asking.pilot.menu_says(&id, "Stop the turn, also if it only waits for you");
    // Nothing was changed by the look, and the answer is taken as ever.
    asking.person.now(Manner::Approves);
    asking.session.folder.wait("tool.execution_complete");
    asking.pilot.told_beside(&id, "idle", "");
    assert!(!asking.session.folder.types().contains(&"session.resume".to_owned()));
    asking.session.folder.assert_one_chain();
}

/// Case 126: an attached client hears of it, in its own words; to reconnect aborts nothing that is known to wait.
#[test]
fn case_126_attached_it_needs_input_and_is_not_aborted() {
    // Without the look it is called stuck, and reconnecting stops what is stuck.
    let asking = Asking::set(&format!("{LIMITS}[actions]\nask-servers = false\n"));
    let id = asking.id();
    asking.pilot.told(&id, "stuck", "");
    let ran = asking.pilot.run(&["reconnect", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("it asks you something: nothing is stopped"), "{ran:?}");
    let row = asking.pilot.told_beside(&id, "needs-input", "asks: \"Which database shall I drop?\" (test, prod)");
    assert_eq!(row["question"], json!({"text": "Which database shall I drop?", "choices": ["test", "prod"]}), "{row}");
    assert_eq!(asking.aborts(), 0);
    // Whoever calls the home by another name is told the same.
    let scratch = tempfile::tempdir().unwrap();
    let link = scratch.path().join("home");
    std::os::unix::fs::symlink(asking.home.dir(), &link).unwrap();
    assert_eq!(asking.pilot.row_by(&[link], &id).unwrap()["because"], row["because"]);
    // Answered elsewhere: over at once.
    asking.person.now(Manner::Approves);
    asking.pilot.told_beside(&id, "idle", "");
    assert_eq!(asking.pilot.row_beside(&id).unwrap()["question"], Value::Null);
    asking.session.folder.assert_one_chain();
}

/// What is asked after we came is heard, and an abort ends it though nobody says so.
#[test]
fn case_126_a_question_is_heard_and_ends_with_its_turn() {
    let asking = Asking::set("");
    let id = asking.id();
    let ran = asking.pilot.run(&["reconnect", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    asking.pilot.told_beside(&id, "needs-input", "Which database");
    asking.session.abort();
    asking.pilot.told_beside(&id, "idle", "stopped");
    asking.session.send("SCRIPT:mcp Drop the other");
    asking.pilot.told_beside(&id, "needs-input", "Which database");
    // The user's own stop is the user's to give.
    let stopped = asking.pilot.run(&["stop", &id]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    asking.pilot.told_beside(&id, "idle", "stopped");
}

/// Case 126: a tool whose process works asks nobody. Everybody says so, in the same words.
#[test]
fn case_126_a_tool_that_works_is_running_long_wherever_one_looks() {
    let stage = Stage::configured(LIMITS);
    let id = stage.session.id();
    stage.session.send("SCRIPT:spin Paint the fence");
    stage.session.folder.wait("permission.completed");
    // Without the tray, and beside it.
    let alone = stage.told("quiet", "running long: bash is open, its process is busy");
    let row = stage.pilot.told_beside(&id, "quiet", "running long: bash is open, its process is busy");
    for row in [alone, row] {
        assert!(!row["because"].as_str().unwrap().contains("asking you there"), "{row}");
    }
    stage.home.go();
    stage.told("idle", "");
}

/// A server that does not answer changes nothing: silence is judged by the log, in its time.
#[test]
fn case_126_a_server_that_hangs_holds_nothing_up() {
    let asking = Asking::set(LIMITS);
    freeze(asking.server.pid());
    asking.pilot.told(&asking.id(), "stuck", "silent");
    signal(asking.server.pid(), Signal::CONT);
}

/// A model that never answers asks nobody: to ask the server first does not excuse it, and one look a silence is all.
#[test]
fn a_silent_model_is_stuck_though_its_server_is_busy() {
    let stage = Stage::configured("[limits]\nfresh-quiet = \"2s\"\nfresh-stuck = \"1h\"\n");
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.told("quiet", "");
    stage.pilot.configure(LIMITS);
    stage.told("stuck", "");
    let looks = stage.pilot.log().matches("its server is asked what they do").count();
    assert_eq!(looks, 1, "{}", stage.pilot.log());
}

/// What waits for a person in a way that the log tells is told so by everybody, in its own words.
#[test]
fn a_tool_that_asks_is_told_in_its_own_words() {
    let stage = Stage::set(Manner::Waits);
    stage.session.send("SCRIPT:ask Paint the fence");
    let row = stage.told("needs-input", "asks: \"Which color?\" (red, blue)");
    assert_eq!(row["question"], json!({"text": "Which color?", "choices": ["red", "blue"]}), "{row}");
    stage.person.now(Manner::Approves);
    stage.told("idle", "");
}
