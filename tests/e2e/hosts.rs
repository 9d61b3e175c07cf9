//! Other machines: the real CLI at the far end of a pipe, watched by a Pilotlight that has no other session.

use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::{Manner, Person};
use crate::support::pilotlight::Pilot;
use crate::support::server::{Client, Server, Session};
use crate::support::wait_until;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// A Pilotlight here that knows this home by a host alone; the user there, and a home without sessions here.
fn pilot_of(home: &Home) -> (Pilot, [TempDir; 2]) {
    pilot_over_host("COPILOT_HOME", &home.dir())
}

/// As [`pilot_of`], for a home of the agent that this variable belongs to.
pub(super) fn pilot_over_host(variable: &str, home: &Path) -> (Pilot, [TempDir; 2]) {
    let [there, empty] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let path = std::env::var("PATH").unwrap_or_default();
    let (user, home) = (format!("HOME={}", there.path().display()), format!("{variable}={}", home.display()));
    let program = env!("CARGO_BIN_EXE_pilotlight");
    let words =
        ["env", "-i", &user, &home, &format!("PATH={path}"), "PILOTLIGHT_DISCOVER=false", program, "serve", "--stdio"];
    let config = format!("[[host]]\nname = \"devbox\"\ncommand = {}\n", serde_json::to_string(&words).unwrap());
    std::fs::create_dir_all(empty.path().join("session-state")).unwrap();
    let pilot = Pilot::watching(vec![empty.path().to_owned()], &config, &[]);
    // What connects there is no login, and counts as the user's because it is older than what runs the session.
    let listed = || pilot.run(&["host", "list", "--json"]);
    let is_reached = || listed().out.contains("\"reached\"").then_some(());
    wait_until(Duration::from_secs(30), "the machine is reached", || format!("{:?}", listed()), is_reached);
    (pilot, [there, empty])
}

/// A session there whose person waits, and a Pilotlight here. Fields drop from the top.
struct Stage {
    session: Session,
    _person: Person,
    _client: Client,
    _folders: [TempDir; 2],
    pilot: Pilot,
    _server: Server,
    _model: Model,
    home: Home,
}

impl Stage {
    fn new() -> Self {
        let (home, model) = (Home::new("project"), Model::start());
        let (pilot, folders) = pilot_of(&home);
        let server = Server::start(&home, &model);
        let (client, person) = (server.connect(), Person::new(Manner::Waits));
        let session = server.create(&client, Some(&person));
        Self {
            session,
            _person: person,
            _client: client,
            _folders: folders,
            pilot,
            _server: server,
            _model: model,
            home,
        }
    }
}

/// The connection to the session is kept there, as long as the one to the machine is.
#[test]
#[ignore = "tests/long.sh"]
fn case_421_lost_permissions_come_back_over_the_connection() {
    let (home, model) = (Home::new("project"), Model::start());
    let (pilot, _folders) = pilot_of(&home);
    let server = Server::start(&home, &model);
    let client = server.connect();
    let session = server.create(&client, None);
    let id = session.id();
    session.send("SCRIPT:denied3 Paint the fence");
    pilot.wait_status_in_tray(&id, "permission-lost", "");
    session.folder.wait_nth("assistant.turn_end", 4);
    pilot.click(&id, "Reconnect only");
    pilot.wait_status_in_tray(&id, "needs-input", "its last prompt was not carried out");
    session.send("SCRIPT:tool Paint the gate");
    session.folder.wait("permission.requested");
    pilot.wait_status_in_tray(&id, "needs-permission", "");
    pilot.click(&id, "Approve once");
    session.folder.wait("permission.completed");
    home.release_tools();
    pilot.wait_status_in_tray(&id, "idle", "");
    session.folder.assert_one_chain();
}

