//! Sessions of Claude Code in a demo: the files of their processes, and their logs.

use super::guest::{Act, Guest, Hold, Part, Post};
use anyhow::ensure;
use pilotlight_agents::adapter::Adapter;
use pilotlight_agents::claude_code::ClaudeCode;
use pilotlight_core::time::Time;
use pilotlight_system::clock::Clock;
use pilotlight_system::process::birth_of;
use pilotlight_system::state_file;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The folders of a home: what its processes say of themselves, and logs.
const PROCESSES: &str = "sessions";
const LOGS: &str = "projects";

/// What this agent gives for a demo.
pub(crate) const PART: Part = Part {
    adapter: &ClaudeCode,
    home: "claude-code",
    make_home: |home, _| {
        fs::create_dir_all(home.join(PROCESSES))?;
        fs::create_dir_all(home.join(LOGS))
    },
    guest: |post| Box::new(Scripted { post, pid: 0, started: Time::default(), lines: 0, tools: 0 }),
    hold,
    ends_by_signals: true,
    resumes_with: Some("--resume"),
};

/// One of them.
struct Scripted {
    post: Post,
    /// The process that runs it.
    pid: u32,
    /// When that started.
    started: Time,
    /// How many lines its log has.
    lines: u64,
    /// How many tools were started. Only the last one can be open.
    tools: u64,
}

impl Guest for Scripted {
    fn is_taken(&self, now: Time) -> bool {
        self.post.is_run(now)
    }

    fn enter(&mut self, pid: u32, now: Time) -> anyhow::Result<()> {
        (self.pid, self.started) = (pid, now);
        sweep(&self.post);
        self.state(&json!({"status": "idle"}), now)
    }

    fn act(&mut self, act: Act, now: Time) -> anyhow::Result<()> {
        let said = |role: &str, content: Value| json!({"role": role, "content": content});
        let answer = |kind: &str, content: Value| {
            let message = json!({"role": "assistant", "model": "demo", "content": content, "stop_reason": kind});
            json!({"type": "assistant", "message": message})
        };
        let (state, line) = match act {
            Act::Enter => return Ok(()),
            Act::Prompt(text) => (
                json!({"status": "busy"}),
                json!({"type": "user", "message": said("user", text.into()), "origin": {"kind": "human"}}),
            ),
            Act::Runs(command) | Act::Asks(command) => {
                self.tools += 1;
                let tool =
                    json!([{"type": "tool_use", "id": self.tool(), "name": "Bash", "input": {"command": command}}]);
                let asks = json!({"status": "waiting", "waitingFor": "permission prompt"});
                let state = if matches!(act, Act::Asks(_)) { asks } else { json!({"status": "busy"}) };
                (state, answer("tool_use", tool))
            }
            Act::Done => {
                let result =
                    json!([{"type": "tool_result", "tool_use_id": self.tool(), "content": "", "is_error": false}]);
                (json!({"status": "busy"}), json!({"type": "user", "message": said("user", result)}))
            }
            Act::Says(text) => (json!({"status": "idle"}), answer("end_turn", json!([{"type": "text", "text": text}]))),
        };
        self.state(&state, now)?;
        if self.lines == 0 {
            // What its process says of its title goes with it.
            self.write(json!({"type": "ai-title", "aiTitle": self.post.title}), now)?;
        }
        Ok(self.write(line, now)?)
    }
}

impl Scripted {
    /// The id of the last tool.
    fn tool(&self) -> String {
        format!("tool-{}", self.tools)
    }

    /// Writes what its process says of itself.
    fn state(&self, state: &Value, now: Time) -> anyhow::Result<()> {
        say(&self.post, self.pid, self.started, state, now)
    }

    /// Adds a line to its log.
    fn write(&mut self, mut line: Value, now: Time) -> io::Result<()> {
        let log = self.post.home.log(&self.post.id);
        self.lines += 1;
        line["uuid"] = format!("{}-{}", self.post.id, self.lines).into();
        line["timestamp"] = now.to_string().into();
        line["sessionId"] = (*self.post.id).into();
        line["cwd"] = self.post.work.to_string_lossy().into();
        (line["version"], line["entrypoint"]) = (ClaudeCode.profile().tried.into(), "cli".into());
        Post::append(&log, &format!("{line}\n"))
    }
}

/// Runs a session in this process, which says so in its file. Of one that is played, the stage writes it.
fn hold(post: &Post, resumed: bool) -> anyhow::Result<Hold> {
    let (pid, now) = (std::process::id(), Clock::start().now().wall);
    if resumed {
        ensure!(!post.is_run(now), "another process runs this session");
        sweep(post);
        say(post, pid, now, &json!({"status": "idle"}), now)?;
    }
    let file = said_in(post, pid);
    Ok(Box::new(move || drop(fs::remove_file(file)))) // gone with the demo
}

/// Removes what processes of a session left that were killed, as a new one does.
fn sweep(post: &Post) {
    for file in fs::read_dir(post.home.folder().join(PROCESSES)).into_iter().flatten().flatten() {
        let said: Value = serde_json::from_str(&state_file::read(&file.path())).unwrap_or_default();
        if said["sessionId"] == *post.id {
            let _ = fs::remove_file(file.path()); // its process may just have removed it
        }
    }
}

/// Where a process says something of itself.
fn said_in(post: &Post, pid: u32) -> PathBuf {
    post.home.folder().join(PROCESSES).join(format!("{pid}.json"))
}

/// Writes what a process says of itself.
fn say(post: &Post, pid: u32, started: Time, state: &Value, now: Time) -> anyhow::Result<()> {
    let mut file = json!({
        "pid": pid, "sessionId": post.id, "cwd": post.work, "startedAt": started.0, "version": ClaudeCode.profile().tried,
        "kind": "interactive", "entrypoint": "cli", "name": post.title, "nameSource": "user",
        "updatedAt": now.0, "statusUpdatedAt": now.0,
    });
    if cfg!(target_os = "linux") {
        file["procStart"] = birth_of(pid).map(|birth| birth.to_string()).into();
    }
    for (key, value) in state.as_object().into_iter().flatten() {
        file[key] = value.clone();
    }
    state_file::replace_without_sync(&said_in(post, pid), file.to_string().as_bytes())
}
