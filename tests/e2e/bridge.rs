//! The bridge's extension in the real terminal interface, with the test or the tray at the other end of its socket.

mod asking;
mod attacks;
pub(super) mod callers;
mod clicks;
mod consent;
mod elsewhere;
mod ending;
mod forms;
mod held_up;
mod kept;
mod lives;
mod older;
mod rough;
mod socket_path;
mod stories;

use crate::support::executable::executable;
use crate::support::home::{Home, cli};
use crate::support::listener::{Connection, Listener, pose_as_pilotlight, record_hash};
use crate::support::model::Model;
use crate::support::pilotlight::{CommandOutput, Pilot};
use crate::support::terminal::{CONSENT, DIALOG, Terminal};
use crate::support::{COPILOT, wait_until};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A terminal with the bridge, and the test at its other end. Fields drop from the top.
struct Stage {
    terminal: Terminal,
    connection: Connection,
    listener: Listener,
    model: Model,
    home: Home,
}

/// The home folder of Pilotlight's user, in a home's scratch folder.
fn ours(home: &Home) -> PathBuf {
    home.root().join("ours")
}

/// The folder of the extension, in the home of a user of Pilotlight.
fn extension_in(user: &Path) -> PathBuf {
    user.join(".local/share/pilotlight/bridge/plugins/pilotlight/extensions/pilotlight")
}

/// Runs `pilotlight bridge` for this home, as its user would.
fn bridge(home: &Home, model: &Model, arguments: &[&str]) -> CommandOutput {
    without_tray(home, model, &[&["bridge"], arguments].concat())
}

/// Runs `pilotlight` for this home, as its user would without a tray.
fn without_tray(home: &Home, model: &Model, arguments: &[&str]) -> CommandOutput {
    let config = home.root().join("pilotlight.toml");
    std::fs::write(&config, format!("[actions]\ncopilot = {:?}\n", home.program(model))).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
    command.arg("--home").arg(home.dir()).args(arguments);
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", ours(home))
        .env("PILOTLIGHT_CONFIG", config);
    command.env("XDG_RUNTIME_DIR", ours(home).join("run"));
    CommandOutput::of(home.with_policy(command))
}

