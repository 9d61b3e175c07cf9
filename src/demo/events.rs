//! Turns acts of the script into the log lines that Copilot would write.

use super::script::{Act, Role};
use crate::core::time::Time;
use serde::Serialize;
use serde_json::{Value, json};

/// The state of one session's log that its next lines depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Number of lines written.
    written: u64,
    /// Number of tools started. Only the last one can be open.
    tools: u64,
    /// Whether the earlier lines are from another process.
    changed_owner: bool,
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
    /// Whether nothing was written yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Notes that a new process owns the session.
    pub(crate) const fn change_owner(&mut self) {
        self.changed_owner = self.written > 0;
    }

    /// The lines for an act, each with its line break. `id` is the session's.
    pub(crate) fn lines(&mut self, id: &str, role: &Role, act: Act, at: Time) -> String {
        self.events(id, role, act).into_iter().map(|(kind, data)| self.line(id, kind, data, at)).collect()
    }

    fn line(&mut self, id: &str, kind: &str, data: Value, at: Time) -> String {
        let before = (self.written > 0).then(|| format!("{id}-{}", self.written));
        self.written += 1;
        let line = Line { r#type: kind, data, id: format!("{id}-{}", self.written), timestamp: at, parent_id: before };
        // Strings and numbers always serialize.
        serde_json::to_string(&line).unwrap_or_default() + "\n"
    }

    fn events(&mut self, id: &str, role: &Role, act: Act) -> Vec<(&'static str, Value)> {
        let call = |log: &Self| format!("call-{}", log.tools);
        let request = |log: &Self| format!("{id}-request-{}", log.tools);
        match act {
            Act::Enter | Act::Crash => Vec::new(),
            Act::Prompt(content) => {
                let mut events = Vec::new();
                if self.is_empty() {
                    let context = json!({"branch": role.branch});
                    events
                        .push(("session.start", json!({"sessionId": id, "selectedModel": "demo", "context": context})));
                } else if std::mem::take(&mut self.changed_owner) {
                    events.push(("session.resume", json!({"selectedModel": "demo"})));
                }
                events.push(("user.message", json!({"content": content})));
                events.push(("assistant.turn_start", json!({"turnId": "0"})));
                events
            }
            Act::Tool(name, argument) => {
                self.tools += 1;
                let arguments = match name {
                    "bash" => json!({"command": argument, "description": argument}),
                    "ask_user" => json!({"question": argument}),
                    _ => json!({"path": argument}),
                };
                let tool = json!({"toolCallId": call(self), "name": name, "arguments": arguments});
                vec![
                    ("assistant.message", json!({"content": "", "toolRequests": [tool]})),
                    (
                        "tool.execution_start",
                        json!({"toolCallId": call(self), "toolName": name, "arguments": arguments}),
                    ),
                ]
            }
            Act::Done => self.between_rounds(json!({"toolCallId": call(self), "success": true})),
            Act::Wants(command) => {
                let wanted = json!({"kind": "shell", "toolCallId": call(self), "fullCommandText": command,
                    "intention": command});
                vec![("permission.requested", json!({"requestId": request(self), "permissionRequest": wanted}))]
            }
            Act::Allowed => vec![(
                "permission.completed",
                json!({"requestId": request(self), "result": {"kind": "approved"}, "decisionSource": "human_response"}),
            )],
            Act::Denied => {
                let message = "Permission denied and could not request permission from user.";
                let error = json!({"code": "denied", "message": message});
                self.between_rounds(json!({"toolCallId": call(self), "success": false, "error": error}))
            }
            Act::Answer(content) => vec![("assistant.message", json!({"content": content, "toolRequests": []}))],
            Act::End => vec![("assistant.turn_end", json!({"turnId": "0"}))],
            Act::Fail(message) => vec![
                ("assistant.turn_end", json!({"turnId": "0"})),
                ("session.error", json!({"errorType": "query", "message": message, "statusCode": 500})),
            ],
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
