//! Sessions that only wait for a person: never reported as stuck, as far as each connection can know, and never aborted
//! if that is known.

use super::orders::Staying;
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

const LIMITS: &str = "[limits]\ntool-quiet = \"2s\"\ntool-stuck = \"5s\"\nfresh-quiet = \"2s\"\nfresh-stuck = \"5s\"\nthinking-quiet = \"2s\"\nthinking-stuck = \"5s\"\n";

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
    fn new(config: &str) -> Self {
        let asking = Self::before(config);
        asking.session.send("SCRIPT:mcp Drop it");
        asking.session.folder.wait("tool.execution_start");
        asking
    }

    /// The same session before it asks anything.
    pub(super) fn before(config: &str) -> Self {
        let (home, model) = (Home::new("project"), Model::start());
        let server = Server::start(&home, &model);
        let pilot = Pilot::configured(&[&home], config);
        let (client, person) = (server.connect(), Person::new(Manner::Waits));
        let session = server.create_with_asker(&client, &person);
        Self { pilot, session, _client: client, person, server, _model: model, home }
    }

    fn id(&self) -> String {
        self.session.id()
    }

    fn silent_for(&self, span: Duration) {
        silent_for(&self.session, span);
    }

    fn aborts(&self) -> usize {
        self.session.folder.types().iter().filter(|kind| *kind == "abort").count()
    }
}

/// Waits until the last event in the session's log is `span` old.
fn silent_for(session: &Session, span: Duration) {
    let events = session.folder.events();
    let last: jiff::Timestamp = events.last().unwrap()["timestamp"].as_str().unwrap().parse().unwrap();
    let until = last + span;
    wait_until(SOON + span, "the silence is long", String::new, || (jiff::Timestamp::now() > until).then_some(()));
}

/// Case 126: without being attached, the server reports activity, but not the question.
#[test]
fn case_126_unattached_a_question_is_never_reported_as_stuck() {
    let asking = Asking::new(LIMITS);
    let id = asking.id();
    asking.pilot.wait_status_in_tray(&id, "quiet", "it may be busy, or waiting for you");
    asking.silent_for(Duration::from_secs(8));
    // The tray, a command that reaches it, and programs that ask the server themselves (`watch`, and `status` without
    // a tray) agree.
    let row = asking.pilot.wait_status_in_tray(&id, "quiet", "it may be busy, or waiting for you");
    assert_eq!(row["question"], Value::Null, "{row}");
    assert!(!asking.pilot.history(&id).contains(&"stuck".to_owned()), "{:?}", asking.pilot.history(&id));
    let alone = asking.pilot.row(&id).unwrap();
    assert_eq!((&alone["status"], &alone["because"]), (&row["status"], &row["because"]), "{alone}");
    asking.pilot.wait_menu(&id, "Stop the turn, even if it only waits for you");
    // Asking changed nothing, and the question can still be answered.
    asking.person.set_manner(Manner::Approves);
    asking.session.folder.wait("tool.execution_complete");
    asking.pilot.wait_status_in_tray(&id, "idle", "");
    assert!(!asking.session.folder.types().contains(&"session.resume".to_owned()));
    asking.session.folder.assert_one_chain();
}

