//! Turns acts of the script into the log lines that Copilot would write.

use crate::script::{Act, Role};
use pilotlight_core::time::Time;
use serde::Serialize;
use serde_json::{Value, json};

/// The state of one session's log that its next lines depend on.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Number of lines written.
    written: u64,
    /// Number of tools started. Only the last one can be open.
    tools: u64,
    /// Whether the earlier lines are from another process.
    changed_owner: bool,
    /// The id of the last prompt.
    prompt: Option<String>,
    /// Whether a turn is open.
    works: bool,
    /// What the user is asked.
    open: Option<Open>,
}

/// What the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// To allow this command.
    Command(&'static str),
    /// Anything else.
    Question,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    // Copilot writes the type first.
    r#type: &'a str,
    data: Value,
    id: String,
    timestamp: Time,
    parent_id: Option<String>,
}

impl Log {
    /// Of a session that another process has written to.
    pub(crate) const fn of_lines(written: u64) -> Self {
        // A tool of its own does not have the id of an earlier one.
        Self { written, tools: written, changed_owner: written > 0, prompt: None, works: false, open: None }
    }

    /// Whether nothing was written yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Whether a turn is open.
    pub(crate) const fn works(&self) -> bool {
        self.works
    }

    /// The id of the last prompt.
    pub(crate) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    /// Notes that a new process owns the session.
    pub(crate) const fn change_owner(&mut self) {
        self.changed_owner = self.written > 0;
        (self.works, self.open) = (false, None);
    }

    /// The lines for an act, each with its line break. `id` is the session's.
    pub(crate) fn lines(&mut self, id: &str, role: &Role, act: Act, at: Time) -> String {
        self.events(id, role, act).into_iter().map(|(kind, data)| self.line(id, kind, data, at)).collect()
    }

    /// The lines for a prompt of the user's.
    pub(crate) fn prompted(&mut self, id: &str, role: &Role, content: &str, at: Time) -> String {
        self.prompt_events(id, role, content).into_iter().map(|(kind, data)| self.line(id, kind, data, at)).collect()
    }

