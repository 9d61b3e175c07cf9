//! Agents that are known by their hooks alone: the real opencode and Gemini CLI, with the recipes as docs/hooks.md prints
//! them, against a scripted model.

use crate::support::model::Model;
use crate::support::tmux::Tmux;
use crate::support::{COPILOT, SOON, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The first code block below this heading of the page.
fn recipe(heading: &str) -> String {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/hooks.md")).unwrap();
    let section = page.split_once(&format!("\n## {heading}\n")).unwrap().1.split("\n## ").next().unwrap();
    let block = section.split("```").nth(1).unwrap();
    block.split_once('\n').unwrap().1.to_owned()
}

/// A user with an agent in a terminal, and Pilotlight on the path.
struct Stage {
    scratch: TempDir,
    model: Model,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { scratch: tempfile::tempdir().unwrap(), model: Model::start() };
        for folder in ["bin", "run", "project", "home/.copilot/session-state"] {
            fs::create_dir_all(stage.at(folder)).unwrap();
        }
        fs::write(stage.at("project/seed.txt"), "").unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pilotlight"), stage.at("bin/pilotlight")).unwrap();
        stage
    }

    fn at(&self, path: &str) -> PathBuf {
        self.scratch.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    /// A program of this user, without the developer's environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap();
        command.env_clear().env("PATH", format!("{}:{path}", self.at("bin").display())).env("HOME", self.at("home"));
        command.env("LANG", "C.UTF-8").env("TERM", "xterm-256color").env("XDG_RUNTIME_DIR", self.at("run"));
        command.current_dir(self.at("project"));
        command
    }

    fn row(&self) -> Option<Value> {
        let mut status = self.command(&self.at("bin/pilotlight"));
        let ran = status.args(["status", "--json"]).output().unwrap();
        serde_json::from_slice::<Vec<Value>>(&ran.stdout).unwrap().into_iter().next()
    }

    /// Waits until the only session has this status.
    fn wait(&self, terminal: &Tmux, status: &str) -> Value {
        let shown = || self.row().filter(|row| row["status"] == status);
        wait_until(COPILOT, status, || format!("{:?}\n{}", self.row(), terminal.screen()), shown)
    }

    fn wait_gone(&self, terminal: &Tmux) {
        wait_until(
            SOON,
            "it is gone",
            || format!("{:?}\n{}", self.row(), terminal.screen()),
            || self.row().is_none().then_some(()),
        );
    }
}

fn shows(terminal: &Tmux, words: &str) {
    let shown = || terminal.screen().contains(words).then_some(());
    wait_until(COPILOT, &format!("the terminal shows {words:?}"), || terminal.screen(), shown);
}

fn prompt(terminal: &Tmux, words: &str) {
    terminal.text(words);
    shows(terminal, words);
    terminal.press(&["Enter"]);
}

/// The settings of an opencode that this model answers, and that asks before it changes anything.
pub(super) fn opencode_settings(model: &Model) -> String {
    let options = json!({"baseURL": model.url(), "apiKey": "made-up"});
    let models =
        json!({"fake-model": {"name": "Fake", "tool_call": true, "limit": {"context": 200_000, "output": 8000}}});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "Fake", "options": options, "models": models});
    let settings = json!({"model": "fake/fake-model", "small_model": "fake/fake-model", "autoupdate": false,
        "share": "disabled", "permission": {"bash": "ask", "edit": "ask"}, "provider": {"fake": provider}});
    settings.to_string()
}

/// Switches off what opencode fetches from elsewhere.
pub(super) fn switch_off(opencode: &mut Command) {
    for off in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        opencode.env(format!("OPENCODE_DISABLE_{off}"), "1");
    }
}

#[test]
#[ignore = "needs opencode: tests/long.sh"]
fn opencode_reports_what_it_does_by_the_plugin_of_the_page() {
    let program = PathBuf::from(std::env::var_os("PILOTLIGHT_TEST_OPENCODE").expect("PILOTLIGHT_TEST_OPENCODE"));
    let stage = Stage::new();
    stage.write("home/.config/opencode/opencode.json", &opencode_settings(&stage.model));
    stage.write("home/.config/opencode/plugins/pilotlight.js", &recipe("opencode"));
    let mut opencode = stage.command(&program);
    switch_off(&mut opencode);
    let terminal = Tmux::start(&opencode, 150, 45);
    shows(&terminal, "Ask anything");
    prompt(&terminal, "SCRIPT:tool Paint the fence");
    let asks = stage.wait(&terminal, "needs-input");
    assert_eq!((&asks["agent"], &asks["because"]), (&"opencode".into(), &"waits for you, says its hook".into()));
    assert_eq!(asks["owner"]["pid"], terminal.pid, "the agent itself, not what started the report");
    assert_eq!(asks["cwd"], stage.at("project").to_str().unwrap());
    terminal.press(&["Enter"]);
    stage.wait(&terminal, "working");
    stage.write("project/go", "");
    stage.wait(&terminal, "idle");
    // Esc in the middle of a turn, twice.
    prompt(&terminal, "SCRIPT:hang Paint it again");
    stage.wait(&terminal, "working");
    shows(&terminal, "interrupt");
    terminal.press(&["Escape"]);
    shows(&terminal, "again to interrupt");
    terminal.press(&["Escape"]);
    stage.wait(&terminal, "idle");
    terminal.press(&["C-c"]);
    stage.wait_gone(&terminal);
}

#[test]
#[ignore = "needs Gemini CLI: tests/long.sh"]
fn gemini_reports_what_it_does_by_the_hooks_of_the_page() {
    let program = PathBuf::from(std::env::var_os("PILOTLIGHT_TEST_GEMINI").expect("PILOTLIGHT_TEST_GEMINI"));
    let stage = Stage::new();
    let mut settings: Value = serde_json::from_str(&recipe("Gemini CLI")).unwrap();
    settings["general"] = json!({"disableAutoUpdate": true, "enableAutoUpdate": false});
    settings["privacy"] = json!({"usageStatisticsEnabled": false});
    settings["security"] = json!({"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}});
    settings["ide"] = json!({"hasSeenNudge": true});
    stage.write("home/.gemini/settings.json", &settings.to_string());
    let mut gemini = stage.command(&program);
    gemini.env("GEMINI_API_KEY", "made-up").env("GEMINI_CLI_NO_RELAUNCH", "true");
    gemini.env("GOOGLE_GEMINI_BASE_URL", stage.model.url().trim_end_matches("/v1"));
    let terminal = Tmux::start(&gemini, 150, 45);
    shows(&terminal, "Type your message");
    prompt(&terminal, "SCRIPT:tool Paint the fence");
    stage.wait(&terminal, "working");
    shows(&terminal, "Allow execution");
    let asks = stage.wait(&terminal, "needs-input");
    assert_eq!((&asks["agent"], &asks["owner"]["pid"]), (&"gemini".into(), &terminal.pid.into()));
    terminal.press(&["Enter"]);
    stage.write("project/go", "");
    stage.wait(&terminal, "idle");
    prompt(&terminal, "SCRIPT:hang Paint it again");
    stage.wait(&terminal, "working");
    shows(&terminal, "esc to cancel");
    terminal.press(&["Escape"]);
    stage.wait(&terminal, "idle");
    terminal.press(&["C-c"]);
    shows(&terminal, "Press Ctrl+C again");
    terminal.press(&["C-c"]);
    stage.wait_gone(&terminal);
}
