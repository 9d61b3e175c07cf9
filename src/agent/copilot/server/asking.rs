//! What a session asks its user: questions of tools (`ask_user`, a plan, an MCP server's form) that wait for an answer.
//!
//! They are never on disk. An attached client hears of each when it is asked, and of each that is answered, with the answer; what
//! was asked before it came is read from the server's own log of events, which holds them too. An abort ends a question without
//! a word about it.

use crate::core::asked::Question;
use crate::core::form::Form;
use crate::core::time::Time;
use crate::core::verdict::Asking;
use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;

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
/// So many answers are remembered, for whoever waits to see one confirmed.
const ENDED_MAX: usize = 4;
/// Of an answer so much is remembered, in bytes; what is longer is none of ours.
const ANSWER_MAX: usize = 64 << 10;
/// What is shown of a question whose form is not known.
const UNREADABLE: &str = "something that Pilotlight cannot read";

/// The questions that are open, the oldest first, and how the last ones ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Questions {
    open: Vec<(Box<str>, Asking)>,
    /// The ids of those that were answered, with what was told of that.
    ended: VecDeque<(Box<str>, Value)>,
}

/// An event of a server's, as far as it matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) agent_id: Option<String>,
    #[serde(default)]
    pub(crate) timestamp: String,
    #[serde(default)]
    pub(crate) data: Value,
}

impl Questions {
    /// Takes an event. Whether it changed anything.
    pub(crate) fn hear(&mut self, event: &Event) -> bool {
        let before = self.open.len();
        let id = event.data.get("requestId").and_then(Value::as_str);
        match (&*event.kind, id) {
            ("elicitation.requested" | "user_input.requested" | "exit_plan_mode.requested", Some(id)) => {
                if before >= OPEN_MAX || self.open.iter().any(|(open, _)| **open == *id) {
                    return false;
                }
                let read = serde_json::to_vec(&event.data).ok().and_then(|data| Question::read(&data));
                let question = read.unwrap_or_else(|| Question { text: UNREADABLE.into(), choices: Vec::new() });
                let form = Form::read(&event.kind, &event.data);
                let question = form.as_ref().map_or(question.clone(), |form| question.answered_by(form));
                let since = Time::parse(event.timestamp.as_bytes()).unwrap_or_default();
                self.open.push((id.into(), Asking { question, since, form: form.map_err(Into::into) }));
            }
            ("elicitation.completed" | "user_input.completed" | "exit_plan_mode.completed", Some(id)) => {
                self.open.retain(|(open, _)| **open != *id);
                if self.ended.len() == ENDED_MAX {
                    self.ended.pop_front();
                }
                let is_short = event.data.to_string().len() <= ANSWER_MAX;
                self.ended.push_back((id.into(), if is_short { event.data.clone() } else { Value::Null }));
            }
            // What ends the root's turn ends its questions.
            ("abort" | "session.idle" | "session.error" | "session.shutdown", _) if event.agent_id.is_none() => {
                self.open.clear();
            }
            _ => {}
        }
        before != self.open.len()
    }

    /// What is asked.
    pub(crate) fn open(&self) -> Vec<Asking> {
        self.open.iter().map(|(_, asking)| asking.clone()).collect()
    }

    /// Whether nothing is.
    pub(super) const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The open one of this id, else the oldest that can be answered, else the oldest.
    pub(crate) fn find(&self, request: Option<&str>) -> Option<&Asking> {
        let by_id = |(id, _): &&(Box<str>, Asking)| request.is_none_or(|request| **id == *request);
        let mut open = self.open.iter().filter(by_id);
        open.clone().find(|(_, asking)| asking.form.is_ok()).or_else(|| open.next()).map(|(_, asking)| asking)
    }

    /// What was told of the end of the one of this id, where it was answered.
    pub(crate) fn ended(&self, request: &str) -> Option<&Value> {
        self.ended.iter().rev().find(|(id, _)| **id == *request).map(|(_, data)| data)
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
    fn a_question_keeps_how_it_is_answered_or_why_it_is_not() {
        let mut questions = Questions::default();
        let two = json!({"a": {"type": "string"}, "b": {"type": "string", "format": "email"}});
        heard(
            &mut questions,
            "elicitation.requested",
            &json!({"requestId": "a", "message": "Who?", "requestedSchema": {"properties": two}}),
        );
        let plan = json!({"requestId": "b", "summary": "Paint it.", "actions": ["autopilot", "interactive"]});
        heard(&mut questions, "exit_plan_mode.requested", &plan);
        let open = questions.open();
        assert_eq!(
            open[0].form.as_ref().unwrap_err().as_ref(),
            "its form asks for more than choices, texts and numbers"
        );
        let choices = ["Approve, and go on interactively", "Do not approve"];
        assert_eq!(open[1].question.choices.iter().map(|choice| &**choice).collect::<Vec<_>>(), choices);
        let found = |request| questions.find(request).map(|asking| &*asking.question.text);
        assert_eq!((found(None), found(Some("a")), found(Some("x"))), (Some("Paint it."), Some("Who?"), None));
        assert_eq!(questions.ended("b"), None);
        let answer = json!({"requestId": "b", "approved": false});
        heard(&mut questions, "exit_plan_mode.completed", &answer);
        assert_eq!(questions.ended("b"), Some(&answer));
        // Only the last ones are remembered, and nothing that is longer than an answer of ours.
        let long = json!({"requestId": "c", "answer": "x".repeat(ANSWER_MAX)});
        heard(&mut questions, "user_input.completed", &long);
        assert_eq!(questions.ended("c"), Some(&Value::Null));
        for n in 0..ENDED_MAX {
            heard(&mut questions, "user_input.completed", &json!({"requestId": n.to_string()}));
        }
        assert_eq!((questions.ended("b"), questions.ended.len()), (None, ENDED_MAX));
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
