//! A story: a session's log line by line, its owner, and whatever else is known about it.
//!
//! Lines look like real ones: the envelope's fields in their usual order, ids, a chain of parents, timestamps, and in
//! `data` the fields seen in recordings. Times are offsets from the start, in seconds (`119`, `5.2`), on the awake
//! clock; [`Story::wall_jumps`] moves only the wall clock, like a machine that slept or a user who set the clock.
//!
//! `verdicts.rs` asserts what holds at an offset.

use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Owner;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_core::verdict::Liveness;
use serde_json::{Value, json};

/// 2026-11-20T18:00:00Z.
pub(crate) const START: Time = Time(1_795_197_600_000);
/// The process that owns a story's session.
pub(crate) const PID: u32 = 4711;

/// An offset from a story's start.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct At(pub(crate) Span);

impl From<i32> for At {
    fn from(seconds: i32) -> Self {
        Self(Span::seconds(seconds.into()))
    }
}

impl From<f64> for At {
    #[expect(clippy::cast_possible_truncation, reason = "offsets are small")]
    fn from(seconds: f64) -> Self {
        Self(Span((seconds * 1000.0).round() as i64))
    }
}

impl From<Span> for At {
    fn from(span: Span) -> Self {
        Self(span)
    }
}

/// What a reader sees arrive at once.
#[derive(Clone)]
pub(super) enum Written {
    Line(Vec<u8>),
    /// A part of a line that is still being written.
    Part,
}

/// A log, the session's owner, and whatever else is known about the session.
#[derive(Clone)]
pub(crate) struct Story {
    pub(super) written: Vec<(Span, Written)>,
    jumps: Vec<(Span, Span)>,
    parent: Option<String>,
    by: Option<String>,
    ids: u32,
    pub(crate) owner: Owner,
    pub(crate) liveness: Liveness,
    pub(crate) seen: Option<Time>,
    pub(crate) limits: Limits,
}

impl Story {
    /// A session just started in a terminal; its owner lives.
    pub(crate) fn new() -> Self {
        let context = json!({ "cwd": "/home/dev/project", "branch": "main" });
        Self::cut().event(
            0,
            "session.start",
            json!({ "selectedModel": "fake-model", "context": context, "alreadyInUse": false }),
        )
    }

    /// A session whose log was not read from its beginning.
    pub(crate) fn cut() -> Self {
        Self {
            written: Vec::new(),
            jumps: Vec::new(),
            parent: None,
            by: None,
            ids: 0,
            owner: Owner::Alive { pid: PID, started: Some(START - Span::minutes(1)) },
            liveness: Liveness::default(),
            seen: None,
            limits: Limits::default(),
        }
    }

    /// A session prompted at 0, whose first round started at once.
    pub(crate) fn prompted() -> Self {
        Self::new().prompt(0).round(0)
    }

    /// A session prompted at 0 that ran a tool `t1`; the last line is the tool's result, at `done`.
    pub(crate) fn after_a_tool(done: impl Into<At>) -> Self {
        Self::prompted().requests(0, &["bash"]).tool(0, "t1", "bash").done(done, "t1")
    }

    // What is known besides the log.

