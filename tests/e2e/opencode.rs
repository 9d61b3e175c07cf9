//! What the real opencode asks in a terminal, answered from the tray and by commands over its plugin; and what the plugin
//! leaves to the terminal.

mod plugin;

use super::hooks::{opencode_settings, switch_off};
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::pilotlight::{CommandOutput, Pilot};
use crate::support::tmux::Tmux;
use crate::support::{COPILOT, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What opencode asks before it runs a command.
const DIALOG: &str = "Permission required";
const PLUGIN: &str = ".config/opencode/plugins/pilotlight.js";

/// opencode in a terminal with the bridge, and the tray. Fields drop from the top.
struct Bridged {
    pilot: Pilot,
    terminal: Tmux,
    model: Model,
    _home: Home,
}

impl Bridged {
    fn new() -> Self {
        let (home, model) = (Home::new("app"), Model::start());
        let config = "[actions]\nscripts-may-answer = true\n[notifications]\nafter-start = \"1ms\"\n";
        let pilot = Pilot::watching(vec![home.dir()], config, &[]);
        let user = pilot.user();
        for folder in ["project", ".config/opencode"] {
            fs::create_dir_all(user.join(folder)).unwrap();
        }
        fs::write(user.join("project/seed.txt"), "").unwrap();
        fs::write(user.join(".config/opencode/opencode.json"), opencode_settings(&model)).unwrap();
        let ran = pilot.run(&["bridge", "install", "--agent", "opencode", "--yes"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let program = PathBuf::from(std::env::var_os("PILOTLIGHT_TEST_OPENCODE").expect("PILOTLIGHT_TEST_OPENCODE"));
        let mut opencode = Command::new(program);
        opencode.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", user);
        opencode.env("LANG", "C.UTF-8").env("TERM", "xterm-256color").env("XDG_RUNTIME_DIR", user.join("run"));
        switch_off(&mut opencode);
        let terminal = Tmux::start(opencode.current_dir(user.join("project")), 150, 45);
        let bridged = Self { pilot, terminal, model, _home: home };
        bridged.wait_screen("Ask anything");
        bridged
    }

    fn dump(&self) -> String {
        format!("{}\n{}", self.terminal.screen(), self.pilot.log())
    }

    fn wait_screen(&self, words: &str) {
        let shown = || self.terminal.screen().contains(words).then_some(());
        wait_until(COPILOT, &format!("the terminal shows {words:?}"), || self.dump(), shown);
    }

    /// Gives a prompt.
    fn prompt(&self, script: &str) {
        let words = format!("SCRIPT:{script} Paint the fence");
        self.terminal.text(&words);
        self.wait_screen(&words);
        self.terminal.press(&["Enter"]);
    }

    /// Its row in the tray.
    fn row(&self) -> Option<Value> {
        self.pilot.rows_in_tray().into_iter().find(|row| row["agent"] == "opencode")
    }

    /// Waits until its row fits.
    fn row_where(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        wait_until(COPILOT, what, || format!("{:?}\n{}", self.row(), self.dump()), || self.row().filter(&fits))
    }

    /// Gives a prompt, and waits until the tray has what it asks. Returns the session's id, too.
    fn ask(&self, script: &str) -> (String, Value) {
        self.prompt(script);
        let row = self.row_where("the tray has the request", |row| row["request"].is_object());
        assert_eq!(row["status"], "needs-permission", "{row}");
        (row["id"].as_str().unwrap().to_owned(), row["request"].clone())
    }

    fn wait_idle(&self) {
        self.row_where("it is idle", |row| row["status"] == "idle");
    }

    /// Runs a command that must succeed.
    fn run_ok(&self, arguments: &[&str]) -> CommandOutput {
        let ran = self.pilot.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}\n{}", self.dump());
        ran
    }

    fn made(&self, file: &str) -> PathBuf {
        self.pilot.user().join("project").join(file)
    }

    fn wait_made(&self, file: &str) {
        wait_until(COPILOT, "its tool has run", || self.dump(), || self.made(file).exists().then_some(()));
    }

    /// The processes that wait as its hooks.
    fn hooks(&self) -> Vec<u32> {
        let is_hook = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            parent == Some(self.terminal.pid) && line.ends_with(b"\0hook\0opencode\0")
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_hook).collect()
    }

    fn wait_no_hook(&self) {
        let gone = || self.hooks().is_empty().then_some(());
        wait_until(COPILOT, "no hook waits", || self.dump(), gone);
    }
}

#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn case_782_a_click_approves_once_what_its_popup_or_menu_shows() {
    let bridged = Bridged::new();
    let popups = bridged.pilot.popups();
    let (id, request) = bridged.ask("script");
    assert_eq!((&request["text"], &request["kind"]), (&"sh ./script.sh".into(), &"shell".into()), "{request}");
    fs::write(bridged.made("script.sh"), "touch made\n").unwrap();
    bridged.wait_screen(DIALOG);
    assert_eq!(bridged.hooks().len(), 1);
    let popup = popups.wait_for(1);
    assert!(!bridged.made("made").exists());
    popups.click_after_reading(popup.number, "approve");
    bridged.wait_made("made");
    bridged.wait_screen("Done.");
    bridged.wait_idle();
    bridged.wait_no_hook();

    // Once is once, and what stands side by side is answered one by one.
    fs::remove_file(bridged.made("made")).unwrap();
    bridged.ask("script");
    bridged.pilot.click(&id, "Approve once");
    bridged.wait_made("made");
    bridged.wait_idle();
    bridged.ask("two");
    bridged.row_where("both are asked", |row| row["because"].as_str().unwrap_or_default().contains("2 requests"));
    let ran = bridged.run_ok(&["approve", "--yes", &id]);
    assert!(ran.out.contains("approved"), "{ran:?}");
    bridged.wait_made("one.txt");
    bridged.run_ok(&["approve", "--yes", &id]);
    bridged.wait_made("two.txt");
    bridged.wait_idle();

    let (_, request) = bridged.ask("write");
    assert_eq!((&request["kind"], request["paths"][0].as_str()), (&"write".into(), bridged.made("new.txt").to_str()));
    bridged.run_ok(&["approve", "--yes", &id]);
    bridged.wait_made("new.txt");
    bridged.wait_idle();
}

