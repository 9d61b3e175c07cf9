//! The commands of `[[on-change]]`, run by the real tray; and each recipe of docs/on-change.md, as it is written there.

use crate::desk::bus::Bus;
use crate::desk::panel::Panel;
use crate::desk::sessions::Sessions;
use crate::desk::tray::{TrayProcess, User};
use crate::support::executable::executable;
use crate::support::{SOON, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// So that tests need not wait.
const AT_ONCE: &str = "[notifications]\nafter-start = \"1ms\"\npermission-delay = \"1ms\"\n";

/// A tray with these settings, its user and its sessions.
struct World {
    user: User,
    sessions: Sessions,
    panel: Panel,
    bus: Bus,
}

impl World {
    fn new() -> Self {
        let (bus, sessions) = (Bus::start(), Sessions::new());
        let (user, panel) = (User::new(&sessions), Panel::start(&bus));
        fs::create_dir_all(user.state()).unwrap();
        fs::write(user.state().join("welcomed"), "").unwrap();
        fs::create_dir_all(user.scratch.path().join(".config/pilotlight")).unwrap();
        Self { user, sessions, panel, bus }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.user.scratch.path().join(".config/pilotlight").join(name)
    }

    fn set(&self, settings: &str) {
        fs::write(self.file("config.toml"), settings).unwrap();
    }

    fn start(&self, command: Command) -> TrayProcess {
        let tray = self.user.start_tray_as(command);
        self.panel.wait_for_icon();
        let scanned = || (self.panel.menu()[0].label != "Looking for sessions").then_some(());
        wait_until(SOON, "the initial scan is over", || format!("{:#?}", self.panel.menu()), scanned);
        tray
    }

    /// Waits for the line with this number of a file, which is the JSON of a row.
    fn told(&self, file: &str, number: usize) -> Value {
        let read = || fs::read_to_string(self.file(file)).unwrap_or_default();
        let line = || read().lines().nth(number).map(str::to_owned);
        let line = wait_until(SOON, &format!("{file} has line {number}"), || read() + &self.log(), line);
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.user.state().join("pilotlight.log")).unwrap_or_default()
    }
}

