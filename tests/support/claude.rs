//! The real Claude Code in a terminal, in a home of its own, with a model that is a script: the part of the Messages API
//! that it uses. `SCRIPT:<name>` in a prompt names the script.
//!
//! `PILOTLIGHT_TEST_CLAUDE` names the program, which `tests/all.sh` installs.

pub(crate) mod headless;

use super::process::{parent, signal};
use super::tmux::Tmux;
use super::{COPILOT, block_on, spawn, wait, wait_until};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// How long a key may take to show an effect, before it counts as lost.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
const KEY: &str = "sk-made-up-0123456789abcdefghij";

/// A home, a folder to work in, and a model. The model stops when this value is dropped.
pub(crate) struct ClaudeHome {
    scratch: TempDir,
    address: SocketAddr,
    task: JoinHandle<()>,
    /// Variables of the program besides the usual ones.
    more: Vec<(&'static str, String)>,
}

/// Claude Code in a terminal, which hangs up when this value is dropped.
pub(crate) struct Claude {
    tmux: Tmux,
    home: PathBuf,
}

impl ClaudeHome {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::Builder::new().prefix("pilotlight-claude-").tempdir().unwrap();
        let project = scratch.path().join("project");
        let settings = json!({"permissions": {"defaultMode": "default"}});
        let approved = [&KEY[KEY.len() - 20..]];
        let user = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "numStartups": 5, "hasSeenAutoDefaultNudge": true,
            "hasSeenAutoDefaultNotice": true, "customApiKeyResponses": {"approved": approved, "rejected": []},
            "projects": {project.to_str().unwrap(): {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
        });
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(scratch.path().join(".claude/projects")).unwrap();
        std::fs::write(scratch.path().join(".claude/settings.json"), settings.to_string()).unwrap();
        // Where a variable names the home, it is read from there.
        for folder in [scratch.path(), &scratch.path().join(".claude")] {
            std::fs::write(folder.join(".claude.json"), user.to_string()).unwrap();
        }
        let listener = block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/v1/messages", post(messages)).with_state(project.join("compact"));
        // What was asked once is a part of each later request.
        let router = router.layer(axum::extract::DefaultBodyLimit::disable());
        let task = spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { scratch, address, task, more: Vec::new() }
    }

    /// The home.
    pub(crate) fn dir(&self) -> PathBuf {
        self.scratch.path().join(".claude")
    }

    /// Gives the program one more variable.
    pub(crate) fn set(&mut self, name: &'static str, value: &Path) {
        self.more.push((name, value.to_str().unwrap().into()));
    }

    /// The home of its user.
    pub(crate) fn user(&self) -> &Path {
        self.scratch.path()
    }

    /// The folder that its sessions work in.
    pub(crate) fn project(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    /// The environment of the program.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let usual = vec![
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME", self.scratch.path().to_str().unwrap().into()),
            ("TERM", "xterm-256color".into()),
            ("LANG", "C.UTF-8".into()),
            ("SHELL", "/bin/bash".into()),
            ("ANTHROPIC_BASE_URL", format!("http://{}", self.address)),
            ("ANTHROPIC_API_KEY", KEY.into()),
            ("CLAUDE_CODE_WORKFLOWS", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_ERROR_REPORTING", "1".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ];
        [usual, self.more.clone()].concat()
    }

    /// The program, with these arguments, in the project.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.project()).env_clear().envs(self.environment());
        command
    }

    /// Starts the program in a terminal with these arguments, and waits until it accepts a prompt.
    pub(crate) fn start(&self, arguments: &[&str]) -> Claude {
        self.started(Tmux::start(&self.command(arguments), 140, 45))
    }

    /// The same in a second window of tmux, where the program finds tmux in its environment, as in a user's.
    pub(crate) fn start_in_second_window(&self) -> Claude {
        let mut sleep = Command::new("sleep");
        sleep.arg("600").current_dir(self.project()).envs(self.environment());
        let mut tmux = Tmux::start(&sleep, 140, 45);
        let mut command = Command::new("env");
        command.args(self.environment().iter().map(|(name, value)| format!("{name}={value}"))).arg(program());
        command.current_dir(self.project());
        tmux.pid = tmux.new_window(&command);
        self.started(tmux)
    }

