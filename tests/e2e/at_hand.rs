//! What is at hand for a session of a real agent: waiting for it, the one that asks, what it said last, when it wakes, what
//! works behind it, how full its context is, and homes that nobody named.

use super::hosts::pilot_over_host;
use super::stage::Stage;
use crate::support::claude::{Claude, ClaudeHome};
use crate::support::codex::CodexHome;
use crate::support::home::Home;
use crate::support::model::Model;
use crate::support::person::Manner;
use crate::support::pilotlight::Pilot;
use crate::support::terminal::{DIALOG, Terminal};
use crate::support::tmux::Tmux;
use crate::support::{COPILOT, SOON, wait_until};
use jiff::Timestamp;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// What a person's command would be: these are started by a test.
const CONFIG: &str = "[actions]\nscripts-may-answer = true\n";

/// A `wait --json` that runs.
struct Waiting(Child);

impl Waiting {
    fn start(mut command: Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Asserts that it ends well, and returns what it printed.
    fn end(mut self) -> Value {
        let ended = wait_until(COPILOT, "what is waited for is true", String::new, || self.0.try_wait().unwrap());
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(ended.code(), Some(0), "{said}");
        serde_json::from_str(&said).unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill(); // it may have ended
        let _ = self.0.wait();
    }
}

/// Starts the same `wait` with and without the tray.
fn both(pilot: &Pilot, args: &[&str]) -> [Waiting; 2] {
    let args = [&["wait", "--json"], args].concat();
    [pilot.command_with_tray(&args), pilot.command(&args)].map(Waiting::start)
}

/// Asserts that both end with this status of the session.
fn end(waiting: [Waiting; 2], id: &str, status: &str) {
    for row in waiting.map(Waiting::end) {
        assert_eq!((&row["id"], &row["status"]), (&id.into(), &status.into()), "{row}");
    }
}

fn message(pilot: &Pilot, id: &str) -> Value {
    let ran = pilot.run(&["status", "--json", "--messages"]);
    let rows: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap()["last_message"].clone()
}

/// When it wakes, in minutes from now.
fn wakes_in(row: &Value) -> i64 {
    let at: Timestamp = row["wakes_at"].as_str().unwrap_or_else(|| panic!("{row}")).parse().unwrap();
    at.duration_since(Timestamp::now()).as_secs() / 60
}

/// Has a sub-agent of a new session ask, which ends a wait for any session, and returns the row.
fn asks_by_sub_agent(pilot: &Pilot, claude: &Claude) -> Value {
    let id = claude.id();
    pilot.wait_status(&id, "idle", "no prompt yet");
    let waiting = both(pilot, &[]);
    claude.enter("SCRIPT:agent Paint the fence");
    end(waiting, &id, "needs-permission");
    let row = pilot.wait_status(&id, "needs-permission", "asks for permission: Bash; by its sub-agent: paint");
    let sub_agent = &row["background"]["list"][0];
    assert_eq!(sub_agent["name"], "paint", "{row}");
    assert!(sub_agent["does"].as_str().unwrap().starts_with("Bash: touch made"), "{row}");
    pilot.wait_menu(&id, "Sub-agent, since ");
    row
}

/// Claude Code: its sub-agent asks, which ends a wait; what it said last; and a schedule that its model arms.
#[test]
fn case_833_claude_code_at_hand() {
    let home = ClaudeHome::new();
    let pilot = Pilot::of_folders(vec![home.dir()]);
    let claude = home.start(&[]);
    let id = claude.id();
    let row = asks_by_sub_agent(&pilot, &claude);
    assert_eq!(row["host"], Value::Null);
    let page = pilot.run(&["explain"]).out;
    assert!(page.contains(&id) && page.contains("sub-agent       paint: Bash: touch made"), "{page}");
    assert!(page.contains("context         110 tokens; its limit is not known"), "{page}");

    let waiting = both(&pilot, &[&id, "--until", "idle"]);
    claude.accept("Do you want to");
    std::fs::write(home.project().join("go"), "").unwrap();
    end(waiting, &id, "idle");
    pilot.wait_menu(&id, "“It is done.”");
    assert_eq!(message(&pilot, &id), "It is done.");
    assert!(!pilot.log().contains("It is done."));

    claude.enter("SCRIPT:cron Paint it again");
    let row = pilot.wait_status(&id, "idle", "wakes at ");
    assert!((0..=5).contains(&wakes_in(&row)), "{row}");
    // It stays known to what watches while its user goes on.
    claude.enter("SCRIPT:plain Paint the door");
    pilot.wait_status_in_tray(&id, "idle", "wakes at ");
}

/// Copilot: its session that asks is the one that is meant, and what it said last is shown in the table's details.
#[test]
fn case_834_copilot_at_hand() {
    let stage = Stage::with_config(Manner::Waits, CONFIG);
    let (pilot, id) = (&stage.pilot, stage.session.id());
    stage.wait_status("idle", "no prompt yet");
    let asked = both(pilot, &["--until", "needs-permission"]);
    stage.session.send("SCRIPT:subtool Paint the fence");
    end(asked, &id, "needs-permission");
    let row = stage.wait_status("needs-permission", "by its sub-agent: paint it");
    assert_eq!(row["request"]["by"], "paint it", "{row}");
    let idle = both(pilot, &["--until", "idle", &id]);
    let approve = Tmux::with_exit_code(&pilot.command_with_tray(&["approve"]), 120, 30);
    approve.shows(", by its sub-agent paint it:");
    approve.shows("[y/N]");
    approve.text("y");
    approve.press(&["Enter"]);
    approve.shows("exited with 0");
    stage.session.folder.wait("permission.completed");
    stage.home.release_tools();
    end(idle, &id, "idle");
    let row = stage.wait_status("idle", "done");
    assert_eq!(row["context"]["used"], 100, "{row}");
    assert_eq!(message(pilot, &id), "Done.");
    pilot.wait_menu(&id, "“Done.”");
    let live = Tmux::start(&pilot.command_with_tray(&["live"]), 140, 45);
    live.shows("done, your turn");
    live.press(&["Enter"]);
    live.shows("last message    Done.");
    live.shows("context         100 of ");
}

/// In its terminal: a prompt is scheduled, the one that needs its user is next, and the last message of a session is told
/// by no host.
#[test]
#[ignore = "tests/long.sh"]
fn case_835_copilot_in_its_terminal_at_hand() {
    let (home, model) = (Home::new("project"), Model::start());
    let pilot = Pilot::start(&[&home]);
    let terminal = Terminal::start(&home, &model, &["--experimental"]);
    let id = terminal.folder.id();
    terminal.enter("SCRIPT:plain Paint the fence");
    terminal.folder.wait("assistant.turn_end");
    terminal.enter("/every 20m SCRIPT:plain Look at it");
    let row = pilot.wait_status(&id, "idle", "wakes at ");
    assert_eq!(wakes_in(&row), 19, "{row}");
    pilot.wait_menu(&id, "wakes at ");

    let waiting = both(&pilot, &[]);
    terminal.enter("SCRIPT:subtool Paint the gate");
    terminal.wait_screen(DIALOG);
    end(waiting, &id, "needs-permission");
    pilot.wait_status(&id, "needs-permission", "by its sub-agent: paint it");
    let next = Tmux::with_exit_code(&pilot.command_with_tray(&["next"]), 120, 60);
    next.shows("sub-agent       paint it");
    terminal.press(&["Enter"]);
    home.release_tools();
    // Armed before the last prompt: what watches knows of it still.
    pilot.wait_status_in_tray(&id, "idle", "wakes at ");
    let waiting = both(&pilot, &["--until", "ended", &id]);
    terminal.exit();
    end(waiting, &id, "ended");
}

/// Claude Code on another machine: all of it is at hand here, but what the session said stays there.
#[test]
#[ignore = "tests/long.sh"]
fn case_841_claude_code_at_hand_on_another_machine() {
    let home = ClaudeHome::new();
    let (pilot, _folders) = pilot_over_host("CLAUDE_CONFIG_DIR", &home.dir());
    let claude = home.start(&[]);
    let id = claude.id();
    let row = asks_by_sub_agent(&pilot, &claude);
    assert_eq!(row["host"], "devbox");
    let page = pilot.run(&["explain"]).out;
    assert!(page.contains("sub-agent       paint: Bash: touch made"), "{page}");
    assert!(page.contains("context         110 tokens; its limit is not known"), "{page}");

    let waiting = both(&pilot, &[&id, "--until", "idle"]);
    claude.accept("Do you want to");
    std::fs::write(home.project().join("go"), "").unwrap();
    end(waiting, &id, "idle");
    assert_eq!(message(&pilot, &id), Value::Null);
    assert!(!pilot.run(&["explain", &id]).out.contains("It is done."));

    claude.enter("SCRIPT:cron Paint it again");
    let row = pilot.wait_status(&id, "idle", "wakes at ");
    assert!((0..=5).contains(&wakes_in(&row)), "{row}");
}

#[test]
#[ignore = "tests/long.sh"]
fn case_836_codex_at_hand() {
    let home = CodexHome::new(true);
    let pilot = Pilot::watching(vec![home.dir()], CONFIG, &[]);
    let terminal = home.terminal(&[]);
    let waiting = both(&pilot, &[]);
    terminal.enter("SCRIPT:agent Delegate it");
    let id = home.id();
    end(waiting, &id, "needs-permission");
    let row = pilot.wait_status(&id, "needs-permission", "by its sub-agent: ");
    let name = row["background"]["list"][0]["name"].as_str().unwrap();
    assert!(!name.is_empty() && !name.contains('-'), "it has a name, not only an id: {row}");
    assert_eq!(row["request"]["by"], name, "{row}");
    let idle = both(&pilot, &["--until", "idle", &id]);
    let approve = Tmux::with_exit_code(&pilot.command_with_tray(&["approve"]), 120, 30);
    approve.shows("[y/N]");
    approve.text("y");
    approve.press(&["Enter"]);
    approve.shows("exited with 0");
    end(idle, &id, "idle");
    assert_eq!(message(&pilot, &id), "All done.");
    pilot.wait_menu(&id, "“All done.”");
    let row = pilot.row(&id).unwrap();
    assert!(row["context"]["used"] == 110 && row["context"]["window"].as_i64() > Some(100_000), "{row}");
}

/// A loop that paces itself wakes, and says what it said then.
#[test]
#[ignore = "tests/long.sh"]
fn case_837_claude_code_wakes_by_itself() {
    let home = ClaudeHome::new();
    let pilot = Pilot::of_folders(vec![home.dir()]);
    let claude = home.start(&[]);
    let id = claude.id();
    claude.enter("SCRIPT:wakeup Paint the fence");
    let row = pilot.wait_status(&id, "idle", "wakes at ");
    assert!((0..=2).contains(&wakes_in(&row)), "{row}");
    let woken = || pilot.row(&id).filter(|row| row["wakes_at"] == Value::Null && row["status"] == "idle");
    wait_until(Duration::from_secs(240), "it wakes, and is idle again", || claude.screen(), woken);
    claude.wait_log("scheduled_task_fire");
}

/// The homes of all three agents are found by their own variables, and kept when their processes are gone.
#[test]
#[ignore = "tests/long.sh"]
fn case_838_homes_that_real_agents_name_are_followed() {
    let stranger = Stranger::new();
    let (mut claude_home, codex_home) = (ClaudeHome::new(), CodexHome::new(false));
    let folder = claude_home.dir();
    claude_home.set("CLAUDE_CONFIG_DIR", &folder);
    let (copilot_home, model) = (Home::new("project"), Model::start());
    let watch = stranger.watch();
    let claude = claude_home.start(&[]);
    let (id, pid) = (claude.id(), claude.pid());
    claude.enter("SCRIPT:plain Paint the fence");
    claude.wait_screen("It is done.");
    let codex = codex_home.terminal(&[]);
    codex.enter("SCRIPT:plain Paint the gate");
    codex.shows("All done.");
    let copilot = Terminal::start(&copilot_home, &model, &[]);
    copilot.enter("SCRIPT:plain Paint the door");
    copilot.folder.wait("assistant.turn_end");
    let ids = [id, codex_home.id(), copilot.folder.id()];
    for args in [&[][..], &["--messages"]] {
        let all = || {
            let rows = stranger.rows(args);
            let idle = |id: &String| rows.iter().any(|row| row["id"] == **id && row["status"] == "idle");
            ids.iter().all(idle).then_some(())
        };
        wait_until(SOON, "all three are shown", || format!("{:?}", stranger.rows(args)), all);
    }
    let doctor = stranger.run(&["doctor"]);
    let named = |home: &Path, by: &str| {
        let home = home.canonicalize().unwrap().display().to_string();
        doctor.lines().any(|line| line.contains(&home) && line.contains("discovered ") && line.contains(by))
    };
    assert!(named(&claude_home.dir(), &format!("by process {pid} of Claude Code")), "{doctor}");
    assert!(named(&codex_home.dir(), "of Codex") && named(&copilot_home.dir(), "of Copilot"), "{doctor}");
    drop((claude, copilot));
    let ended = || stranger.rows(&["--all"]).iter().filter(|row| ids.iter().any(|id| row["id"] == **id)).count() == 3;
    wait_until(SOON, "they stay known", || format!("{:?}", stranger.rows(&["--all"])), || ended().then_some(()));
    drop(watch);
}

/// A user who named no home.
struct Stranger {
    scratch: TempDir,
    path: PathBuf,
}

impl Stranger {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("bin");
        std::fs::create_dir(&path).unwrap();
        for (name, variable) in [("claude", "PILOTLIGHT_TEST_CLAUDE"), ("codex", "PILOTLIGHT_TEST_CODEX")] {
            std::os::unix::fs::symlink(std::env::var_os(variable).expect(variable), path.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(crate::support::home::cli(), path.join("copilot")).unwrap();
        Self { scratch, path }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
        command.env_clear().env("PATH", &self.path).env("HOME", self.scratch.path()).env("LANG", "C.UTF-8").args(args);
        command
    }

    fn run(&self, args: &[&str]) -> String {
        String::from_utf8(self.command(args).stdin(Stdio::null()).output().unwrap().stdout).unwrap()
    }

    fn rows(&self, args: &[&str]) -> Vec<Value> {
        serde_json::from_str(&self.run(&[&["status", "--json"], args].concat())).unwrap()
    }

    /// A `watch`, which remembers the homes that it finds.
    fn watch(&self) -> Waiting {
        let mut command = self.command(&["watch", "--json"]);
        Waiting(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
    }
}
