//! What a hook of Claude Code is asked, and how each answer reads for it.
//!
//! The hook of a permission gets the tool and its arguments, whole. They are shown as the requests of other agents are:
//! arguments that are not known are shown as they are, and leave no single text that would represent the request. What
//! the tool is given is never changed.

use super::forms::{self, Kind};
use super::rules::Rules;
use super::{EVENT, carry};
use crate::asked::question;
use crate::channel::action_context::ActionContext;
use crate::channel::failure::Failure;
use crate::channel::request::Request;
use crate::hooks::carry::{Asks, OpenHook};
use crate::hooks::memory::has_many_parts;
use async_trait::async_trait;
use pilotlight_core::form::Form;
use pilotlight_core::order::{Decision, Denial};
use pilotlight_core::question::Question;
use pilotlight_core::scan::Scan;
use pilotlight_core::text::{NAME_MAX, is_uuid, plain};
use pilotlight_core::time::Moment;
use pilotlight_core::turn::{self, AnswerOptions};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The longest id of a session that is read, in characters.
const ID_MAX: usize = 200;
/// The longest name of a tool that is taken for its kind, in bytes.
const KIND_MAX: usize = 60;
/// What an MCP server's tools are called: `mcp__<server>__<tool>`. Claude Code, too, lets the server's name end at the first `__`.
const MCP: &str = "mcp__";
/// Why rules are not passed on.
const OTHER_RULES: &str = "its rules have changed since they were shown: nothing was answered";

/// What a hook is asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) session: Box<str>,
    /// The sub-agent that asks.
    pub(super) sub_agent: Option<Box<str>>,
    tool: String,
    input: Map<String, Value>,
    suggestions: Value,
    is_too_much: bool,
}

/// The input of a hook.
#[derive(Deserialize)]
struct Input {
    session_id: Box<str>,
    hook_event_name: String,
    tool_name: String,
    tool_input: Map<String, Value>,
    #[serde(default)]
    permission_suggestions: Value,
    #[serde(default)]
    agent_id: Option<Box<str>>,
}

impl Asked {
    /// Reads the input of a hook. `None` if it does not ask for a permission of a session.
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        if has_many_parts(json) {
            return Self::of_many_parts(json);
        }
        let input: Input = serde_json::from_slice(json).ok()?;
        let is_asked = input.hook_event_name == EVENT && is_uuid(&input.session_id) && !input.tool_name.is_empty();
        is_asked.then(|| Self {
            session: input.session_id,
            sub_agent: input.agent_id.map(|id| plain(&id, NAME_MAX)),
            tool: input.tool_name,
            input: input.tool_input,
            suggestions: input.permission_suggestions,
            is_too_much: false,
        })
    }

    /// What is read of an input with too many parts: whose it is.
    fn of_many_parts(json: &[u8]) -> Option<Self> {
        let (mut session, mut sub_agent) = (None, None);
        let read = Scan::new(json).object(|key, value| {
            match key {
                b"session_id" => session = value.text()?.map(|text| Box::<str>::from(text.read(ID_MAX))),
                b"agent_id" => sub_agent = value.text()?.map(|text| plain(&text.read(NAME_MAX), NAME_MAX)),
                _ => value.skip()?,
            }
            Ok(())
        });
        let session = session.filter(|session| is_uuid(session) && read.is_ok())?;
        let (tool, input, suggestions) = (String::new(), Map::new(), Value::Null);
        Some(Self { session, sub_agent, tool, input, suggestions, is_too_much: true })
    }

    /// The rules that Claude Code suggests, if they can be shown.
    pub(super) fn rules(&self) -> Option<Rules> {
        Rules::read(&self.suggestions)
    }

    /// The request in the form in which requests are shown.
    fn fields(&self) -> Value {
        let mut rest = self.input.clone();
        let mut shown = self.known_fields(&mut rest).unwrap_or_else(|| {
            rest = self.input.clone();
            self.unknown_fields(&mut rest)
        });
        if !rest.is_empty() {
            shown["arguments"] = Value::Object(rest);
        }
        shown
    }

    /// The fields of a tool whose arguments are known. What is used of them is taken out of `rest`, and what cannot
    /// matter.
    fn known_fields(&self, rest: &mut Map<String, Value>) -> Option<Value> {
        let mut text = |key: &str| match rest.remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Some(match &*self.tool {
            "Bash" => {
                let command = text("command")?;
                let shown = json!({"kind": "commands", "fullCommandText": command, "intention": text("description")});
                rest.remove("timeout");
                rest.retain(|key, value| key != "run_in_background" || !value.is_boolean());
                shown
            }
            "Write" => json!({"kind": "write", "fileName": text("file_path")?, "newFileContents": text("content")?}),
            "Edit" => {
                let (file, old, new) = (text("file_path")?, text("old_string")?, text("new_string")?);
                rest.retain(|key, value| key != "replace_all" || *value != Value::Bool(false));
                json!({"kind": "write", "fileName": file, "diff": diff(&old, &new)})
            }
            "Read" => {
                let path = text("file_path")?;
                rest.retain(|key, value| !["offset", "limit"].contains(&key.as_str()) || !value.is_number());
                json!({"kind": "read", "path": path})
            }
            "WebFetch" => json!({"kind": "url", "url": text("url")?, "intention": text("prompt")}),
            tool => {
                let (server, tool) = tool.strip_prefix(MCP)?.split_once("__")?;
                json!({"kind": "mcp", "serverName": server, "toolName": tool, "args": std::mem::take(rest)})
            }
        })
    }

    /// The fields of any other tool.
    fn unknown_fields(&self, rest: &mut Map<String, Value>) -> Value {
        let arguments = Value::Object(std::mem::take(rest));
        let is_short = self.tool.len() <= KIND_MAX && *plain(&self.tool, KIND_MAX) == *self.tool;
        if is_short {
            json!({"kind": self.tool, "arguments": arguments})
        } else {
            json!({"kind": "a tool", "tool": self.tool, "arguments": arguments})
        }
    }
}