    /// The home of another profile of its user, whose logs are those of the home.
    pub(crate) fn profile(&self, name: &str) -> PathBuf {
        let profile = self.scratch.path().join(name);
        std::fs::create_dir(&profile).unwrap();
        for file in ["settings.json", ".claude.json"] {
            std::fs::copy(self.dir().join(file), profile.join(file)).unwrap();
        }
        std::os::unix::fs::symlink(self.dir().join("projects"), profile.join("projects")).unwrap();
        profile
    }

    /// Starts the program in a terminal with the home of this profile, and waits until it accepts a prompt.
    pub(crate) fn start_in(&self, profile: &Path, arguments: &[&str]) -> Claude {
        let mut command = self.command(arguments);
        command.env("CLAUDE_CONFIG_DIR", profile);
        Self::started_in(Tmux::start(&command, 140, 45), profile.to_owned())
    }

    fn started(&self, tmux: Tmux) -> Claude {
        Self::started_in(tmux, self.dir())
    }

    fn started_in(tmux: Tmux, home: PathBuf) -> Claude {
        let accepts = || tmux.screen().lines().any(|line| line.trim_start().starts_with('❯')).then_some(());
        wait_until(COPILOT, "the terminal accepts a prompt", || tmux.screen(), accepts);
        let claude = Claude { tmux, home };
        wait_until(
            COPILOT,
            "its process says what it does",
            || claude.screen(),
            || claude.said()?["status"].as_str().map(drop),
        );
        claude
    }
}

impl Drop for ClaudeHome {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Claude {
    /// What its process says of itself.
    fn said(&self) -> Option<Value> {
        let text = std::fs::read(self.file()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The file in which its process says what it does.
    pub(crate) fn file(&self) -> PathBuf {
        self.home.join(format!("sessions/{}.json", self.pid()))
    }

    /// The session that it shows.
    pub(crate) fn id(&self) -> String {
        self.said().unwrap()["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.tmux.pid
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux.screen()
    }

    pub(crate) fn tmux(&self) -> &Tmux {
        &self.tmux
    }

    /// Enters a prompt.
    pub(crate) fn enter(&self, line: &str) {
        self.tmux.paste(line);
        let shows = || self.screen().rsplit_once('❯').filter(|(_, input)| input.contains(line)).map(drop);
        wait_until(COPILOT, &format!("its input shows {line:?}"), || self.screen(), shows);
        self.tmux.press(&["Enter"]);
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux.press(keys);
    }

    /// Accepts the dialog that shows this text. Keys are lost that come right after it appears.
    pub(crate) fn accept(&self, text: &str) {
        self.wait_screen(text);
        let gone = || (!self.screen().contains(text)).then_some(());
        let accepted = || {
            self.press(&["Enter"]);
            wait(TAKEN_WITHIN, gone)
        };
        wait_until(COPILOT, &format!("{text:?} is accepted"), || self.screen(), accepted);
    }

    pub(crate) fn wait_screen(&self, text: &str) {
        let shows = || self.screen().contains(text).then_some(());
        wait_until(COPILOT, &format!("the terminal shows {text:?}"), || self.screen(), shows);
    }

    /// The processes of Pilotlight that it started as its hook, and that still run.
    pub(crate) fn hooks(&self) -> Vec<u32> {
        let is_hook = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            parent(*pid) == Some(self.pid()) && line.ends_with(b"\0hook\0claude-code\0")
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_hook).collect()
    }

    /// The lines of its session's log, and of those of its sub-agents.
    pub(crate) fn log(&self) -> String {
        let mut folders = vec![self.home.join("projects")];
        let mut text = String::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                    text += &std::fs::read_to_string(path).unwrap_or_default();
                }
            }
        }
        text
    }

    /// Waits until its log contains this.
    pub(crate) fn wait_log(&self, text: &str) {
        wait_until(
            COPILOT,
            &format!("the log has {text:?}"),
            || self.screen(),
            || self.log().contains(text).then_some(()),
        );
    }

    pub(crate) fn signal(&self, with: Signal) {
        signal(self.pid(), with);
    }
}