#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn case_782_a_denial_takes_a_note_to_the_agent_or_stops_the_turn() {
    let bridged = Bridged::new();
    let (id, _) = bridged.ask("script");
    let ran = bridged.run_ok(&["deny", "--yes", "--note", "Use a \"brush\", please.", &id]);
    assert!(ran.out.contains("denied 1 request with a note"), "{ran:?}");
    bridged.model.wait_heard(r#"Use a \"brush\", please."#);
    bridged.wait_screen("Done.");
    bridged.wait_idle();
    bridged.ask("two");
    bridged.pilot.click(&id, "Deny, and stop the turn");
    bridged.wait_idle();
    bridged.wait_no_hook();
    assert!(!bridged.made("one.txt").exists() && !bridged.made("two.txt").exists());
}

#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn case_783_a_question_is_answered_by_a_click_or_in_own_words() {
    let bridged = Bridged::new();
    let asked = || {
        bridged.row_where("the tray has the question", |row| {
            row["actions"].as_array().is_some_and(|actions| actions.contains(&"answer".into()))
        })
    };
    bridged.prompt("choose");
    let row = asked();
    assert_eq!(
        (&row["status"], &row["question"]["choices"]),
        (&"needs-input".into(), &json!(["Red", "Blue"])),
        "{row}"
    );
    let id = row["id"].as_str().unwrap().to_owned();
    bridged.pilot.click(&id, "Answer “Blue”");
    bridged.model.wait_heard(r#"\"Which colour?\"=\"Blue\""#);
    bridged.wait_idle();
    bridged.prompt("choose");
    let row = asked();
    let question = row["question"]["id"].as_str().unwrap().to_owned();
    bridged.run_ok(&["answer", &id, "--request", &question, "--text", "Green, rather"]);
    bridged.model.wait_heard(r#"\"Which colour?\"=\"Green, rather\""#);
    bridged.wait_idle();
    bridged.wait_no_hook();
}

#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn case_784_answered_in_the_terminal_first_the_popup_goes_and_a_late_answer_says_so() {
    let bridged = Bridged::new();
    let popups = bridged.pilot.popups();
    let (id, _) = bridged.ask("tool");
    let popup = popups.wait_for(1);
    bridged.wait_screen(DIALOG);
    bridged.terminal.press(&["Enter"]);
    popups.wait_for_closed(&[popup.number]);
    bridged.wait_no_hook();
    bridged.row_where("it works", |row| row["status"] == "working");
    let late = bridged.pilot.run(&["approve", "--yes", &id]);
    assert!(late.code != Some(0) && late.err.contains("answered in the terminal first"), "{late:?}");
    fs::write(bridged.made("go"), "").unwrap();
    bridged.wait_screen("Done.");
    bridged.wait_idle();
}