/// Case 126: an attached client receives the question's text. Reconnecting aborts nothing that is known to wait.
#[test]
#[ignore = "tests/long.sh"]
fn case_126_attached_a_question_needs_input_and_is_not_aborted() {
    // If it is not asked, it is stuck.
    let asking = Asking::new(&format!("{LIMITS}[actions]\nask-servers = false\n"));
    let id = asking.id();
    asking.pilot.wait_status(&id, "stuck", "");
    let ran = asking.pilot.run(&["reconnect", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let row =
        asking.pilot.wait_status_in_tray(&id, "needs-input", "asks: \"Which database shall I drop?\" test or prod");
    let (question, choices) = (&row["question"], json!(["test", "prod"]));
    let asked = (&question["text"], &question["choices"]);
    assert_eq!(asked, (&json!("Which database shall I drop?"), &choices), "{row}");
    assert_eq!(asking.aborts(), 0);
    // A command with another path of the home gets the same answer.
    let scratch = tempfile::tempdir().unwrap();
    let link = scratch.path().join("home");
    std::os::unix::fs::symlink(asking.home.dir(), &link).unwrap();
    assert_eq!(asking.pilot.row_in_tray_for(&[link], &id).unwrap()["because"], row["because"]);
    // Once answered elsewhere, it is no longer open.
    asking.person.set_manner(Manner::Approves);
    asking.pilot.wait_status_in_tray(&id, "idle", "");
    assert_eq!(asking.pilot.row_in_tray(&id).unwrap()["question"], Value::Null);
    asking.session.folder.assert_one_chain();
}

/// Case 180: without a tray, a command that recovers a session first asks its server, as a tray does, whatever the
/// settings say about asking by itself.
#[test]
fn case_180_without_a_tray_nothing_is_aborted_that_may_wait() {
    for more in ["", "[actions]\nask-servers = false\n"] {
        let asking = Asking::new(&format!("{LIMITS}{more}"));
        asking.silent_for(Duration::from_secs(8));
        recover_without_tray(&asking.pilot, &asking.id());
        assert_eq!(asking.aborts(), 0, "{more:?}");
        asking.person.set_manner(Manner::Approves);
        assert_eq!(asking.session.folder.wait("tool.execution_complete")["data"]["success"], true);
        asking.session.folder.assert_one_chain();
    }
}

/// Case 180, for a tool that works without using the CPU.
#[test]
fn case_180_without_a_tray_nothing_is_aborted_that_may_work() {
    let stage = Stage::configured(LIMITS);
    stage.session.send("SCRIPT:tool Paint the fence");
    stage.session.folder.wait("permission.completed");
    stage.wait_status("quiet", "it may be busy, or waiting for you");
    silent_for(&stage.session, Duration::from_secs(8));
    recover_without_tray(&stage.pilot, &stage.session.id());
    stage.home.release_tools();
    assert_eq!(stage.session.folder.wait("tool.execution_complete")["data"]["success"], true);
    assert!(!stage.session.folder.types().iter().any(|kind| kind == "abort"));
}

/// Tries to continue a session with a command that has no tray, which is refused, and reconnects it with another.
fn recover_without_tray(pilot: &Pilot, id: &str) {
    let ran = pilot.run_without_tray(&["reconnect", "--continue", id]);
    assert!(ran.code == Some(4) && ran.err.contains("was not cut off"), "{ran:?}");
    let mut one = Staying::start(pilot.command(&["reconnect", id]));
    one.wait_output("stays connected");
    one.signal(Signal::INT);
    assert_eq!(one.code(), Some(0), "{}", one.output());
}

/// A question asked after we attached is reported. An abort ends it, although no event says so.
#[test]
#[ignore = "tests/long.sh"]
fn case_126_a_question_ends_with_its_turn() {
    let asking = Asking::new("");
    let id = asking.id();
    let ran = asking.pilot.run(&["reconnect", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    asking.pilot.wait_status_in_tray(&id, "needs-input", "Which database");
    asking.session.abort();
    asking.pilot.wait_status_in_tray(&id, "idle", "stopped");
    asking.session.send("SCRIPT:mcp Drop the other");
    asking.pilot.wait_status_in_tray(&id, "needs-input", "Which database");
    // An explicit stop by the user is allowed.
    let stopped = asking.pilot.run(&["stop", &id]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    asking.pilot.wait_status_in_tray(&id, "idle", "stopped");
}

/// Case 126: a tool whose process is busy does not ask anybody. All views report the same reason.
#[test]
fn case_126_a_busy_tool_is_running_long_in_all_views() {
    let stage = Stage::configured(LIMITS);
    let id = stage.session.id();
    stage.session.send("SCRIPT:spin Paint the fence");
    stage.session.folder.wait("permission.completed");
    // Without the tray, and with it.
    let alone = stage.wait_status("quiet", "running long: bash, its process is busy");
    let row = stage.pilot.wait_status_in_tray(&id, "quiet", "running long: bash, its process is busy");
    for row in [alone, row] {
        assert!(!row["because"].as_str().unwrap().contains("waiting for you"), "{row}");
    }
    stage.home.release_tools();
    stage.wait_status("idle", "");
}

/// A server that does not answer changes nothing: silence is judged by the log, at the usual limits.
#[test]
#[ignore = "tests/long.sh"]
fn case_126_a_hanging_server_does_not_delay_stuck() {
    let asking = Asking::new(LIMITS);
    freeze(asking.server.pid());
    asking.pilot.wait_status(&asking.id(), "stuck", "silent");
    signal(asking.server.pid(), Signal::CONT);
}

/// A silent model is no question: a busy server does not prevent `stuck`, and it is asked only once per silence.
#[test]
fn a_silent_model_is_stuck_though_its_server_is_busy() {
    let stage = Stage::configured("[limits]\nfresh-quiet = \"2s\"\nfresh-stuck = \"1h\"\n");
    stage.session.send("SCRIPT:hang Paint the fence");
    stage.wait_status("quiet", "");
    stage.pilot.configure(LIMITS);
    stage.wait_status("stuck", "");
    let queries = stage.pilot.log().matches("its server is asked what they do").count();
    assert_eq!(queries, 1, "{}", stage.pilot.log());
}

/// A question that is in the log is reported by all views with its own text.
#[test]
fn a_question_is_reported_with_its_own_text() {
    let stage = Stage::new(Manner::Waits);
    stage.session.send("SCRIPT:ask Paint the fence");
    let row = stage.wait_status("needs-input", "asks: \"Which color?\" red or blue");
    assert_eq!(row["question"], json!({"id": null, "text": "Which color?", "choices": ["red", "blue"]}), "{row}");
    stage.person.set_manner(Manner::Approves);
    stage.wait_status("idle", "");
}