/// The program.
pub(crate) fn program() -> PathBuf {
    let named = std::env::var_os("PILOTLIGHT_TEST_CLAUDE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let program = named.expect("PILOTLIGHT_TEST_CLAUDE names Claude Code; tests/all.sh installs it and sets that");
    assert!(Path::is_file(&program), "PILOTLIGHT_TEST_CLAUDE names {}, which does not exist", program.display());
    program
}

/// Answers one request. A compaction goes on until the file `compact` is in the project.
async fn messages(State(compact): State<PathBuf>, Json(request): Json<Value>) -> Response {
    let tools = request["tools"].as_array().map_or(&[][..], |tools| tools);
    let (name, round) = place(&request);
    let bash = |command: &str, more: Value| {
        let mut input = json!({"command": command, "description": "paint"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("Bash", input)
    };
    let answer = match (&*name, round) {
        _ if wants_summary(&request) => {
            while !compact.exists() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            (Some("<summary>All was said.</summary>"), None)
        }
        _ if tools.is_empty() => (Some("{\"title\": \"Scripted title\"}"), None),
        ("tool", 0) => (Some("I paint."), Some(bash("touch made; while [ ! -e go ]; do sleep 0.1; done", json!({})))),
        ("denied", 0..=2) => (None, Some(bash("touch made", json!({})))),
        ("shell", 0) => {
            (Some("I paint."), Some(bash("while [ ! -e go ]; do sleep 0.1; done", json!({"run_in_background": true}))))
        }
        ("ask", 0) => {
            let options = json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]);
            let question =
                json!({"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": options});
            (None, Some(("AskUserQuestion", json!({"questions": [question]}))))
        }
        ("touch", 0) => (Some("I paint."), Some(bash("touch made", json!({})))),
        ("twice", 0) => (Some("I paint."), Some(bash("touch made", json!({})))),
        ("twice", 1) => (Some("And again."), Some(bash("touch again", json!({})))),
        ("large", 0) => {
            let input = json!({"file_path": compact.with_file_name("large"), "content": "paint it!\n".repeat(1 << 20)});
            (Some("I write it."), Some(("Write", input)))
        }
        ("forge", 0) => (Some("I paint."), Some(bash("sh ./forge", json!({})))),
        ("become", 0) => (Some("I paint."), Some(bash("exec sh ./forge", json!({})))),
        ("run", 0) => (Some("I run it."), Some(bash("npm run paint", json!({})))),
        ("sizes", 0) => {
            let options = |labels: &[&str]| {
                let option = |label: &&str| json!({"label": label, "description": "as it says"});
                labels.iter().map(option).collect::<Vec<_>>()
            };
            let question = |text: &str, header: &str, several: bool, labels: &[&str]| json!({"question": text, "header": header, "multiSelect": several, "options": options(labels)});
            let questions = [
                question("Which colour?", "Colour", false, &["Red", "Blue"]),
                question("Which sizes?", "Sizes", true, &["S", "M", "L"]),
            ];
            (None, Some(("AskUserQuestion", json!({"questions": questions}))))
        }
        // In plan mode, a plan is written to the file that the instructions name, and then shown.
        ("draft", 0) => {
            let plan = json!({"file_path": plan_file(&request), "content": "1. Paint it.\n"});
            (Some("I plan."), Some(("Write", plan)))
        }
        ("draft", 1) => (Some("A plan."), Some(("ExitPlanMode", json!({"plan": "1. Paint it."})))),
        ("plan", 0) => (Some("A plan."), Some(("ExitPlanMode", json!({"plan": "1. Paint it."})))),
        ("agent", 0) => {
            let input =
                json!({"description": "paint", "prompt": "Please do SCRIPT:tool", "subagent_type": "general-purpose"});
            (Some("A sub-agent paints."), Some(("Agent", input)))
        }
        ("workflow", 0) => {
            let script = "export const meta = { name: 'paint', description: 'paint' }\n\
                return await agent('Please do SCRIPT:tool')\n";
            (Some("A workflow paints."), Some(("Workflow", json!({"script": script}))))
        }
        ("question", 0) => (Some("There are two ways. Which one do you want?"), None),
        ("cron", 0) => {
            let job = json!({"cron": "*/5 * * * *", "prompt": "Please do SCRIPT:plain", "recurring": true});
            (Some("I schedule it."), Some(("CronCreate", job)))
        }
        ("wakeup", 0) => {
            let wakeup = json!({"delaySeconds": 60, "reason": "the paint dries", "prompt": "Please do SCRIPT:plain"});
            (Some("I wait."), Some(("ScheduleWakeup", wakeup)))
        }
        ("refused", _) => return failure(StatusCode::BAD_REQUEST, "invalid_request_error"),
        ("broken", _) => return failure(StatusCode::INTERNAL_SERVER_ERROR, "api_error"),
        ("silence", 0) => std::future::pending().await,
        _ => (Some("It is done."), None),
    };
    let said = request["messages"].as_array().map_or(0, Vec::len);
    let blocks = blocks(&name, said, answer);
    let stop = if blocks.iter().any(|block| block["type"] == "tool_use") { "tool_use" } else { "end_turn" };
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    // The program takes what has the same id for one message.
    let id = format!("msg_{said}");
    let message = |content: &[Value], stop: Value| {
        json!({"id": id, "type": "message", "role": "assistant", "model": request["model"], "stop_sequence": null,
            "content": content, "stop_reason": stop, "usage": usage})
    };
    if request["stream"] != true {
        return Json(message(&blocks, stop.into())).into_response();
    }
    let mut text = String::new();
    let mut event = |kind: &str, mut more: Value| {
        more["type"] = kind.into();
        write!(text, "event: {kind}\ndata: {more}\n\n").unwrap();
    };
    event("message_start", json!({"message": message(&[], Value::Null)}));
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = match block["type"].as_str() {
            Some("text") => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": block["text"]})),
            _ => (
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
            ),
        };
        event("content_block_start", json!({"index": index, "content_block": start}));
        event("content_block_delta", json!({"index": index, "delta": delta}));
        event("content_block_stop", json!({"index": index}));
    }
    event(
        "message_delta",
        json!({"delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 10}}),
    );
    event("message_stop", json!({}));
    ([("content-type", "text/event-stream")], text).into_response()
}

/// The file that the instructions of plan mode name.
fn plan_file(request: &Value) -> String {
    let text = request.to_string();
    let (before, after) = text.split_once("/plans/").unwrap_or_default();
    let folder = before.rsplit(['"', ' ', '`', '\\']).next().unwrap_or_default();
    let is_part = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
    format!("{folder}/plans/{}.md", after.chars().take_while(is_part).collect::<String>())
}

fn failure(status: StatusCode, kind: &str) -> Response {
    let error = json!({"type": "error", "error": {"type": kind, "message": "scripted"}});
    (status, Json(error)).into_response()
}

/// Whether it is asked to summarise the conversation.
fn wants_summary(request: &Value) -> bool {
    let last = request["messages"].as_array().and_then(|messages| messages.last());
    last.is_some_and(|last| last["content"].to_string().contains("detailed summary"))
}

/// The parts of an answer. `said` is the number of messages before it: no two calls of a conversation have the same id.
fn blocks(name: &str, said: usize, (text, tool): (Option<&str>, Option<(&str, Value)>)) -> Vec<Value> {
    let text = text.map(|text| json!({"type": "text", "text": text}));
    let tool = tool.map(|(tool, input)| json!({"type": "tool_use", "id": format!("toolu_S{name}_{said}"), "name": tool, "input": input}));
    text.into_iter().chain(tool).collect()
}

/// The script that the last prompt names, and how many of its tools have a result.
fn place(request: &Value) -> (String, usize) {
    let messages = request["messages"].as_array().map_or(&[][..], |messages| messages);
    let parts = |message: &Value| match &message["content"] {
        Value::Array(parts) => parts.clone(),
        text => vec![json!({"type": "text", "text": text})],
    };
    let named = |message: &Value| {
        let texts = parts(message).into_iter().filter_map(|part| part["text"].as_str().map(str::to_owned));
        let word = |text: String| {
            let name: String = text.rsplit_once("SCRIPT:")?.1.chars().take_while(char::is_ascii_alphanumeric).collect();
            Some(name)
        };
        texts.filter_map(word).next_back()
    };
    let Some(at) = messages.iter().rposition(|message| message["role"] == "user" && named(message).is_some()) else {
        return (String::new(), 0);
    };
    let results = messages[at + 1..].iter().flat_map(parts).filter(|part| part["type"] == "tool_result");
    (named(&messages[at]).unwrap_or_default(), results.count())
}