/// Installs the bridge for the test in place of Pilotlight, and returns the key.
fn install(home: &Home, model: &Model) -> Vec<u8> {
    std::fs::create_dir_all(ours(home).join("run")).unwrap();
    let ran = bridge(home, model, &["install", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    pose_as_pilotlight(&extension_in(&ours(home)).join("bridge.json"));
    std::fs::read(ours(home).join(".local/state/pilotlight/bridge.key")).unwrap()
}

impl Stage {
    fn new(args: &[&str]) -> Self {
        Self::in_home(args, |_| ())
    }

    /// As [`new`](Self::new), in a home that `prepare` has changed.
    fn in_home(args: &[&str], prepare: impl FnOnce(&mut Home)) -> Self {
        let (mut home, model) = (Home::new("project"), Model::start());
        let key = install(&home, &model);
        prepare(&mut home);
        record_hash(&extension_in(&ours(&home)).join("bridge.json"));
        let listener = Listener::start(&ours(&home).join("run/pilotlight"), &key);
        let terminal = Terminal::start(&home, &model, args);
        let connection = listener.accept();
        assert_eq!(connection.hello["session"], terminal.folder.id());
        assert_eq!(connection.hello["ppid"], terminal.pid());
        Self { terminal, connection, listener, model, home }
    }

    /// The id of the event that opened the current or last turn.
    fn root(&self) -> String {
        let events = self.terminal.folder.events();
        let prompt = events.iter().rfind(|event| event["type"] == "user.message").unwrap();
        prompt["id"].as_str().unwrap().to_owned()
    }
}

impl Pilot {
    /// How many times a bridge connected from a session whose id contains `id`.
    fn bridge_count(&self, id: &str) -> usize {
        self.log().lines().filter(|line| line.contains("a bridge has connected") && line.contains(id)).count()
    }

    /// Waits until a bridge has connected `count` times.
    pub(super) fn wait_bridges(&self, count: usize, id: &str) {
        let what = format!("a bridge of {id:?} has connected ({count})");
        wait_until(COPILOT, &what, || self.log(), || (self.bridge_count(id) >= count).then_some(()));
    }
}

/// The settings of a user who has this home's Copilot, up to and with those of popups, which appear at once.
pub(super) fn bridged_config(home: &Home, model: &Model) -> String {
    // A release that the bridge was not tested with yet is to be tested.
    let untried = std::env::var_os("PILOTLIGHT_TEST_RELEASE").map(|_| "bridge-untried = true\n").unwrap_or_default();
    let program = home.program(model);
    format!("[actions]\ncopilot = {program:?}\n{untried}[notifications]\nafter-start = \"1ms\"\n")
}

/// A terminal with the bridge, and the tray. Fields drop from the top.
struct Bridged {
    pilot: Pilot,
    terminal: Terminal,
    home: Home,
    model: Model,
}

impl Bridged {
    fn new(args: &[&str]) -> Self {
        Self::configured(args, "")
    }

    /// One whose user has let Pilotlight answer.
    fn consented() -> Self {
        let bridged = Self::new(&[]);
        bridged.give_consent();
        bridged
    }

    /// As [`new`](Self::new), with these settings in the config's section `[notifications]` and after it.
    fn configured(args: &[&str], config: &str) -> Self {
        Self::with_cli(cli(), args, config, |_, _| ())
    }

    /// As [`new`](Self::new), after `prepare` has changed the home and the extension's file.
    fn prepared(args: &[&str], prepare: impl FnOnce(&Home, &Path)) -> Self {
        Self::with_cli(cli(), args, "", prepare)
    }

    /// The same in another release of the CLI.
    fn with_cli(cli: &Path, args: &[&str], config: &str, prepare: impl FnOnce(&Home, &Path)) -> Self {
        let (home, model) = (Home::with_cli("project", cli.to_owned()), Model::start());
        let config = bridged_config(&home, &model) + config;
        let pilot = Pilot::configured(&[&home], &config);
        let ran = pilot.run(&["bridge", "install", "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let file = extension_in(pilot.user()).join("extension.mjs");
        prepare(&home, &file);
        record_hash(&file.with_file_name("bridge.json"));
        let terminal = Terminal::start(&home, &model, args);
        // The bridge connects a few seconds after the terminal's start.
        pilot.wait_bridges(1, "");
        Self { pilot, terminal, home, model }
    }

    fn id(&self) -> String {
        self.terminal.folder.id()
    }

    /// Makes the user consent in the terminal, so that the bridge may answer.
    fn give_consent(&self) {
        let id = self.id();
        self.terminal.enter("SCRIPT:plain Paint the wall");
        self.terminal.folder.wait("assistant.turn_end");
        self.pilot.wait_status(&id, "idle", "");
        self.pilot.click(&id, "Let Pilotlight answer here");
        let dump = || format!("{}\n{}", self.terminal.dump(), self.pilot.log());
        wait_until(COPILOT, "Copilot asks", dump, || self.terminal.screen().contains(CONSENT).then_some(()));
        self.terminal.press(&["1"]);
        self.terminal.folder.wait("permission.completed");
        self.terminal.wait_no_screen(CONSENT);
    }

    /// Runs this command once the session has made `count` permission requests, and returns the completion of the last.
    fn answer_request(&self, command: &[&str], count: usize) -> Value {
        let (id, terminal) = (self.id(), &self.terminal);
        terminal.folder.wait_nth("permission.requested", count);
        terminal.wait_screen(DIALOG);
        self.pilot.wait_status(&id, "needs-permission", "");
        self.run_ok(&[command, &[&id]].concat());
        terminal.folder.wait_nth("permission.completed", count)
    }

    /// Makes it ask for a color, and clicks the second choice.
    fn choose_blue(&self) {
        let (id, terminal) = (self.id(), &self.terminal);
        let before = terminal.folder.types().iter().filter(|kind| *kind == "tool.execution_complete").count();
        terminal.enter("SCRIPT:form Paint the fence");
        self.pilot.wait_status_in_tray(&id, "needs-input", "Which color?");
        self.pilot.click(&id, "Answer “blue”");
        let done = terminal.folder.wait_nth("tool.execution_complete", before + 1);
        assert!(done.to_string().contains("blue"), "{done}");
    }

    /// Runs a command that must succeed.
    fn run_ok(&self, args: &[&str]) -> CommandOutput {
        let ran = self.pilot.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}\n{}\n{}", self.pilot.log(), self.terminal.dump());
        ran
    }
}

/// Without a tray, a command listens for bridges during its order.
#[test]
#[ignore = "tests/long.sh"]
fn a_command_stops_and_answers_in_a_terminal_without_a_tray() {
    let mut bridged = Bridged::new(&["--allow-all-tools"]);
    let id = bridged.id();
    bridged.pilot.end_tray();
    bridged.terminal.enter("SCRIPT:tool Paint the fence");
    bridged.terminal.folder.wait("tool.execution_start");
    // On a machine that is not busy, a bridge connects to it within two seconds.
    let run_ok = |args: &[&str]| {
        let dump = || format!("{:?}\n{}", bridged.pilot.run(args), bridged.terminal.dump());
        wait_until(COPILOT, "a bridge connects in time", dump, || {
            (bridged.pilot.run(args).code == Some(0)).then_some(())
        });
    };
    run_ok(&["stop", &id]);
    bridged.terminal.folder.wait("abort");
    bridged.terminal.enter("SCRIPT:form Paint the gate");
    bridged.terminal.wait_screen("Which color?");
    // An answer must name its question, whose id a refusal shows.
    let named = || {
        let ran = bridged.pilot.run(&["answer", &id, "blue"]);
        Some(ran.err.split("--request ").nth(1)?.split('`').next()?.to_owned())
    };
    let request = wait_until(COPILOT, "the question is named", || bridged.terminal.dump(), named);
    run_ok(&["answer", &id, "blue", "--request", &request]);
    let done = bridged.terminal.folder.wait("tool.execution_complete");
    assert!(done.to_string().contains("blue"), "{done}");
}

#[test]
fn it_can_be_installed_inspected_and_removed() {
    let (home, model) = (Home::new("project"), Model::start());
    let status = || {
        let ran = bridge(&home, &model, &["status", "--json"]);
        serde_json::from_str::<Value>(&ran.out).unwrap()[0]["installed"].clone()
    };
    assert_eq!(status(), "no");
    for _ in 0..2 {
        install(&home, &model);
        assert_eq!(status(), "yes");
    }
    // An installation from another folder, as after a move, is replaced by ours.
    let settings = home.dir().join("settings.json");
    let elsewhere = std::fs::read_to_string(&settings).unwrap().replace("/ours/", "/elsewhere/");
    std::fs::write(&settings, elsewhere).unwrap();
    assert_eq!(status(), "elsewhere");
    install(&home, &model);
    assert_eq!(status(), "yes");
    let ran = bridge(&home, &model, &["remove", "--yes"]);
    assert_eq!((ran.code, status()), (Some(0), json!("no")), "{ran:?}");
    let settings = std::fs::read_to_string(home.dir().join("settings.json")).unwrap();
    assert!(!settings.contains("pilotlight"), "{settings}");
    assert!(!ours(&home).join(".local/share/pilotlight/bridge").exists());
    let ran = bridge(&home, &model, &["remove", "--yes"]);
    assert!(ran.code == Some(0) && ran.err.contains("no home of Copilot has the bridge"), "{ran:?}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_195_a_bridge_is_shown_before_the_first_prompt() {
    let mut bridged = Bridged::new(&[]);
    let id = bridged.id();
    let status = || serde_json::from_str::<Value>(&bridged.pilot.run(&["bridge", "status", "--json"]).out).unwrap();
    let is_shown = || (status()[0]["sessions"][0]["bridge"] == "joined").then_some(());
    wait_until(COPILOT, "it is joined", || status().to_string(), is_shown);
    let words = bridged.pilot.run(&["bridge", "status"]).out;
    assert!(words.contains("covered; to approve from here"), "{words}");
    assert!(!bridged.terminal.folder.types().iter().any(|kind| kind == "user.message"));
    assert_eq!(bridged.pilot.row_in_tray(&id).unwrap()["owner"]["bridge"], "joined");
    // Without a tray, the command itself meets the bridges.
    bridged.pilot.end_tray();
    let pilot = &bridged.pilot;
    let words = || pilot.run(&["bridge", "status"]).out;
    let is_met = || words().contains("covered; to approve from here").then_some(());
    wait_until(COPILOT, "the command meets the bridge", words, is_met);
    let rows = || serde_json::from_str::<Value>(&pilot.run(&["status", "--json"]).out).unwrap();
    let is_met = || (rows()[0]["owner"]["bridge"] == "joined").then_some(());
    wait_until(COPILOT, "a look meets the bridge", || rows().to_string(), is_met);
}

/// Where it is not installed, and no tray runs, the way to be covered is named: by the status and by each refusal.
#[test]
fn case_195_without_a_bridge_the_status_and_the_refusals_say_how_to_be_covered() {
    let (home, model) = (Home::new("project"), Model::start());
    std::fs::create_dir_all(ours(&home).join("run")).unwrap();
    let terminal = Terminal::start(&home, &model, &[]);
    terminal.enter("SCRIPT:tool Paint the fence");
    terminal.folder.wait("permission.requested");
    let status = bridge(&home, &model, &["status"]).out;
    assert!(status.contains("not installed; `pilotlight bridge install` installs it"), "{status}");
    assert!(status.contains("not covered: run `pilotlight bridge install`, then restart it"), "{status}");
    let ran = without_tray(&home, &model, &["deny", "--yes", &terminal.folder.id()]);
    assert!(ran.code == Some(4) && ran.err.contains("`pilotlight bridge install` makes it possible here"), "{ran:?}");
}

/// The files serve all homes of a user: they stay as long as any home refers to them, or may.
#[test]
#[ignore = "tests/long.sh"]
fn case_194_removing_and_failing_leave_what_others_use_and_nothing_else() {
    let (home, second, model) = (Home::new("project"), Home::new("project"), Model::start());
    let user = ours(&home);
    std::fs::create_dir_all(user.join("run")).unwrap();
    let run = |of: &Home, program: &Path, arguments: &[&str]| {
        let config = user.join("pilotlight.toml");
        std::fs::write(&config, format!("[actions]\ncopilot = {program:?}\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
        command.arg("--home").arg(of.dir()).arg("bridge").args(arguments);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", &user);
        command.env("XDG_RUNTIME_DIR", user.join("run")).env("PILOTLIGHT_CONFIG", config);
        CommandOutput::of(of.with_policy(command))
    };
    let (marketplace, state) = (user.join(".local/share/pilotlight/bridge"), user.join(".local/state/pilotlight"));
    let is_there = || marketplace.exists() && state.join("bridge.key").exists();

    // Copilot's command fails: nothing is left, neither on our side nor on its.
    let failing = user.join("copilot");
    executable(
        &failing,
        &format!(
            "#!/bin/sh\ncase \"$*\" in plugin\\ install*) exit 1;; esac\nexec {:?} \"$@\"\n",
            home.program(&model)
        ),
    );
    let ran = run(&home, &failing, &["install", "--yes"]);
    let settings = |of: &Home| std::fs::read_to_string(of.dir().join("settings.json")).unwrap_or_default();
    assert!(ran.code == Some(1) && !marketplace.exists() && !settings(&home).contains("pilotlight"), "{ran:?}");
    let left = std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("bridge")), "{left:?}");

    for of in [&home, &second] {
        let ran = run(of, &of.program(&model), &["install", "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    // Copilot 1.0.86 has no `config --rm`.
    let old = user.join("copilot-1.0.86");
    executable(&old, &format!("#!/bin/sh\n[ \"$1\" = config ] && exit 2\nexec {:?} \"$@\"\n", home.program(&model)));
    let ran = run(&home, &old, &["remove", "--yes"]);
    assert!(ran.code == Some(0) && ran.err.contains("its files stay") && is_there(), "{ran:?}");
    assert!(ran.err.contains("this Copilot cannot remove \"enabledPlugins.pilotlight@pilotlight\""), "{ran:?}");

    // With a mistake in its settings, nobody can tell whether a home refers to them.
    let before = settings(&second);
    std::fs::write(second.dir().join("settings.json"), before.replacen('{', "{ oops", 1)).unwrap();
    for verb in ["remove", "install"] {
        let ran = run(&second, &second.program(&model), &[verb, "--yes"]);
        assert!(ran.code == Some(1) && ran.err.contains("correct the mistake") && is_there(), "{ran:?}");
    }
    assert!(run(&home, &home.program(&model), &["remove", "--yes"]).code == Some(0) && is_there());
    std::fs::write(second.dir().join("settings.json"), before).unwrap();
    let ran = run(&second, &second.program(&model), &["remove", "--yes"]);
    assert!(ran.code == Some(0) && !marketplace.exists() && !state.join("bridge.key").exists(), "{ran:?}");
    assert!(!settings(&second).contains("pilotlight"));
    assert!(!state.join("bridge.homes").exists());
}

#[test]
fn orders_apply_only_to_the_turn_or_question_that_they_name() {
    let stage = Stage::new(&["--allow-all-tools"]);
    stage.terminal.enter("SCRIPT:form Paint the wall");
    let asked = stage.connection.event("elicitation.requested");
    assert!(asked["requestedSchema"]["properties"].is_object(), "{asked}");
    let (name, field) = asked["requestedSchema"]["properties"].as_object().unwrap().iter().next().unwrap();
    let choice = field["enum"][1].clone();
    let result = json!({"action": "accept", "content": {name: choice}});
    let answer = json!({"t": "answer", "requestId": asked["requestId"], "result": result});
    stage.connection.order(1, answer.clone()).unwrap();
    let done = stage.terminal.folder.wait("tool.execution_complete");
    assert!(done.to_string().contains(choice.as_str().unwrap()), "{done}");
    stage.connection.event("elicitation.completed");
    assert_eq!(stage.connection.order(2, answer), Err("gone".into()));

    stage.connection.event("session.idle");
    stage.terminal.enter("SCRIPT:tool Paint the fence");
    stage.terminal.folder.wait_nth("tool.execution_start", 2);
    let root = stage.root();
    assert_eq!(stage.connection.order(3, json!({"t": "stop", "after": "another"})), Err("changed".into()));
    stage.connection.order(4, json!({"t": "stop", "after": root})).unwrap();
    stage.terminal.folder.wait("abort");
    stage.connection.event("abort");
    // The session continues, and an order for the previous turn does not stop the next one.
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    stage.terminal.folder.wait_nth("tool.execution_start", 3);
    assert_eq!(stage.connection.order(5, json!({"t": "stop", "after": root})), Err("changed".into()));
    stage.connection.order(6, json!({"t": "stop", "after": stage.root()})).unwrap();
    stage.terminal.folder.wait_nth("abort", 2);
}

/// Requests can be approved only after consent was given in the terminal. Permanent consent is later used right after a
/// prompt, without a dialog.
#[test]
fn approving_needs_consent_and_the_shown_text() {
    let stage = Stage::new(&[]);
    stage.terminal.enter("SCRIPT:plain Paint the fence");
    stage.terminal.folder.wait("assistant.turn_end");
    stage.connection.event("session.idle");
    let approve = json!({"t": "approve", "requestId": "x", "toolCallId": "y", "text": "z"});
    assert_eq!(stage.connection.order(1, approve), Err("not-elevated".into()));
    assert_eq!(stage.connection.order(2, json!({"t": "elevate", "after": "another"})), Err("changed".into()));
    let (connection, root) = (&stage.connection, stage.root());
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| connection.order(3, json!({"t": "elevate", "after": root})));
        stage.terminal.wait_screen(CONSENT);
        assert_eq!(connection.order(4, json!({"t": "stop", "after": root})), Err("consenting".into()));
        stage.terminal.press(&["2"]);
        asked.join().unwrap().unwrap();
    });
    stage.terminal.wait_no_screen(CONSENT);
    stage.terminal.enter("SCRIPT:tool Paint the gate");
    let asked = stage.connection.event("permission.requested");
    stage.terminal.wait_screen(DIALOG);
    let order = |t: &str, text: &str| json!({"t": t, "requestId": asked["requestId"], "toolCallId": asked["promptRequest"]["toolCallId"], "text": text});
    assert_eq!(stage.connection.order(5, order("approve", "another text")), Err("changed".into()));
    let shown = stage.connection.wait("its mark", |message| message["mark"].is_string())["mark"].clone();
    stage.connection.order(6, order("approve", shown.as_str().unwrap())).unwrap();
    let completed = stage.terminal.folder.wait_nth("permission.completed", 2);
    assert_eq!(completed["data"]["result"]["kind"], "approved");
    stage.home.release_tools();
    stage.terminal.folder.wait("tool.execution_complete");

    stage.terminal.exit();
    let again = Terminal::start(&stage.home, &stage.model, &[]);
    let connection = stage.listener.accept();
    assert_eq!(connection.hello["elevated"], false, "no consent is requested at the start");
    again.enter("SCRIPT:tool Paint the shed");
    connection.wait("it may answer", |message| message["t"] == "consent" && message["elevated"] == true);
    connection
        .wait("the request", |message| message["type"] == "permission.requested" || !message["items"][0].is_null());
    assert!(!again.dump().contains(CONSENT));
    again.folder.wait("permission.requested");
    let asked = again.folder.types().iter().filter(|kind| *kind == "permission.requested").count();
    assert_eq!(asked, 1, "only the tool's own request");
}

/// Runs a turn to its end, and returns an order to request consent, which is possible then.
fn idle_elevate_order(stage: &Stage) -> Value {
    stage.terminal.enter("SCRIPT:plain Paint the fence");
    stage.terminal.folder.wait("assistant.turn_end");
    stage.connection.event("session.idle");
    json!({"t": "elevate", "after": stage.root()})
}

/// Orders the bridge to request consent, and answers the dialog with these keys.
fn request_consent(stage: &Stage, keys: &[&str]) -> Result<Value, String> {
    let (connection, elevate) = (&stage.connection, idle_elevate_order(stage));
    std::thread::scope(|threads| {
        let asked = threads.spawn(|| connection.order(1, elevate));
        stage.terminal.wait_screen(CONSENT);
        stage.terminal.press(keys);
        let result = asked.join().unwrap();
        stage.terminal.wait_no_screen(CONSENT);
        result
    })
}

#[test]
#[ignore = "tests/long.sh"]
fn it_reconnects_and_obeys_only_a_listener_with_the_key() {
    let Stage { terminal, connection, listener, model: _model, home } = Stage::new(&[]);
    let key = std::fs::read(ours(&home).join(".local/state/pilotlight/bridge.key")).unwrap();
    let folder = ours(&home).join("run/pilotlight");
    drop((connection, listener));
    // It disconnects from a listener with another key at the welcome.
    let stranger = Listener::start(&folder, b"another key");
    stranger.accept_and_expect_disconnect();
    drop(stranger);
    // The same for a listener with the key and another version of the protocol.
    let newer = Listener::start(&folder, &key).with_version(3);
    newer.accept_and_expect_disconnect();
    drop(newer);
    let connection = Listener::start(&folder, &key).accept();
    assert_eq!(connection.hello["session"], terminal.folder.id());
    assert_eq!(connection.order(1, json!({"t": "activity"})).unwrap()["hasActiveWork"], false);
    assert_eq!(connection.order(2, json!({"t": "approve-all"})), Err("unknown".into()));
    // The folder may be removed with the login session, and recreated with the next.
    std::fs::remove_dir_all(ours(&home).join("run")).unwrap();
    drop(connection);
    let connection = Listener::start(&folder, &key).accept();
    assert_eq!(connection.hello["session"], terminal.folder.id());
}