#[test]
#[ignore = "tests/long.sh"]
fn case_422_a_question_on_another_machine_is_answered_from_the_menu() {
    let stage = Stage::new();
    let Stage { pilot, session, .. } = &stage;
    let id = session.id();
    let known = || pilot.row_in_tray(&id).map(drop);
    wait_until(Duration::from_secs(30), "the tray knows it", String::new, known);
    let ran = pilot.run(&["reconnect", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    session.send("SCRIPT:ask Paint the fence");
    pilot.wait_status_in_tray(&id, "needs-input", "");
    pilot.wait_menu(&id, "Asks: Which color?");
    pilot.click(&id, "Answer “blue”");
    let ended = session.folder.wait("tool.execution_complete");
    assert!(ended.to_string().contains("User selected: blue"), "{ended}");
    pilot.wait_status_in_tray(&id, "idle", "");
}

/// From the menu and by commands, over the tray's connection and over one of the command's own: what was shown is what is
/// answered there.
#[test]
fn case_416_a_request_on_another_machine_is_answered_from_here() {
    let stage = Stage::new();
    let Stage { home, pilot, session, .. } = &stage;
    let id = session.id();
    let answered = |nth, allowed: &str| {
        let event = session.folder.wait_nth("permission.completed", nth);
        assert_eq!(event["data"]["result"]["kind"], allowed, "{event}");
    };
    session.send("SCRIPT:tool Paint the fence");
    let row = pilot.wait_status(&id, "needs-permission", "");
    assert_eq!(row["host"], "devbox");
    assert!(row["label"].as_str().unwrap().contains("@devbox"), "{row}");
    pilot.click(&id, "Approve once");
    answered(1, "approved");
    pilot.wait_status(&id, "working", "");
    home.release_tools();
    pilot.wait_status(&id, "idle", "");

    session.send("SCRIPT:tool Paint the gate");
    pilot.wait_status(&id, "needs-permission", "");
    let ran = pilot.run(&["approve", "--yes", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    answered(2, "approved");
    home.release_tools();
    pilot.wait_status(&id, "idle", "");

    session.send("SCRIPT:tool Paint the door");
    pilot.wait_status(&id, "needs-permission", "");
    let wrong = pilot.run(&["approve", &id, "--request", "36535f61-5c7b-4f09-a70b-2f8aed972800"]);
    assert!(matches!(wrong.code, Some(1 | 4)), "{wrong:?}");
    let ran = pilot.run_without_tray(&["deny", "--yes", "--host", "devbox", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let denied = || session.folder.events().iter().filter(|event| event["type"] == "permission.completed").count() == 3;
    wait_until(Duration::from_secs(30), "it is denied", || session.folder.dump(), || denied().then_some(()));

    session.send("SCRIPT:hang");
    pilot.wait_status(&id, "working", "");
    pilot.click(&id, "Stop the turn");
    pilot.wait_status(&id, "idle", "");
}

/// Before, a command that read what a session there asks for had approved it by that session's words.
#[test]
#[ignore = "tests/long.sh"]
fn case_487_a_request_that_a_command_only_looked_at_was_not_approved() {
    let stage = Stage::new();
    let Stage { home, pilot, session, .. } = &stage;
    let id = session.id();
    let approved =
        |row: &serde_json::Value| row["because"].as_str().unwrap().contains("approved by `pilotlight approve`");
    session.send("SCRIPT:tool Paint the fence");
    let asks = pilot.wait_status(&id, "needs-permission", "");
    let request = asks["request"]["id"].as_str().unwrap();
    let ran = pilot.run(&["approve", &id, "--request", request, "--sha256", "another"]);
    assert!(ran.code == Some(4) && ran.out.contains("for i in"), "{ran:?}");
    let ran = pilot.run(&["deny", "--yes", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let row = pilot.wait_status(&id, "idle", "");
    assert!(!approved(&row), "{row}");

    session.send("SCRIPT:tool Paint the gate");
    pilot.wait_status(&id, "needs-permission", "");
    let ran = pilot.run(&["approve", "--yes", &id]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    home.release_tools();
    assert!(approved(&pilot.wait_status(&id, "idle", "approved by `pilotlight approve`")), "an approval is told of");
}
