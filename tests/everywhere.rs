//! What the real program does on every system: its commands, on made-up sessions without a process. The other tests of
//! the program need Linux.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test should say where")]

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const ID: &str = "36535f61-5c7b-4f09-a70b-2f8aed970009";

/// A user with a Copilot home and settings of their own.
struct User {
    scratch: TempDir,
}

impl User {
    fn new() -> Self {
        let user = Self { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir_all(user.home().join("session-state")).unwrap();
        fs::write(user.settings(), "").unwrap();
        user
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    fn settings(&self) -> PathBuf {
        self.scratch.path().join("config.toml")
    }

    /// A session whose tool runs, and whose process is gone.
    fn crashed_session(&self) {
        let folder = self.home().join("session-state").join(ID);
        fs::create_dir_all(&folder).unwrap();
        let described = format!("id: {ID}\ncwd: /srv/deps\nclient_name: github/cli\nname: Bump the dependencies\n");
        fs::write(folder.join("workspace.yaml"), described).unwrap();
        let events = [
            ("user.message", 1000, r#"{"content":"go on"}"#),
            ("assistant.turn_start", 1000, r#"{"turnId":"0"}"#),
            ("assistant.message", 990, r#"{"content":"I will.","toolRequests":[{"toolCallId":"a"}]}"#),
            (
                "tool.execution_start",
                980,
                r#"{"toolCallId":"a","toolName":"bash","arguments":{"command":"cargo update"}}"#,
            ),
        ];
        let now = Timestamp::now();
        let lines = events.iter().enumerate().map(|(at, (kind, ago, data))| {
            let parent = if at == 0 { "null".to_owned() } else { format!("\"{}\"", at - 1) };
            let time = now - SignedDuration::from_secs(*ago);
            format!(r#"{{"type":"{kind}","data":{data},"id":"{at}","timestamp":"{time:.3}","parentId":{parent}}}"#)
                + "\n"
        });
        fs::write(folder.join("events.jsonl"), lines.collect::<String>()).unwrap();
        // Linux has no process with a number this high, and elsewhere it is unlikely.
        fs::write(folder.join("inuse.4194000.lock"), "4194000").unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
        command.arg("--home").arg(self.home()).args(args).stdin(Stdio::null());
        command.env("PILOTLIGHT_CONFIG", self.settings()).env("NO_COLOR", "1").env_remove("COPILOT_HOME");
        command
    }

    /// What a command prints, which must succeed.
    fn said(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        text(&output)
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_home_without_sessions_is_an_empty_list() {
    assert_eq!(User::new().said(&["status", "--json"]).trim(), "[]");
}

#[test]
fn a_crashed_session_is_listed_and_explained() {
    let user = User::new();
    user.crashed_session();
    let rows: Value = serde_json::from_str(&user.said(&["status", "--json"])).unwrap();
    assert_eq!((rows[0]["id"].as_str(), rows[0]["status"].as_str()), (Some(ID), Some("crashed")), "{rows}");
    let table = user.said(&["status"]);
    assert!(table.contains("Bump the dependencies"), "{table}");
    let explained = user.said(&["explain", &ID[..8]]);
    assert!(explained.contains("crashed"), "{explained}");
}

#[test]
fn watching_begins_with_the_sessions_that_are_there() {
    let user = User::new();
    user.crashed_session();
    let mut watch = user.command(&["watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
    watch.kill().unwrap();
    watch.wait().unwrap();
    let row: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(row["id"], ID, "{line}");
}

#[test]
fn a_recorded_log_is_replayed() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/01-normal-two-tools-live-idle");
    let log = trace.join("36535f61-5c7b-4f09-a70b-2f8aed97280f/events.jsonl");
    let said = User::new().said(&["replay", log.to_str().unwrap()]);
    assert!(said.contains("working") && said.contains("idle"), "{said}");
}

#[test]
fn settings_completions_and_manual_are_printed() {
    let user = User::new();
    assert!(user.said(&["--version"]).starts_with("pilotlight "));
    assert!(user.said(&["config", "--print"]).contains("[limits]"));
    assert!(user.said(&["completions", "powershell"]).contains("pilotlight"));
    assert!(user.said(&["man"]).contains("pilotlight"));
}

#[test]
fn what_is_not_there_is_refused() {
    let output = User::new().command(&["explain", "nothing"]).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert!(!output.stderr.is_empty(), "{output:?}");
}
