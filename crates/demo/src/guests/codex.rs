//! Threads of Codex in a demo, each in a process of its own: their logs, and their locks.
//!
//! Each lock is held by the one process that has that thread loaded, so that nothing else ends with it.

#![allow(clippy::disallowed_methods, reason = "a scratch folder of its own")]

use super::guest::{Act, Guest, Hold, Part, Post};
use anyhow::Context;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use pilotlight_agents::adapter::Adapter;
use pilotlight_agents::codex::Codex;
use pilotlight_core::time::Time;
use pilotlight_system::plain_file::{self, Links};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folders of a home: threads, and who has them loaded.
const THREADS: &str = "sessions";
const LOCKS: &str = "thread-writer-locks";

/// What this agent gives for a demo.
pub(crate) const PART: Part = Part {
    adapter: &Codex,
    home: "codex",
    make_home: |home, now| {
        fs::create_dir_all(home.join(LOCKS))?;
        fs::create_dir_all(day(&home.join(THREADS), now))
    },
    guest: |post| Box::new(Scripted { post, lines: 0, turns: 0, calls: 0 }),
    hold,
    ends_by_signals: false,
    resumes_with: Some("resume"),
};

/// One of them.
struct Scripted {
    post: Post,
    /// How many lines its log has.
    lines: u64,
    turns: u64,
    /// How many tools were called. Only the last one can be open.
    calls: u64,
}

impl Guest for Scripted {
    fn is_taken(&self, now: Time) -> bool {
        self.post.is_run(now)
    }

    fn enter(&mut self, _pid: u32, _now: Time) -> anyhow::Result<()> {
        Ok(()) // the lock is all
    }

    fn act(&mut self, act: Act, now: Time) -> anyhow::Result<()> {
        let lines = match act {
            Act::Enter => return Ok(()),
            Act::Prompt(text) => self.prompt(text, now),
            Act::Runs(command) => vec![self.call(&json!({"cmd": command}))],
            Act::Asks(command) => {
                vec![self.call(&json!({"cmd": command, "sandbox_permissions": "require_escalated"}))]
            }
            Act::Done => {
                let output = "Wall time: 1.0000 seconds\nProcess exited with code 0\nOutput:\n";
                let call = self.call_id();
                let output = json!({"type": "function_call_output", "call_id": call, "output": output});
                vec![("response_item", output)]
            }
            Act::Says(text) => {
                let item = json!({"type": "AgentMessage", "content": [{"type": "Text", "text": text}]});
                let message =
                    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
                let over = json!({"type": "task_complete", "turn_id": self.turn(), "last_agent_message": text});
                vec![
                    ("event_msg", json!({"type": "item_completed", "item": item})),
                    ("response_item", message),
                    ("event_msg", over),
                ]
            }
        };
        Ok(self.write(lines, now)?)
    }
}

impl Scripted {
    fn prompt(&mut self, text: &str, now: Time) -> Vec<(&'static str, Value)> {
        let (id, cwd) = (&self.post.id, &self.post.work);
        let mut lines = Vec::new();
        if self.lines == 0 {
            let meta = json!({"session_id": id, "id": id, "timestamp": now, "cwd": cwd, "originator": "codex-tui",
                "cli_version": Codex.profile().tried, "source": "cli", "thread_source": "user"});
            lines.push(("session_meta", meta));
        }
        self.turns += 1;
        let message = json!({"type": "UserMessage", "content": [{"type": "text", "text": text}]});
        let context = json!({"turn_id": self.turn(), "cwd": cwd, "model": "demo", "approval_policy": "on-request",
            "approvals_reviewer": "user"});
        let title = json!({"type": "thread_name_updated", "thread_id": id, "thread_name": self.post.title});
        lines.extend([
            ("event_msg", json!({"type": "task_started", "turn_id": self.turn()})),
            ("turn_context", context),
            ("event_msg", json!({"type": "item_completed", "item": message})),
            ("event_msg", title),
        ]);
        lines
    }

    fn call(&mut self, arguments: &Value) -> (&'static str, Value) {
        self.calls += 1;
        let arguments = arguments.to_string();
        let call = self.call_id();
        (
            "response_item",
            json!({"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call}),
        )
    }

    /// The id of the last call.
    fn call_id(&self) -> String {
        format!("{}-call-{}", self.post.id, self.calls)
    }

    /// The id of the last turn.
    fn turn(&self) -> String {
        format!("{}-turn-{}", self.post.id, self.turns)
    }

    /// Adds lines to its log, each of which begins with its time.
    fn write(&mut self, lines: Vec<(&'static str, Value)>, now: Time) -> io::Result<()> {
        let name = format!("rollout-{}-{}.jsonl", now.to_string().replace(':', "-"), self.post.id);
        let Post { home, id, .. } = &self.post;
        let log = if home.has(id) { home.log(id) } else { day(home.root(), now).join(name) };
        let mut text = String::new();
        for (kind, payload) in lines {
            let ordinal = self.lines;
            self.lines += 1;
            text += &format!(r#"{{"timestamp":"{now}","ordinal":{ordinal},"type":"{kind}","payload":{payload}}}"#);
            text.push('\n');
        }
        Post::append(&log, &text)
    }
}

/// The folder for the logs of threads that were created then.
fn day(threads: &Path, now: Time) -> PathBuf {
    let date = Timestamp::from_millisecond(now.0).unwrap_or_default().to_zoned(TimeZone::UTC).date();
    threads.join(format!("{:04}/{:02}/{:02}", date.year(), date.month(), date.day()))
}

/// Has this process hold the lock of a thread. If it is killed, the lock is left behind.
fn hold(post: &Post, _resumed: bool) -> anyhow::Result<Hold> {
    let path = post.home.folder().join(LOCKS).join(format!("{}.lock", post.id));
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    let (file, _) = plain_file::open_with(&mut options, &path, Links::Refused)?;
    file.try_lock().context("another process runs this session")?;
    file.set_len(0)?;
    Ok(Box::new(move || {
        let _ = fs::remove_file(path); // gone with the demo
        drop(file);
    }))
}
