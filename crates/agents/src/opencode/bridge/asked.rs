//! What a hook of opencode's plugin is asked, and how each answer reads for it.
//!
//! The plugin hands over the request as opencode has it. It is shown as the requests of other agents are: what is not known
//! is shown as it is, and leaves no single text that would represent the request.

use super::{VERSION, carry};
use crate::channel::action_context::ActionContext;
use crate::channel::failure::Failure;
use crate::channel::request::Request;
use crate::hooks::carry::{Asks, OpenHook};
use crate::hooks::memory::has_many_parts;
use crate::questions::{self, Question, UNKNOWN};
use crate::reported::session_id;
use async_trait::async_trait;
use pilotlight_core::form::Form;
use pilotlight_core::order::{Decision, Denial};
use pilotlight_core::question::Question as Shown;
use pilotlight_core::scan::Scan;
use pilotlight_core::session::About;
use pilotlight_core::text::{COMMAND_MAX, NAME_MAX, legible, plain};
use pilotlight_core::time::Moment;
use pilotlight_core::turn;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The longest id of a session that is read, in characters.
const ID_MAX: usize = 200;
/// The longest name of a permission that is taken for its kind, in bytes.
const KIND_MAX: usize = 60;
/// What opencode's agent is told of a denial without a note: without any word, opencode would stop the turn.
const DENIED: &str = "The user denied this.";
/// What it is told in place of an answer.
const DECLINED: &str = "The user declined to answer.";
/// Why a denial is not passed on.
const NOT_BOTH: &str = "opencode can take a note or stop the turn, not both: nothing was answered";
/// Why rules are not passed on.
const NO_RULES: &str = "Pilotlight cannot allow later requests in opencode: nothing was answered";

/// What a hook is asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// The session whose row shows it.
    pub(super) session: Box<str>,
    /// opencode's id of the request.
    pub(super) id: Box<str>,
    /// The session that asks itself, if that is another: a sub-agent's.
    pub(super) sub_agent: Option<Box<str>>,
    /// Its folder and title, as its own process says.
    pub(super) about: About,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Permission { name: String, patterns: Vec<String>, metadata: Map<String, Value> },
    Questions(Value),
    TooMuch,
}

/// The input of a hook.
#[derive(Deserialize)]
struct Input {
    v: u32,
    kind: Kind,
    session: String,
    #[serde(default)]
    directory: Option<String>,
    #[serde(default)]
    title: Option<String>,
    request: Value,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Permission,
    Question,
}

/// What every request has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Common {
    id: Box<str>,
    #[serde(rename = "sessionID")]
    session: Box<str>,
}

#[derive(Deserialize)]
struct Permission {
    permission: String,
    patterns: Vec<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

impl Asked {
    /// Reads the input of a hook. `None` if it asks nothing that is known.
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        if has_many_parts(json) {
            return Self::of_many_parts(json);
        }
        let Input { v, kind, session, directory, title, request } = serde_json::from_slice(json).ok()?;
        let common: Common = serde_json::from_value(request.clone()).ok()?;
        let session = session_id(&session).ok().filter(|_| v == VERSION && !common.id.is_empty())?;
        let what = match kind {
            Kind::Permission => {
                let Permission { permission, patterns, metadata } = serde_json::from_value(request).ok()?;
                What::Permission { name: Some(permission).filter(|name| !name.is_empty())?, patterns, metadata }
            }
            Kind::Question => What::Questions(request.get("questions")?.clone()),
        };
        let about = About {
            name: title.and_then(|title| legible(&title, NAME_MAX)),
            cwd: directory.and_then(|folder| legible(&folder, COMMAND_MAX)),
            ..About::default()
        };
        let sub_agent = (common.session != session).then(|| plain(&common.session, NAME_MAX));
        Some(Self { session, id: common.id, sub_agent, about, what })
    }

    /// What is read of an input with too many parts: whose it is.
    fn of_many_parts(json: &[u8]) -> Option<Self> {
        let mut session = None;
        let read = Scan::new(json).object(|key, value| {
            match key {
                b"session" => session = value.text()?.map(|text| Box::<str>::from(text.read(ID_MAX))),
                _ => value.skip()?,
            }
            Ok(())
        });
        let session = session.and_then(|session| session_id(&session).ok()).filter(|_| read.is_ok())?;
        Some(Self { session, id: Box::default(), sub_agent: None, about: About::default(), what: What::TooMuch })
    }

    /// The path that it asks for, if it is one.
    fn path(&self) -> Option<&str> {
        let What::Permission { name, patterns, metadata } = &self.what else { return None };
        match &**name {
            "edit" | "external_directory" => metadata.get("filepath")?.as_str(),
            "read" => patterns.first().map(String::as_str),
            _ => None,
        }
    }