    fn line(&mut self, id: &str, kind: &str, data: Value, at: Time) -> String {
        let before = (self.written > 0).then(|| format!("{id}-{}", self.written));
        self.written += 1;
        let own = format!("{id}-{}", self.written);
        if kind == "user.message" {
            self.prompt = Some(own.clone());
        }
        let line = Line { r#type: kind, data, id: own, timestamp: at, parent_id: before };
        // Strings and numbers always serialize.
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }

    fn call(&self) -> String {
        format!("call-{}", self.tools)
    }

    /// The id of what the user is asked, if anything.
    fn request(&self, id: &str) -> String {
        // In the form of Copilot's: that of the session, with a number in the place of its second group.
        format!("{}-{:04x}-{}", id.get(..8).unwrap_or(id), self.tools & 0xffff, id.get(14..).unwrap_or_default())
    }

    /// Whether the user is asked to allow a command, by this request.
    pub(crate) fn wants(&self, id: &str, request: &str) -> bool {
        matches!(self.open, Some(Open::Command(_))) && self.request(id) == request
    }

    /// Whether the user is asked this question.
    pub(crate) fn asks(&self, id: &str, request: &str) -> bool {
        self.open == Some(Open::Question) && self.request(id) == request
    }

    /// The open request, in the words of Copilot's servers and bridges.
    pub(crate) fn open_request(&self, id: &str) -> Option<Value> {
        let Some(Open::Command(command)) = self.open else { return None };
        let request =
            json!({"kind": "commands", "fullCommandText": command, "intention": "", "toolCallId": self.call()});
        Some(json!({"requestId": self.request(id), "request": request}))
    }

    /// What a bridge reports after this act.
    pub(crate) fn reports(&self, id: &str, act: Act, at: Time) -> Vec<Value> {
        let event = |kind: &str, data: Value| json!({"t": "event", "type": kind, "timestamp": at, "data": data});
        match act {
            Act::Wants(_) => self
                .open_request(id)
                .into_iter()
                .map(|open| {
                    let data = json!({"requestId": open["requestId"], "promptRequest": open["request"]});
                    let mut report = event("permission.requested", data);
                    report["mark"] = open["requestId"].clone();
                    report
                })
                .collect(),
            Act::Allowed => vec![event("permission.completed", json!({"requestId": self.request(id)}))],
            Act::Ask(question, choices) => {
                let properties = json!({"answer": {"type": "string", "enum": choices}});
                let schema = json!({"type": "object", "properties": properties, "required": ["answer"]});
                vec![event(
                    "elicitation.requested",
                    json!({"requestId": self.request(id), "toolCallId": self.call(),
                    "message": question, "requestedSchema": schema}),
                )]
            }
            Act::Answered => vec![event("elicitation.completed", json!({"requestId": self.request(id)}))],
            Act::Refused | Act::Abort => vec![event("abort", json!({}))],
            Act::End | Act::Fail(_) | Act::ShutDown => vec![event("session.idle", json!({}))],
            _ => Vec::new(),
        }
    }

    fn prompt_events(&mut self, id: &str, role: &Role, content: &str) -> Vec<(&'static str, Value)> {
        let mut events = Vec::new();
        if self.is_empty() {
            let context = json!({"branch": role.branch});
            events.push(("session.start", json!({"sessionId": id, "selectedModel": "demo", "context": context})));
        } else if std::mem::take(&mut self.changed_owner) {
            events.push(("session.resume", json!({"selectedModel": "demo"})));
        }
        (self.works, self.open) = (true, None);
        events.push(("user.message", json!({"content": content})));
        events.push(("assistant.turn_start", json!({"turnId": "0"})));
        events
    }

    /// The lines that the session's new process writes before anything else.
    pub(crate) fn resumed(&mut self, id: &str, at: Time) -> String {
        self.changed_owner = false;
        self.line(id, "session.resume", json!({"selectedModel": "demo"}), at)
    }

    fn tool(&mut self, name: &str, arguments: &Value) -> Vec<(&'static str, Value)> {
        self.tools += 1;
        let tool = json!({"toolCallId": self.call(), "name": name, "arguments": arguments});
        vec![
            ("assistant.message", json!({"content": "", "toolRequests": [tool]})),
            ("tool.execution_start", json!({"toolCallId": self.call(), "toolName": name, "arguments": arguments})),
        ]
    }

    fn events(&mut self, id: &str, role: &Role, act: Act) -> Vec<(&'static str, Value)> {
        let completed = |request: String, kind: &str| {
            (
                "permission.completed",
                json!({"requestId": request, "result": {"kind": kind}, "decisionSource": "human_response"}),
            )
        };
        let end = ("assistant.turn_end", json!({"turnId": "0"}));
        let asked = self.open;
        self.open = match act {
            Act::Wants(command) => Some(Open::Command(command)),
            Act::Ask(..) => Some(Open::Question),
            _ => None,
        };
        self.works &= !matches!(act, Act::End | Act::Fail(_) | Act::ShutDown | Act::Crash | Act::Refused | Act::Abort);
        match act {
            Act::Enter | Act::Crash | Act::Answered => Vec::new(),
            Act::Prompt(content) => self.prompt_events(id, role, content),
            Act::Tool(name, argument) => self.tool(
                name,
                &match name {
                    "bash" => json!({"command": argument, "description": argument}),
                    _ => json!({"path": argument}),
                },
            ),
            Act::Ask(question, choices) => self.tool("ask_user", &json!({"question": question, "choices": choices})),
            Act::Done => self.between_rounds(json!({"toolCallId": self.call(), "success": true})),
            Act::Wants(command) => {
                let wanted =
                    json!({"kind": "shell", "toolCallId": self.call(), "fullCommandText": command, "intention": ""});
                vec![("permission.requested", json!({"requestId": self.request(id), "permissionRequest": wanted}))]
            }
            Act::Allowed => vec![completed(self.request(id), "approved")],
            Act::Refused => {
                let error = json!({"code": "denied", "message": "The user rejected this tool call."});
                vec![
                    completed(self.request(id), "denied-interactively-by-user"),
                    ("tool.execution_complete", json!({"toolCallId": self.call(), "success": false, "error": error})),
                    ("abort", json!({"reason": "user_initiated"})),
                    end,
                ]
            }
            Act::Abort => {
                let cancelled =
                    matches!(asked, Some(Open::Command(_))).then(|| completed(self.request(id), "cancelled"));
                cancelled.into_iter().chain([("abort", json!({"reason": "user_initiated"})), end]).collect()
            }
            Act::Denied => {
                let message = "Permission denied and could not request permission from user.";
                let error = json!({"code": "denied", "message": message});
                self.between_rounds(json!({"toolCallId": self.call(), "success": false, "error": error}))
            }
            Act::Answer(content) => vec![("assistant.message", json!({"content": content, "toolRequests": []}))],
            Act::End => vec![end],
            Act::Fail(message) => {
                vec![end, ("session.error", json!({"errorType": "query", "message": message, "statusCode": 500}))]
            }
            Act::ShutDown => vec![("session.shutdown", json!({"shutdownType": "routine"}))],
        }
    }

    /// The end of a tool and of its round, and the start of the next round.
    fn between_rounds(&self, completed: Value) -> Vec<(&'static str, Value)> {
        vec![
            ("tool.execution_complete", completed),
            ("assistant.turn_end", json!({"turnId": "0"})),
            ("assistant.turn_start", json!({"turnId": "0"})),
        ]
    }
}
