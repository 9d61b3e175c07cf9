//! The bridge's extension in the real terminal interface, with the test at the far side of its socket.

mod attacks;
mod clicks;
mod consent;
mod held_up;
mod lives;
mod older;
mod places;
mod rough;
mod stories;

use crate::support::home::{Home, cli};
use crate::support::listener::{Line, Listener, be_pilotlight};
use crate::support::model::Model;
use crate::support::pilotlight::{Pilot, Ran};
use crate::support::terminal::{CONSENT, DIALOG, Terminal};
use crate::support::{COPILOT, wait_until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A terminal with the bridge, and us at its other end. Fields drop from the top.
struct Stage {
    terminal: Terminal,
    line: Line,
    listener: Listener,
    model: Model,
    home: Home,
}

/// Our own folders in a home's scratch folder.
fn ours(home: &Home) -> PathBuf {
    home.root().join("ours")
}

/// Where the extension lies, in the home of a user of Pilotlight.
fn extension_in(user: &Path) -> PathBuf {
    user.join(".local/share/pilotlight/bridge/plugins/pilotlight/extensions/pilotlight")
}

/// `pilotlight bridge` for this home, as its user would run it.
fn bridge(home: &Home, model: &Model, arguments: &[&str]) -> Ran {
    let config = home.root().join("pilotlight.toml");
    std::fs::write(&config, format!("[actions]\ncopilot = {:?}\n", home.program(model))).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
    command.arg("--home").arg(home.dir()).arg("bridge").args(arguments);
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", ours(home))
        .env("PILOTLIGHT_CONFIG", config);
    command.env("XDG_RUNTIME_DIR", ours(home).join("run"));
    Ran::of(home.in_its_system(command))
}

fn installed(home: &Home, model: &Model) -> Vec<u8> {
    std::fs::create_dir_all(ours(home).join("run")).unwrap();
    let ran = bridge(home, model, &["install", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    be_pilotlight(&extension_in(&ours(home)).join("bridge.json"));
    std::fs::read(ours(home).join(".local/state/pilotlight/bridge.key")).unwrap()
}

impl Stage {
    fn set(args: &[&str]) -> Self {
        Self::in_home(args, |_| ())
    }

    /// The same, in a home that this prepares.
    fn in_home(args: &[&str], prepare: impl FnOnce(&mut Home)) -> Self {
        let (mut home, model) = (Home::new("project"), Model::start());
        let key = installed(&home, &model);
        prepare(&mut home);
        let listener = Listener::start(&ours(&home).join("run/pilotlight"), &key);
        let terminal = Terminal::start(&home, &model, args);
        let line = listener.accept();
        assert_eq!(line.hello["session"], terminal.folder.id());
        assert_eq!(line.hello["ppid"], terminal.pid());
        Self { terminal, line, listener, model, home }
    }

    /// The event that opened the turn that runs, or ran last.
    fn root(&self) -> String {
        let events = self.terminal.folder.events();
        let prompt = events.iter().rfind(|event| event["type"] == "user.message").unwrap();
        prompt["id"].as_str().unwrap().to_owned()
    }
}

impl Pilot {
    /// How often a bridge has come, to sessions whose id contains this.
    fn bridges(&self, id: &str) -> usize {
        self.log().lines().filter(|line| line.contains("a bridge has come") && line.contains(id)).count()
    }

    /// Waits until one has come so often.
    fn has_bridges(&self, count: usize, id: &str) {
        let what = format!("a bridge has come to {id:?} ({count})");
        wait_until(COPILOT, &what, || self.log(), || (self.bridges(id) >= count).then_some(()));
    }
}

/// A terminal with the bridge, beside the tray. Fields drop from the top.
struct Bridged {
    pilot: Pilot,
    terminal: Terminal,
    home: Home,
    model: Model,
}

impl Bridged {
    fn set(args: &[&str]) -> Self {
        Self::configured(args, "")
    }

    /// The same, with these settings in its config's section of notifications, and below it.
    fn configured(args: &[&str], config: &str) -> Self {
        Self::of(cli(), args, config, |_, _| ())
    }

    /// The same, with its home and the extension's file as this makes them.
    fn changed(args: &[&str], change: impl FnOnce(&Home, &Path)) -> Self {
        Self::of(cli(), args, "", change)
    }

    /// The same in another release of the CLI.
    fn of(cli: &Path, args: &[&str], config: &str, change: impl FnOnce(&Home, &Path)) -> Self {
        let (home, model) = (Home::with_cli("project", cli.to_owned()), Model::start());
        let program = home.program(&model);
        let config = format!("[actions]\ncopilot = {program:?}\n[notifications]\nafter-start = \"1ms\"\n{config}");
        let pilot = Pilot::configured(&[&home], &config);
        let ran = pilot.run(&["bridge", "install", "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        change(&home, &extension_in(pilot.user()).join("extension.mjs"));
        let terminal = Terminal::start(&home, &model, args);
        // It is there a few seconds after the terminal.
        pilot.has_bridges(1, "");
        Self { pilot, terminal, home, model }
    }

    fn id(&self) -> String {
        self.terminal.folder.id()
    }

    /// Has the user allow it to answer in the terminal.
    fn allowed(&self) {
        let id = self.id();
        self.terminal.enter("SCRIPT:plain Paint the wall");
        self.terminal.folder.wait("assistant.turn_end");
        self.pilot.told(&id, "idle", "");
        self.pilot.click(&id, "Let Pilotlight answer here");
        self.terminal.wait_screen(CONSENT);
        self.terminal.press(&["1"]);
        self.terminal.folder.wait("permission.completed");
        self.terminal.wait_no_screen(CONSENT);
    }

    /// Answers what the session asks its user to allow, with this command, once it has asked so often. How the last one ended.
    fn answered(&self, command: &[&str], asked: usize) -> Value {
        let (id, terminal) = (self.id(), &self.terminal);
        terminal.folder.wait_nth("permission.requested", asked);
        terminal.wait_screen(DIALOG);
        self.pilot.told(&id, "needs-permission", "");
        self.done(&[command, &[&id]].concat());
        terminal.folder.wait_nth("permission.completed", asked)
    }

    /// Has it ask which colour it is to be, and clicks on the second.
    fn chosen(&self) {
        let (id, terminal) = (self.id(), &self.terminal);
        let before = terminal.folder.types().iter().filter(|kind| *kind == "tool.execution_complete").count();
        terminal.enter("SCRIPT:form Paint the fence");
        self.pilot.told_beside(&id, "needs-input", "Which color?");
        self.pilot.click(&id, "Answer “blue”");
        let done = terminal.folder.wait_nth("tool.execution_complete", before + 1);
        assert!(done.to_string().contains("blue"), "{done}");
    }

    /// Runs a command that succeeds.
    fn done(&self, args: &[&str]) -> Ran {
        let ran = self.pilot.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}\n{}\n{}", self.pilot.log(), self.terminal.dump());
        ran
    }
}

#[test]
fn the_tray_stops_a_turn_in_a_terminal_that_lives_on() {
    let bridged = Bridged::set(&["--allow-all-tools"]);
    let id = bridged.id();
    bridged.terminal.enter("SCRIPT:tool Paint the fence");
    bridged.terminal.folder.wait("tool.execution_start");
    bridged.pilot.told(&id, "working", "");
    bridged.pilot.click(&id, "Stop the turn");
    bridged.terminal.folder.wait("abort");
    bridged.pilot.told(&id, "idle", "");
    bridged.terminal.enter("SCRIPT:tool Paint the gate");
    bridged.terminal.folder.wait_nth("tool.execution_start", 2);
    bridged.done(&["stop", &id]);
    bridged.terminal.folder.wait_nth("abort", 2);
}

#[test]
fn the_tray_answers_a_question_in_a_terminal() {
    Bridged::set(&[]).chosen();
}

#[test]
fn the_tray_approves_in_a_terminal_once_it_may() {
    let bridged = Bridged::set(&[]);
    bridged.allowed();
    bridged.terminal.enter("SCRIPT:tool Paint the gate");
    let completed = bridged.answered(&["approve"], 2);
    assert_eq!(completed["data"]["result"]["kind"], "approved");
    bridged.home.go();
    bridged.terminal.folder.wait("tool.execution_complete");
}

/// Where no tray runs, a command listens for as long as its order takes.
#[test]
#[ignore = "tests/long.sh"]
fn a_command_stops_and_answers_in_a_terminal_without_a_tray() {
    let mut bridged = Bridged::set(&["--allow-all-tools"]);
    let id = bridged.id();
    bridged.pilot.end_tray();
    bridged.terminal.enter("SCRIPT:tool Paint the fence");
    bridged.terminal.folder.wait("tool.execution_start");
    // A bridge comes to it within two seconds, on a machine that has time for both.
    let done = |args: &[&str]| {
        let dump = || format!("{:?}\n{}", bridged.pilot.run(args), bridged.terminal.dump());
        wait_until(COPILOT, "a bridge has come in time", dump, || {
            (bridged.pilot.run(args).code == Some(0)).then_some(())
        });
    };
    done(&["stop", &id]);
    bridged.terminal.folder.wait("abort");
    bridged.terminal.enter("SCRIPT:form Paint the gate");
    bridged.terminal.wait_screen("Which color?");
    // An answer names its question, which is shown first.
    let named = || {
        let ran = bridged.pilot.run(&["answer", &id, "blue"]);
        Some(ran.err.split("--request ").nth(1)?.split('`').next()?.to_owned())
    };
    let request = wait_until(COPILOT, "the question is named", || bridged.terminal.dump(), named);
    done(&["answer", &id, "blue", "--request", &request]);
    let done = bridged.terminal.folder.wait("tool.execution_complete");
    assert!(done.to_string().contains("blue"), "{done}");
}

#[test]
fn it_is_installed_looked_at_and_removed() {
    let (home, model) = (Home::new("project"), Model::start());
    let status = || {
        let ran = bridge(&home, &model, &["status", "--json"]);
        serde_json::from_str::<Value>(&ran.out).unwrap()[0]["installed"].clone()
    };
    assert_eq!(status(), "no");
    for _again in 0..2 {
        installed(&home, &model);
        assert_eq!(status(), "yes");
    }
    // From another folder, as after a move: ours takes its place.
    let settings = home.dir().join("settings.json");
    let elsewhere = std::fs::read_to_string(&settings).unwrap().replace("/ours/", "/elsewhere/");
    std::fs::write(&settings, elsewhere).unwrap();
    assert_eq!(status(), "elsewhere");
    installed(&home, &model);
    assert_eq!(status(), "yes");
    let ran = bridge(&home, &model, &["remove", "--yes"]);
    assert_eq!((ran.code, status()), (Some(0), json!("no")), "{ran:?}");
    let settings = std::fs::read_to_string(home.dir().join("settings.json")).unwrap();
    assert!(!settings.contains("pilotlight"), "{settings}");
    assert!(!ours(&home).join(".local/share/pilotlight/bridge").exists());
    let ran = bridge(&home, &model, &["remove", "--yes"]);
    assert!(ran.code == Some(0) && ran.err.contains("nothing: no home has it"), "{ran:?}");
}

#[test]
fn a_turn_is_stopped_and_only_the_one_that_is_named() {
    let stage = Stage::set(&["--allow-all-tools"]);
    stage.terminal.enter("SCRIPT:tool Paint the fence");
    stage.terminal.folder.wait("tool.execution_start");
    let root = stage.root();
    assert_eq!(stage.line.order(1, json!({"t": "stop", "after": "another"})), Err("changed".into()));
    stage.line.order(2, json!({"t": "stop", "after": root})).unwrap();
    stage.terminal.folder.wait("abort");
    stage.line.event("abort");
    // The session lives on, and what was said of the turn before stops nothing in the next.
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    stage.terminal.folder.wait_nth("tool.execution_start", 2);
    assert_eq!(stage.line.order(3, json!({"t": "stop", "after": root})), Err("changed".into()));
    stage.line.order(4, json!({"t": "stop", "after": stage.root()})).unwrap();
    stage.terminal.folder.wait_nth("abort", 2);
}

#[test]
fn a_question_is_heard_and_answered() {
    let stage = Stage::set(&[]);
    stage.terminal.enter("SCRIPT:form Paint the fence");
    let asked = stage.line.event("elicitation.requested");
    assert!(asked["requestedSchema"]["properties"].is_object(), "{asked}");
    let (name, field) = asked["requestedSchema"]["properties"].as_object().unwrap().iter().next().unwrap();
    let choice = field["enum"][1].clone();
    let result = json!({"action": "accept", "content": {name: choice}});
    let answer = json!({"t": "answer", "requestId": asked["requestId"], "result": result});
    stage.line.order(1, answer.clone()).unwrap();
    let done = stage.terminal.folder.wait("tool.execution_complete");
    assert!(done.to_string().contains(choice.as_str().unwrap()), "{done}");
    stage.line.event("elicitation.completed");
    assert_eq!(stage.line.order(2, answer), Err("gone".into()));
}

/// What may not be approved without consent, may be after it was given in the terminal.
#[test]
fn approving_takes_consent_and_then_the_text_that_was_shown() {
    let stage = Stage::set(&[]);
    stage.terminal.enter("SCRIPT:plain Paint the fence");
    stage.terminal.folder.wait("assistant.turn_end");
    stage.line.event("session.idle");
    let approve = json!({"t": "approve", "requestId": "x", "toolCallId": "y", "text": "z"});
    assert_eq!(stage.line.order(1, approve), Err("not-elevated".into()));
    assert_eq!(stage.line.order(2, json!({"t": "elevate", "after": "another"})), Err("changed".into()));
    let (line, root) = (&stage.line, stage.root());
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| line.order(3, json!({"t": "elevate", "after": root})));
        stage.terminal.wait_screen(CONSENT);
        assert_eq!(line.order(4, json!({"t": "stop", "after": root})), Err("consenting".into()));
        stage.terminal.press(&["1"]);
        asked.join().unwrap().unwrap();
    });
    stage.terminal.wait_no_screen(CONSENT);
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    let asked = stage.line.event("permission.requested");
    stage.terminal.wait_screen(DIALOG);
    let order = |t: &str, text: &str| json!({"t": t, "requestId": asked["requestId"], "toolCallId": asked["promptRequest"]["toolCallId"], "text": text});
    assert_eq!(stage.line.order(5, order("approve", "another text")), Err("changed".into()));
    let shown = stage.line.wait("its mark", |said| said["mark"].is_string())["mark"].clone();
    stage.line.order(6, order("approve", shown.as_str().unwrap())).unwrap();
    let completed = stage.terminal.folder.wait_nth("permission.completed", 2);
    assert_eq!(completed["data"]["result"]["kind"], "approved");
    stage.home.go();
    stage.terminal.folder.wait("tool.execution_complete");
}

/// A session that waits for its next prompt, which is the time to ask for consent.
fn at_rest(stage: &Stage) -> Value {
    stage.terminal.enter("SCRIPT:plain Paint the fence");
    stage.terminal.folder.wait("assistant.turn_end");
    stage.line.event("session.idle");
    json!({"t": "elevate", "after": stage.root()})
}

/// Orders it to ask for consent, and answers the dialog with these keys.
fn asked_for_consent(stage: &Stage, keys: &[&str]) -> Result<Value, String> {
    let (line, elevate) = (&stage.line, at_rest(stage));
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| line.order(1, elevate));
        stage.terminal.wait_screen(CONSENT);
        stage.terminal.press(keys);
        let said = asked.join().unwrap();
        stage.terminal.wait_no_screen(CONSENT);
        said
    })
}