#[async_trait]
impl Asks for Asked {
    fn request(&self, id: &str) -> Option<Request> {
        match Kind::of(&self.tool) {
            None => Request::from_parts(id, &self.fields()),
            Some(_) => None,
        }
    }

    fn open_request(&self, id: &str, at: Moment) -> Option<turn::Request> {
        let request = self.request(id)?;
        let path = self.input.get("file_path").and_then(Value::as_str);
        let path = path.filter(|_| matches!(&*request.kind, "read" | "write"));
        let options =
            AnswerOptions { always: self.rules().map(|rules| rules.words), is_held: self.sub_agent.is_some() };
        Some(request.open_over_bridge(path, self.sub_agent.clone(), options, at))
    }

    fn question(&self, id: &str) -> Option<(Option<Question>, Result<Form, &'static str>)> {
        let form = forms::read(Kind::of(&self.tool)?, id, &self.input);
        let shown = serde_json::to_vec(&self.input).ok();
        Some((shown.and_then(|shown| question(&shown)), form))
    }

    fn is_too_much(&self) -> bool {
        self.is_too_much
    }

    fn release(&mut self) {
        let asks = Kind::of(&self.tool).is_some_and(|kind| forms::read(kind, "", &self.input).is_ok());
        if !asks {
            self.input = Map::new();
        }
        if self.rules().is_none() {
            self.suggestions = Value::Null;
        }
    }

    fn kept(&self) -> usize {
        let size = |value: Option<String>| value.map_or(0, |text| 4 * text.len());
        size(serde_json::to_string(&self.input).ok()) + size(serde_json::to_string(&self.suggestions).ok())
    }

    fn output(&self, decision: &Decision) -> Result<Value, &'static str> {
        Ok(output(&match decision {
            Decision::Approve => json!({"behavior": "allow"}),
            Decision::Always { rules } => {
                let suggested = self.rules().filter(|suggested| *suggested.words == **rules);
                let suggested = suggested.ok_or(OTHER_RULES)?;
                json!({"behavior": "allow", "updatedPermissions": suggested.updates})
            }
            Decision::Deny(Denial { note, stop }) => {
                let mut denial = json!({"behavior": "deny"});
                if let Some(note) = note {
                    denial["message"] = note.as_str().into();
                }
                if *stop {
                    denial["interrupt"] = true.into();
                }
                denial
            }
        }))
    }

    fn reply(&self, result: &Value) -> Option<Value> {
        forms::decision(Kind::of(&self.tool)?, &self.input, result).map(|decision| output(&decision))
    }

    async fn answer(hook: &OpenHook<Self>, context: &ActionContext, output: Value) -> Result<(), Failure> {
        carry::answer(hook, context, output).await
    }
}

/// The lines that an edit takes away and puts in their place.
fn diff(old: &str, new: &str) -> String {
    let lines = |mark: char, text: &str| text.split('\n').map(|line| format!("{mark}{line}")).collect::<Vec<_>>();
    [lines('-', old), lines('+', new)].concat().join("\n")
}

/// What a hook prints.
fn output(decision: &Value) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": EVENT, "decision": decision}})
}

#[cfg(test)]
mod tests;