#[test]
fn case_300_a_command_is_told_the_row_on_its_standard_input_alone() {
    let world = World::new();
    // Each line with one write: commands run at the same time.
    let script = "#!/bin/sh\nrow=$(cat)\nprintf '%s\\n' \"$row\" >>\"$1\"\nprintf '%s|' \"$@\" >\"$1.args\"\n";
    executable(&world.file("told"), script);
    let rows = world.file("rows");
    let run = format!("run = [\"~/.config/pilotlight/told\", \"{}\", \"$(touch oops)\"]\n", rows.display());
    let settings = |detail: &str, status: &str| {
        format!(
            "{AT_ONCE}detail = \"{detail}\"\n[[on-change]]\n{status}{run}[[on-change]]\nrun = [\"/nowhere/program\", \"s3cr3t\"]\n"
        )
    };
    world.set(&settings("full", ""));
    let session = world.sessions.add("Fix the parser");
    session.prompt();
    let _tray = world.start(world.user.command(Some(&world.bus), &[]));
    world.user.wait_status(&world.panel, &session, "working");
    session.tool("a", "bash", "make");
    session.ask_for("r", "a", "rm -rf build");
    let row = world.told("rows", 0);
    let mut shown = world.user.row(&session).unwrap();
    assert_eq!((&row["status"], &row["request"]["text"]), (&json!("needs-permission"), &json!("rm -rf build")));
    // What only a running tray knows differs.
    let (mut row, mut without) = (row, Vec::new());
    for key in ["owner", "actions", "last_progress"] {
        without.push(row.as_object_mut().unwrap().remove(key).is_some());
        shown.as_object_mut().unwrap().remove(key);
    }
    assert_eq!((row, without), (shown, vec![true; 3]));
    let arguments = fs::read_to_string(world.file("rows.args")).unwrap();
    assert_eq!(arguments, format!("{}|$(touch oops)|", rows.display()));
    let missing = "«the on-change command 2 (program)» failed: «there is no such program»";
    wait_until(SOON, "it is logged", || world.log(), || world.log().contains(missing).then_some(()));
    // Other settings hold at once.
    world.set(&settings("title", "status = [\"working\", \"failed\"]\n"));
    let reloaded = || world.log().contains("settings").then_some(());
    wait_until(SOON, "the settings are read again", || world.log(), reloaded);
    session.permit("r");
    session.tool_done("a");
    assert_eq!(world.told("rows", 1)["status"], "working");
    session.fail("hunter2 is wrong");
    let row = world.told("rows", 2);
    assert_eq!((&row["status"], &row["because"], &row["question"]), (&json!("failed"), &json!("failed"), &Value::Null));
    assert_eq!(row["label"], "work · Fix the parser");
    let log = world.log();
    for secret in ["s3cr3t", "hunter2", "rm -rf", "Fix the parser"] {
        assert!(!log.contains(secret), "{secret} is in:\n{log}");
    }
    let output = world.user.command(None, &["doctor"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("command 2: there is no program /nowhere/program"), "{text}");
}

/// A recipe of docs/on-change.md: its settings, its script, and another file that it needs.
struct Recipe {
    settings: String,
    script: Option<String>,
    other: Option<String>,
}

/// The recipe below this heading.
fn recipe(heading: &str) -> Recipe {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/on-change.md")).unwrap();
    let (_, after) = page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let section = after.split("\n## ").next().unwrap();
    let (mut blocks, mut is_code) = (Vec::<String>::new(), false);
    for line in section.lines().filter(|line| !line.is_empty()) {
        let code = line.strip_prefix("    ");
        match code {
            Some(code) if is_code => blocks.last_mut().unwrap().extend([code, "\n"]),
            Some(code) => blocks.push(format!("{code}\n")),
            None => {}
        }
        is_code = code.is_some();
    }
    let find = |begins: &str| blocks.iter().find(|block| block.starts_with(begins)).cloned();
    Recipe { settings: blocks[0].clone(), script: find("#!/bin/sh\n"), other: find("url ") }
}

/// What was asked for, and with what body.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// An HTTP server on loopback that accepts what it is sent, each with its path and its body.
fn server() -> (u16, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, received) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<_>>>::default());
    let record = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let mut lines = BufReader::new(&stream);
            let (mut path, mut length) = (String::new(), 0);
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 2 {
                if let Some(posted) = line.strip_prefix("POST ") {
                    path = posted.split(' ').next().unwrap().to_owned();
                }
                if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            lines.read_exact(&mut body).unwrap();
            record.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap()));
            (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").unwrap();
        }
    });
    (port, received)
}