#[test]
fn a_no_is_final_for_the_session_and_takes_nothing_else_away() {
    let stage = Stage::set(&[]);
    asked_for_consent(&stage, &["Escape"]).unwrap_err();
    assert_eq!(stage.line.order(2, json!({"t": "elevate", "after": stage.root()})), Err("refused".into()));
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    stage.terminal.wait_screen(DIALOG);
    stage.terminal.folder.wait_nth("user.message", 2);
    stage.line.order(3, json!({"t": "stop", "after": stage.root()})).unwrap();
    stage.terminal.folder.wait("abort");
}

/// Consent that the user gave for good is made use of right after a prompt, without a dialog.
#[test]
fn consent_that_is_remembered_needs_no_dialog() {
    let stage = Stage::set(&[]);
    asked_for_consent(&stage, &["2"]).unwrap();
    stage.terminal.exit();
    let again = Terminal::start(&stage.home, &stage.model, &[]);
    let line = stage.listener.accept();
    assert_eq!(line.hello["elevated"], false, "nothing is asked for at the start");
    again.enter("SCRIPT:tool Paint the gate");
    line.wait("it may answer", |said| said["t"] == "consent" && said["elevated"] == true);
    line.wait("the request", |said| said["type"] == "permission.requested" || !said["items"][0].is_null());
    assert!(!again.dump().contains(CONSENT));
    again.folder.wait("permission.requested");
    let asked = again.folder.events().iter().filter(|event| event["type"] == "permission.requested").count();
    assert_eq!(asked, 1, "the tool's own");
}

#[test]
#[ignore = "tests/long.sh"]
fn it_comes_back_to_whoever_listens_and_obeys_nobody_without_the_key() {
    let Stage { terminal, line, listener, model: _model, home } = Stage::set(&[]);
    let key = std::fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    let folder = ours(&home).join("run/pilotlight");
    drop((line, listener));
    // A stranger is let go of as soon as it says hello.
    let stranger = Listener::start(&folder, b"another key");
    stranger.accept_and_be_left();
    drop(stranger);
    // So is one that knows the key, and speaks another version of the protocol.
    let newer = Listener::start(&folder, &key).of_version(2);
    newer.accept_and_be_left();
    drop(newer);
    let line = Listener::start(&folder, &key).accept();
    assert_eq!(line.hello["session"], terminal.folder.id());
    assert_eq!(line.order(1, json!({"t": "activity"})).unwrap()["hasActiveWork"], false);
    assert_eq!(line.order(2, json!({"t": "approve-all"})), Err("unknown".into()));
    // The folder may go with the login session, and come with the next.
    std::fs::remove_dir_all(ours(&home).join("run")).unwrap();
    drop(line);
    let line = Listener::start(&folder, &key).accept();
    assert_eq!(line.hello["session"], terminal.folder.id());
}