/// A tool takes the place of its own shell, so that opencode is its parent: it leads a session of processes of its own.
#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn case_788_a_tool_that_runs_the_hook_shows_and_approves_nothing() {
    let bridged = Bridged::new();
    let (id, _) = bridged.ask("become");
    let forged = json!({"v": 1, "kind": "permission", "session": id, "directory": "/elsewhere", "request": {"id": "per_1",
        "sessionID": id, "permission": "bash", "patterns": ["ls"], "metadata": {"command": "ls"}}});
    fs::write(bridged.made("forged"), format!("{forged}\n")).unwrap();
    let program = env!("CARGO_BIN_EXE_pilotlight");
    let in_place = format!("(cat forged; sleep 3; touch ended) >pipe &\nexec {program} hook opencode <pipe >in_place");
    let script = format!("#!/bin/sh\nmkfifo pipe\n{program} hook opencode <forged >below\n{in_place}\n");
    crate::support::executable::executable(&bridged.made("script.sh"), &script);
    bridged.run_ok(&["approve", "--yes", &id]);
    bridged.wait_made("ended");
    let asked = bridged.pilot.log().lines().filter(|line| line.contains("a hook asks")).count();
    let row = bridged.row().unwrap();
    assert!(asked == 1 && !row["request"].is_object(), "the tool's own request alone: {row}\n{}", bridged.dump());
    for printed in ["below", "in_place"] {
        assert_eq!(fs::read_to_string(bridged.made(printed)).unwrap(), "");
    }
}

/// Another program of its name reports the session, as a tool of any session can have one do.
#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn case_860_a_session_that_two_programs_report_is_left_to_its_terminal() {
    let bridged = Bridged::new();
    let (id, _) = bridged.ask("script");
    fs::write(bridged.made("script.sh"), "touch made\n").unwrap();
    bridged.wait_screen(DIALOG);
    let name = bridged.row().unwrap()["name"].clone();
    let program = bridged.pilot.user().join("opencode");
    crate::support::executable::copy_program("/bin/sh", &program);
    let report = format!(
        "{} report --agent opencode --session {id} --state blocked --title 'Another title'; read -r end",
        env!("CARGO_BIN_EXE_pilotlight")
    );
    let mut other = Command::new(program);
    other.args(["-c", &report]).env_clear().env("HOME", bridged.pilot.user());
    other.env("XDG_RUNTIME_DIR", bridged.pilot.user().join("run")).stdin(std::process::Stdio::piped());
    let mut other = other.spawn().unwrap();
    let is_contested = |row: &Value| row["because"].as_str().unwrap().contains("two programs say that this session");
    let row = bridged.row_where("the row says so", is_contested);
    assert!(row["name"] == name && !row["request"].is_object(), "{row}");
    bridged.wait_no_hook();
    bridged.wait_screen(DIALOG);
    drop(other.stdin.take());
    other.wait().unwrap();
    bridged.row_where("it is its own again", |row| !is_contested(row));
    bridged.terminal.press(&["Enter"]);
    bridged.wait_made("made");
    bridged.wait_screen("Done.");
}

#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn case_789_without_a_tray_the_hook_is_gone_at_once_and_a_killed_tray_leaves_the_dialog_usable() {
    let mut bridged = Bridged::new();
    bridged.ask("script");
    fs::write(bridged.made("script.sh"), "touch made\n").unwrap();
    assert_eq!(bridged.hooks().len(), 1);
    bridged.pilot.kill_tray();
    bridged.wait_no_hook();
    bridged.wait_screen(DIALOG);
    bridged.terminal.press(&["Enter"]);
    bridged.wait_made("made");
    bridged.wait_screen("Done.");
    fs::remove_file(bridged.made("made")).unwrap();
    bridged.prompt("script");
    bridged.wait_screen(DIALOG);
    bridged.wait_no_hook();
    bridged.terminal.press(&["Enter"]);
    bridged.wait_made("made");
}

/// The file comes after a yes, is not replaced if it is the user's own, and goes.
#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn case_785_the_plugin_comes_and_goes_and_its_sessions_are_said_to_be_covered() {
    let bridged = Bridged::new();
    let path = bridged.pilot.user().join(PLUGIN);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("// Pilotlight's bridge.") && text.contains(env!("CARGO_BIN_EXE_pilotlight")));
    bridged.ask("script");
    let status = bridged.run_ok(&["bridge", "status"]).out;
    assert!(
        status.contains("(opencode): on\n") && status.contains("covered; you can answer its permission requests"),
        "{status}"
    );
    bridged.run_ok(&["bridge", "remove", "--agent", "opencode", "--yes"]);
    assert!(!path.exists());
    bridged.wait_no_hook();
    bridged.wait_screen(DIALOG);
    fs::write(&path, "export const Mine = async () => ({})\n").unwrap();
    let refused = bridged.pilot.run(&["bridge", "install", "--agent", "opencode", "--yes"]);
    assert!(refused.code == Some(1) && refused.err.contains("is not Pilotlight's"), "{refused:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "export const Mine = async () => ({})\n");
}
