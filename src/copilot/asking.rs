//! What a session asks its user: questions of tools (`ask_user`, a plan, an MCP server's form) that wait for an answer.
//!
//! They are never on disk. An attached client hears of each when it is asked; what was asked before it came is read from the
//! server's own log of events, which holds them too. An abort ends a question without a word about it.

use crate::core::asked::Question;
use crate::core::time::Time;
use crate::core::verdict::Asking;
use serde::Deserialize;
use serde_json::Value;

/// The events that open or close a question, as the server's log of events is asked for them.
pub(super) const TYPES: [&str; 10] = [
    "elicitation.requested",
    "elicitation.completed",
    "user_input.requested",
    "user_input.completed",
    "exit_plan_mode.requested",
    "exit_plan_mode.completed",
    "abort",
    "session.idle",
    "session.error",
    "session.shutdown",
];
/// So many questions of a session are kept; the real ones have one.
const OPEN_MAX: usize = 16;
/// What is shown of a question whose form is not known.
const UNREADABLE: &str = "something that Pilotlight cannot read";

/// The questions that are open, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Questions(Vec<(Box<str>, Asking)>);

/// An event of a server's, as far as it matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) agent_id: Option<String>,
    #[serde(default)]
    pub(super) timestamp: String,
    #[serde(default)]
    pub(super) data: Value,
}

impl Questions {
    /// Takes an event. Whether it changed anything.
    pub(super) fn hear(&mut self, event: &Event) -> bool {
        let before = self.0.len();
        let id = event.data.get("requestId").and_then(Value::as_str);
        match (&*event.kind, id) {
            ("elicitation.requested" | "user_input.requested" | "exit_plan_mode.requested", Some(id)) => {
                if before >= OPEN_MAX || self.0.iter().any(|(open, _)| **open == *id) {
                    return false;
                }
                let read = serde_json::to_vec(&event.data).ok().and_then(|data| Question::read(&data));
                let question = read.unwrap_or_else(|| Question { text: UNREADABLE.into(), choices: Vec::new() });
                let since = Time::parse(event.timestamp.as_bytes()).unwrap_or_default();
                self.0.push((id.into(), Asking { question, since }));
            }
            ("elicitation.completed" | "user_input.completed" | "exit_plan_mode.completed", Some(id)) => {
                self.0.retain(|(open, _)| **open != *id);
            }
            // What ends the root's turn ends its questions.
            ("abort" | "session.idle" | "session.error" | "session.shutdown", _) if event.agent_id.is_none() => {
                self.0.clear();
            }
            _ => {}
        }
        before != self.0.len()
    }

    /// What is asked.
    pub(super) fn open(&self) -> Vec<Asking> {
        self.0.iter().map(|(_, asking)| asking.clone()).collect()
    }

    /// Whether nothing is.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn heard(questions: &mut Questions, kind: &str, data: &Value) -> Vec<String> {
        let event = json!({"type": kind, "timestamp": "2026-01-01T00:00:01.000Z", "data": data});
        questions.hear(&serde_json::from_value(event).unwrap());
        questions.open().into_iter().map(|asking| asking.question.text.into()).collect()
    }

    #[test]
    fn a_question_is_open_until_it_is_answered_or_its_turn_ends() {
        let mut questions = Questions::default();
        let form = json!({"requestId": "a", "message": "Which database?", "requestedSchema": {"properties": {}}});
        assert_eq!(heard(&mut questions, "elicitation.requested", &form), ["Which database?"]);
        assert_eq!(heard(&mut questions, "elicitation.requested", &form), ["Which database?"], "told twice");
        let asked = json!({"requestId": "b", "question": "Which color?"});
        assert_eq!(heard(&mut questions, "user_input.requested", &asked), ["Which database?", "Which color?"]);
        assert_eq!(questions.open()[1].since, Time::parse(b"2026-01-01T00:00:01.000Z").unwrap());
        let other = heard(&mut questions, "user_input.completed", &json!({"requestId": "x"}));
        assert_eq!(other.len(), 2, "another one's answer");
        assert_eq!(heard(&mut questions, "elicitation.completed", &json!({"requestId": "a"})), ["Which color?"]);
        let plan = json!({"requestId": "c", "summary": 7});
        assert_eq!(heard(&mut questions, "exit_plan_mode.requested", &plan), ["Which color?", UNREADABLE]);
        for end in ["abort", "session.idle", "session.error", "session.shutdown"] {
            let mut open = questions.clone();
            let agents = json!({"type": end, "agentId": "helper", "data": {}});
            assert!(!open.hear(&serde_json::from_value(agents).unwrap()), "a sub-agent's {end}");
            assert!(heard(&mut open, end, &json!({})).is_empty(), "{end}");
        }
    }

    #[test]
    fn a_flood_of_questions_is_bounded() {
        let mut questions = Questions::default();
        for n in 0..1000 {
            heard(&mut questions, "user_input.requested", &json!({"requestId": n.to_string(), "question": "Which?"}));
        }
        assert_eq!(questions.open().len(), OPEN_MAX);
    }
}