    pub(crate) fn owned(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// The owner is gone; the time of its exit is unknown.
    pub(crate) fn owner_gone(self) -> Self {
        self.owned(Owner::Gone { pid: PID, at: None })
    }

    /// Another process, started at an offset, owns the session.
    pub(crate) fn new_owner(self, started: impl Into<At>) -> Self {
        let started = Some(self.moment(started).wall);
        self.owned(Owner::Alive { pid: PID + 1, started })
    }

    pub(crate) fn with_liveness(mut self, liveness: Liveness) -> Self {
        self.liveness = liveness;
        self
    }

    pub(crate) fn server_says(mut self, has_active_work: bool) -> Self {
        self.liveness.has_active_work = Some(has_active_work);
        self
    }

    pub(crate) fn seen(mut self, at: impl Into<At>) -> Self {
        self.seen = Some(self.moment(at).wall);
        self
    }

    /// Sets the wall clock `by` ahead at `at`. The awake clock is unaffected.
    pub(crate) fn wall_jumps(mut self, at: impl Into<At>, by: Span) -> Self {
        self.jumps.push((at.into().0, by));
        self
    }

    /// Both clocks at an offset.
    pub(crate) fn moment(&self, at: impl Into<At>) -> Moment {
        let At(at) = at.into();
        let jumped = self.jumps.iter().filter(|(from, _)| *from <= at).map(|(_, by)| by.0).sum();
        Moment { wall: START + at + Span(jumped), awake: START + at }
    }

    // The log.

    /// Any event, with `data` unchanged.
    #[expect(clippy::needless_pass_by_value, reason = "tests write it as a literal")]
    pub(crate) fn event(mut self, at: impl Into<At>, kind: &str, data: Value) -> Self {
        let at = at.into();
        self.ids += 1;
        let id = format!("{:08x}-0000-4000-8000-{:012x}", self.ids, self.ids);
        let parent = self.parent.replace(id.clone());
        let agent = self.by.take().map(|agent| format!("\"agentId\":{},", json!(agent))).unwrap_or_default();
        let time = self.moment(at).wall;
        let (kind, parent) = (json!(kind), json!(parent));
        let line = format!(
            "{{\"type\":{kind},\"data\":{data},{agent}\"id\":\"{id}\",\"timestamp\":\"{time}\",\"parentId\":{parent}}}"
        );
        self.raw(at, line)
    }

    /// A line of any bytes.
    pub(crate) fn raw(mut self, at: impl Into<At>, line: impl Into<Vec<u8>>) -> Self {
        self.written.push((at.into().0, Written::Line(line.into())));
        self
    }

    /// A part of a line arrives.
    pub(crate) fn part(mut self, at: impl Into<At>) -> Self {
        self.written.push((at.into().0, Written::Part));
        self
    }

    /// The log as it ends up on disk: without the parts that were seen while lines were being written.
    pub(crate) fn without_parts(mut self) -> Self {
        self.written.retain(|(_, written)| matches!(written, Written::Line(_)));
        self
    }

    /// Attributes the next event to a sub-agent.
    pub(crate) fn by(mut self, agent: &str) -> Self {
        self.by = Some(agent.to_owned());
        self
    }

    /// Makes the next event the child of an earlier one, skipping the last `back` events.
    pub(crate) fn forked(self, back: u32) -> Self {
        let n = self.ids - back;
        self.child_of(n)
    }

    /// Makes the next event the child of the `n`th, which may be yet to come.
    pub(crate) fn child_of(mut self, n: u32) -> Self {
        self.parent = Some(format!("{n:08x}-0000-4000-8000-{n:012x}"));
        self
    }

    pub(crate) fn prompt(self, at: impl Into<At>) -> Self {
        self.event(at, "user.message", json!({ "content": "Paint the fence", "delivery": "idle", "turnId": "0" }))
    }

    /// A prompt sent during a turn, for that turn.
    pub(crate) fn steers(self, at: impl Into<At>) -> Self {
        self.event(at, "user.message", json!({ "content": "In green", "delivery": "steering" }))
    }

    /// A prompt that Copilot gives itself in autopilot.
    pub(crate) fn continues(self, at: impl Into<At>) -> Self {
        let data =
            json!({ "content": "", "delivery": "idle", "isAutopilotContinuation": true, "agentMode": "autopilot" });
        self.event(at, "user.message", data)
    }

    pub(crate) fn mode(self, at: impl Into<At>, mode: &str) -> Self {
        self.event(at, "session.mode_changed", json!({ "previousMode": "interactive", "newMode": mode }))
    }

    pub(crate) fn round(self, at: impl Into<At>) -> Self {
        self.event(at, "assistant.turn_start", json!({ "turnId": "0" }))
    }

    pub(crate) fn round_end(self, at: impl Into<At>) -> Self {
        self.event(at, "assistant.turn_end", json!({ "turnId": "0" }))
    }

    /// A message that requests tools.
    pub(crate) fn requests(self, at: impl Into<At>, tools: &[&str]) -> Self {
        let requests: Vec<_> =
            tools.iter().map(|name| json!({ "toolCallId": "c", "name": name, "arguments": {} })).collect();
        self.event(at, "assistant.message", json!({ "model": "fake-model", "content": "", "toolRequests": requests }))
    }

    /// A message that requests no tools.
    pub(crate) fn answer(self, at: impl Into<At>, content: &str) -> Self {
        self.event(at, "assistant.message", json!({ "model": "fake-model", "content": content, "toolRequests": [] }))
    }

    /// An answer and the end of its round, which ends the turn.
    pub(crate) fn answers(self, at: impl Into<At>, content: &str) -> Self {
        let at = at.into();
        self.answer(at, content).round_end(at)
    }

    pub(crate) fn tool(self, at: impl Into<At>, call: &str, name: &str) -> Self {
        let arguments = json!({ "command": "sleep 60; echo slept", "description": "sleep" });
        self.event(at, "tool.execution_start", json!({ "toolCallId": call, "toolName": name, "arguments": arguments }))
    }

    /// A tool's result.
    pub(crate) fn done(self, at: impl Into<At>, call: &str) -> Self {
        let data = json!({ "toolCallId": call, "success": true, "result": { "content": "ok" }, "shellExecution": { "exitCode": 0 } });
        self.event(at, "tool.execution_complete", data)
    }

    /// A tool fails.
    pub(crate) fn fails(self, at: impl Into<At>, call: &str, code: &str, message: &str) -> Self {
        let error = json!({ "message": message, "code": code });
        self.event(at, "tool.execution_complete", json!({ "toolCallId": call, "success": false, "error": error }))
    }

    /// A tool that is denied because nobody could be asked, as logged by a session without a permission handler.
    pub(crate) fn denied(self, at: impl Into<At>, call: &str) -> Self {
        let at = at.into();
        let message = "Permission denied and could not request permission from user. Copilot needed the user's approval and \
                       no one could answer.";
        self.tool(at, call, "bash").fails(at, call, "denied", message)
    }

    /// A tool that runs and succeeds.
    pub(crate) fn ran(self, at: impl Into<At>, call: &str) -> Self {
        let at = at.into();
        self.tool(at, call, "bash").done(at, call)
    }

    pub(crate) fn permission(self, at: impl Into<At>, request: &str, call: &str) -> Self {
        let asked = json!({ "kind": "shell", "toolCallId": call, "fullCommandText": "sleep 60", "intention": "sleep" });
        self.event(at, "permission.requested", json!({ "requestId": request, "permissionRequest": asked }))
    }

    /// The completion of a permission request, with the kind of its result.
    pub(crate) fn permission_done(self, at: impl Into<At>, request: &str, call: &str, kind: &str) -> Self {
        let data = json!({ "requestId": request, "toolCallId": call, "result": { "kind": kind } });
        self.event(at, "permission.completed", data)
    }

    pub(crate) fn sub_agent_started(self, at: impl Into<At>, agent: &str, call: &str, mode: &str) -> Self {
        let data =
            json!({ "toolCallId": call, "agentName": "explore", "agentDisplayName": "exp", "executionMode": mode });
        self.by(agent).event(at, "subagent.started", data)
    }

    pub(crate) fn sub_agent_done(self, at: impl Into<At>, agent: &str, call: &str) -> Self {
        self.by(agent).event(at, "subagent.completed", json!({ "toolCallId": call, "agentName": "explore" }))
    }

    pub(crate) fn abort(self, at: impl Into<At>) -> Self {
        self.event(at, "abort", json!({ "reason": "user_abort" }))
    }

    pub(crate) fn error(self, at: impl Into<At>) -> Self {
        let message = "Failed to get response from the AI model; retried 5 times";
        self.event(at, "session.error", json!({ "errorType": "query", "message": message, "statusCode": 500 }))
    }

    pub(crate) fn shutdown(self, at: impl Into<At>) -> Self {
        self.event(at, "session.shutdown", json!({ "shutdownType": "routine" }))
    }

    pub(crate) fn resume(self, at: impl Into<At>) -> Self {
        self.event(at, "session.resume", json!({ "selectedModel": "fake-model", "alreadyInUse": false }))
    }

    pub(crate) fn resume_pending(self, at: impl Into<At>) -> Self {
        self.event(at, "session.resume", json!({ "continuePendingWork": true, "alreadyInUse": false }))
    }

    pub(crate) fn compacts(self, at: impl Into<At>) -> Self {
        self.event(at, "session.compaction_start", json!({ "systemTokens": 100 }))
    }

    /// A metric, which is no progress.
    pub(crate) fn metric(self, at: impl Into<At>) -> Self {
        self.event(at, "session.usage_record", json!({ "usage": { "inputTokens": 100, "outputTokens": 10 } }))
    }

    /// A step of the turn without any other meaning.
    pub(crate) fn sign(self, at: impl Into<At>) -> Self {
        self.event(at, "assistant.reasoning", json!({ "content": "still here" }))
    }

    /// A step every `step` seconds, from `from` to `to`.
    pub(crate) fn signs(mut self, from: i32, to: i32, step: i32) -> Self {
        for at in (from..=to).step_by(step.unsigned_abs() as usize) {
            self = self.sign(at);
        }
        self
    }
}