    /// The request in the form in which requests are shown.
    fn fields(&self) -> Option<Value> {
        let What::Permission { name, patterns, metadata } = &self.what else { return None };
        Some(known_fields(name, patterns, metadata).unwrap_or_else(|| {
            let arguments = json!({"patterns": patterns, "metadata": metadata});
            match name.len() <= KIND_MAX && *plain(name, KIND_MAX) == **name {
                true => json!({"kind": name, "arguments": arguments}),
                false => json!({"kind": "a tool", "tool": name, "arguments": arguments}),
            }
        }))
    }
}

#[async_trait]
impl Asks for Asked {
    const DENIES_OTHERS: Option<&'static str> =
        Some("; opencode also denies the session's other open requests, and stops its turn");

    fn question(&self, id: &str) -> Option<(Option<Shown>, Result<Form, &'static str>)> {
        let What::Questions(asked) = &self.what else { return None };
        let shown = serde_json::to_vec(&json!({"questions": asked})).ok();
        let form = questions_in(asked).ok_or(UNKNOWN).and_then(|asked| questions::form(id, &asked));
        Some((shown.and_then(|shown| crate::asked::question(&shown)), form))
    }

    fn request(&self, id: &str) -> Option<Request> {
        Request::from_parts(id, &self.fields()?)
    }

    fn open_request(&self, id: &str, at: Moment) -> Option<turn::Request> {
        let request = self.request(id)?;
        let path = self.path();
        Some(request.open_over_bridge(path, self.sub_agent.clone(), turn::AnswerOptions::default(), at))
    }

    fn is_too_much(&self) -> bool {
        matches!(self.what, What::TooMuch)
    }

    fn release(&mut self) {
        match &mut self.what {
            What::Permission { patterns, metadata, .. } => (*patterns, *metadata) = (Vec::new(), Map::new()),
            What::Questions(asked) => {
                let is_form = questions_in(asked).is_some_and(|read| questions::form("", &read).is_ok());
                if !is_form {
                    *asked = Value::Null;
                }
            }
            What::TooMuch => {}
        }
    }

    fn kept(&self) -> usize {
        let What::Questions(asked) = &self.what else { return 0 };
        serde_json::to_string(asked).map_or(0, |text| 4 * text.len())
    }

    fn output(&self, decision: &Decision) -> Result<Value, &'static str> {
        Ok(match decision {
            Decision::Approve => json!({"reply": "once"}),
            Decision::Always { .. } => return Err(NO_RULES),
            Decision::Deny(Denial { note: Some(_), stop: true }) => return Err(NOT_BOTH),
            Decision::Deny(Denial { note: None, stop: true }) => json!({"reply": "reject"}),
            Decision::Deny(Denial { note, stop: false }) => {
                json!({"reply": "reject", "message": note.as_deref().unwrap_or(DENIED)})
            }
        })
    }

    fn reply(&self, result: &Value) -> Option<Value> {
        let What::Questions(asked) = &self.what else { return None };
        let asked = questions_in(asked)?;
        let answers = match result["action"] == "accept" {
            true => questions::answers(&asked, result)?,
            false => asked.iter().map(|_| vec![DECLINED.to_owned()]).collect(),
        };
        Some(json!({"answers": answers}))
    }

    async fn answer(hook: &OpenHook<Self>, context: &ActionContext, output: Value) -> Result<(), Failure> {
        carry::answer(hook, context, output).await
    }
}

/// The questions of a request. `None` if they are not understood.
fn questions_in(asked: &Value) -> Option<Vec<Question<'_>>> {
    questions::read(Some(asked), "multiple")
}

/// The fields of a permission of which all that is handed over is known.
fn known_fields(name: &str, patterns: &[String], metadata: &Map<String, Value>) -> Option<Value> {
    let text = |key: &str| metadata.get(key)?.as_str();
    let has_only = |keys: &[&str]| metadata.keys().all(|key| keys.contains(&&**key));
    match name {
        // Its patterns are what opencode's rules are made of.
        "bash" if has_only(&["command"]) => Some(json!({"kind": "commands", "fullCommandText": text("command")?})),
        "edit" if has_only(&["filepath", "diff"]) => {
            Some(json!({"kind": "write", "fileName": text("filepath")?, "diff": text("diff")?}))
        }
        "webfetch" if has_only(&["url", "format", "timeout"]) => Some(json!({"kind": "url", "url": text("url")?})),
        "external_directory" if has_only(&["filepath", "parentDir"]) => {
            let (path, folder) = (text("filepath")?, text("parentDir")?);
            let is_its = matches!(patterns, [one] if *one == format!("{}/*", folder.trim_end_matches('/')));
            is_its.then(|| json!({"kind": "path", "paths": [path]}))
        }
        "read" if metadata.is_empty() && patterns.len() == 1 => Some(json!({"kind": "read", "path": patterns[0]})),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