#[test]
fn case_307_the_recipes_reach_a_phone_a_webhook_a_light_and_a_player() {
    let world = World::new();
    let (port, received) = server();
    let mut settings = AT_ONCE.to_owned();
    for (heading, script, address) in [
        ("A phone, by ntfy", Some("phone"), "https://ntfy.sh"),
        ("Slack, or any webhook", Some("slack"), ""),
        ("A sound for each cause", None, ""),
        ("A light", Some("light"), "http://192.168.1.20"),
    ] {
        let recipe = recipe(heading);
        settings += &recipe.settings;
        if let Some(other) = recipe.other {
            let other = other.replace("https://hooks.slack.com", &format!("http://127.0.0.1:{port}"));
            fs::write(world.file("slack-webhook"), other).unwrap();
        }
        assert_eq!(recipe.script.is_some(), script.is_some(), "{heading}");
        if let (Some(name), Some(text)) = (script, recipe.script) {
            assert!(text.contains(address), "{text}");
            let text =
                if address.is_empty() { text } else { text.replace(address, &format!("http://127.0.0.1:{port}")) };
            executable(&world.file(name), &text);
        }
    }
    world.set(&settings);
    // A player that notes what it plays, and the program under the name that the light's script calls.
    let programs = world.user.scratch.path().join("bin");
    fs::create_dir(&programs).unwrap();
    executable(&programs.join("paplay"), "#!/bin/sh\necho \"$1\" >>~/played\n");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pilotlight"), programs.join("pilotlight")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = world.user.command_without_home(Some(&world.bus), &[]);
    command.env("PATH", path).env("COPILOT_HOME", world.sessions.home());
    let session = world.sessions.add("Fix <b> & \"it\"");
    session.prompt();
    let _tray = world.start(command);
    world.user.wait_status(&world.panel, &session, "working");
    session.tool("a", "bash", "make");
    session.ask_for("r", "a", "make");
    let posted = |path: &str, holds: &dyn Fn(&Value) -> bool| {
        let found = || received.lock().unwrap().iter().find(|(to, body)| to == path && holds(body)).cloned();
        wait_until(
            SOON,
            &format!("{path} is posted to"),
            || format!("{:#?}{}", received.lock().unwrap(), world.log()),
            found,
        )
        .1
    };
    let phone = posted("/", &|_| true);
    let label = "work · Fix <b> & \"it\"";
    assert_eq!((&phone["title"], &phone["topic"]), (&json!(label), &json!("choose-a-secret-name")));
    let message = phone["message"].as_str().unwrap();
    assert!(message.starts_with("asks for permission") && message.ends_with("\nmake"), "with what it asks: {message}");
    assert_eq!(
        posted("/services/T000/B000/XXXX", &|_| true),
        json!({"text": format!("work · Fix &lt;b&gt; &amp; \"it\"\n{message}")})
    );
    assert_eq!(posted("/json/state", &|body| body["on"] == true)["seg"][0]["col"][0], json!([255, 0, 0]));
    session.permit("r");
    posted("/json/state", &|body| body["on"] == false);
    session.fail("it is broken");
    let played = || fs::read_to_string(world.user.scratch.path().join("played")).unwrap_or_default();
    let both = || played().contains("/dialog-warning.oga\n").then(played);
    let played = wait_until(SOON, "both sounds are played", played, both);
    assert!(played.starts_with("/usr/share/sounds/freedesktop/stereo/message.oga\n"), "{played}");
    assert!(!world.log().contains("on-change"), "{}", world.log());
}

#[test]
fn case_307_the_recipe_for_a_tab_names_the_window_and_gives_the_name_back() {
    let scratch = tempfile::Builder::new().prefix("pilotlight-tab-").tempdir().unwrap();
    let tmux = |arguments: &[&str]| {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").env("TMUX_TMPDIR", scratch.path()).args(["-f", "/dev/null"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let pid = tmux(&["new-session", "-d", "-P", "-F", "#{pane_pid}", "sleep", "600"]);
    let script = scratch.path().join("tab");
    executable(&script, &recipe("A tab's title").script.unwrap());
    let tell = |status: &str, pid: &str| {
        let mut command = Command::new(&script);
        command.env_remove("TMUX").env("TMUX_TMPDIR", scratch.path()).stdin(Stdio::piped());
        let mut running = command.spawn().unwrap();
        let row = json!({"status": status, "owner": {"pid": pid.parse::<u32>().unwrap()}});
        writeln!(running.stdin.take().unwrap(), "{row}").unwrap();
        assert!(running.wait().unwrap().success());
    };
    let name = || tmux(&["display-message", "-p", "#{window_name}"]);
    tell("needs-permission", &pid);
    assert_eq!(name(), "⚑ asks");
    tell("working", &pid);
    wait_until(SOON, "it has its own name", name, || (name() == "sleep").then_some(()));
    tell("needs-input", &std::process::id().to_string());
    assert_eq!(name(), "sleep", "a session in another terminal names no window");
    // The name that the user gave it is theirs, whatever it looks like, and stays given.
    let given = format!("mine #(touch {}) #S", scratch.path().join("run").display());
    tmux(&["rename-window", &given.replace('#', "##")]);
    for status in ["needs-input", "needs-permission", "working", "idle"] {
        tell(status, &pid);
        assert_eq!(name(), if status.starts_with("needs-") { "⚑ asks" } else { &*given }, "{status}");
    }
    assert_eq!(tmux(&["show-options", "-w", "-v", "automatic-rename"]), "off");
    assert_eq!(tmux(&["show-options", "-w", "-q", "-v", "@own-name"]), "");
    assert!(!scratch.path().join("run").exists());
    tmux(&["kill-server"]);
}
