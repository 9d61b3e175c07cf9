//! The questions that a session asks its user: from tools (`ask_user`, a plan, an MCP server's form), waiting for an
//! answer.
//!
//! They are never on disk. An attached client gets an event when a question is asked and when it is answered, with the
//! answer. Earlier questions are read from the server's own event log. An abort ends a question without an event of its
//! own.

use crate::asked::question;
use pilotlight_core::form::Form;
use pilotlight_core::question::Question;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::Asking;
use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;

/// The types of events that open or close a question, to filter the server's event log.
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
/// The most questions that are kept of a session. Real sessions have one.
const OPEN_MAX: usize = 16;
/// How many answers are remembered, for confirming the one that was sent.
const ENDED_MAX: usize = 4;
/// The longest answer that is remembered, in bytes. A longer one is not from us.
const ANSWER_MAX: usize = 64 << 10;
/// Shown for a question of an unknown form.
const UNREADABLE: &str = "something that Pilotlight cannot read";

/// The open questions, oldest first, and the last answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    open: Vec<(Box<str>, Asking)>,
    /// The ids of answered questions, with the data of the event.
    answers: VecDeque<(Box<str>, Value)>,
}

/// The fields of a server's event that matter here.
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
    /// Applies an event. Returns whether the open questions changed.
    pub(crate) fn apply(&mut self, event: &Event) -> bool {
        let before = self.open.len();
        let id = event.data.get("requestId").and_then(Value::as_str);
        match (&*event.kind, id) {
            ("elicitation.requested" | "user_input.requested" | "exit_plan_mode.requested", Some(id)) => {
                if before >= OPEN_MAX || self.open.iter().any(|(open, _)| **open == *id) {
                    return false;
                }
                let question = serde_json::to_vec(&event.data).ok().and_then(|data| question(&data));
                let question =
                    question.unwrap_or_else(|| Question { id: None, text: UNREADABLE.into(), choices: Vec::new() });
                let form = Form::read(&event.kind, &event.data);
                let question = match &form {
                    Ok(form) => question.answered_by(&form.request, form.choices.iter().map(|choice| &*choice.words)),
                    Err(_) => question,
                };
                let since = Time::parse(event.timestamp.as_bytes()).unwrap_or_default();
                self.open.push((id.into(), Asking { question, since, form: form.map_err(Into::into) }));
            }
            ("elicitation.completed" | "user_input.completed" | "exit_plan_mode.completed", Some(id)) => {
                self.open.retain(|(open, _)| **open != *id);
                if self.answers.len() == ENDED_MAX {
                    self.answers.pop_front();
                }
                let is_short = event.data.to_string().len() <= ANSWER_MAX;
                self.answers.push_back((id.into(), if is_short { event.data.clone() } else { Value::Null }));
            }
            // The end of the root's turn ends its questions.
            ("abort" | "session.idle" | "session.error" | "session.shutdown", _) if event.agent_id.is_none() => {
                self.open.clear();
            }
            _ => {}
        }
        before != self.open.len()
    }

    /// The open questions.
    pub fn open(&self) -> Vec<Asking> {
        self.open.iter().map(|(_, asking)| asking.clone()).collect()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The open question with this id. Without an id, the oldest that can be answered, else the oldest.
    pub(crate) fn find(&self, request: Option<&str>) -> Option<&Asking> {
        let by_id = |(id, _): &&(Box<str>, Asking)| request.is_none_or(|request| **id == *request);
        let mut open = self.open.iter().filter(by_id);
        open.clone().find(|(_, asking)| asking.form.is_ok()).or_else(|| open.next()).map(|(_, asking)| asking)
    }

    /// The data of the event that answered the question with this id.
    pub(crate) fn answer(&self, request: &str) -> Option<&Value> {
        self.answers.iter().rev().find(|(id, _)| **id == *request).map(|(_, data)| data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn apply(questions: &mut Questions, kind: &str, data: &Value) -> Vec<String> {
        let event = json!({"type": kind, "timestamp": "2026-01-01T00:00:01.000Z", "data": data});
        questions.apply(&serde_json::from_value(event).unwrap());
        questions.open().into_iter().map(|asking| asking.question.text.into()).collect()
    }

    #[test]
    fn a_question_is_open_until_it_is_answered_or_its_turn_ends() {
        let mut questions = Questions::default();
        let form = json!({"requestId": "a", "message": "Which database?", "requestedSchema": {"properties": {}}});
        assert_eq!(apply(&mut questions, "elicitation.requested", &form), ["Which database?"]);
        assert_eq!(apply(&mut questions, "elicitation.requested", &form), ["Which database?"], "a duplicate event");
        let input = json!({"requestId": "b", "question": "Which color?"});
        assert_eq!(apply(&mut questions, "user_input.requested", &input), ["Which database?", "Which color?"]);
        assert_eq!(questions.open()[1].since, Time::parse(b"2026-01-01T00:00:01.000Z").unwrap());
        let other = apply(&mut questions, "user_input.completed", &json!({"requestId": "x"}));
        assert_eq!(other.len(), 2, "the answer to another question");
        assert_eq!(apply(&mut questions, "elicitation.completed", &json!({"requestId": "a"})), ["Which color?"]);
        let plan = json!({"requestId": "c", "summary": 7});
        assert_eq!(apply(&mut questions, "exit_plan_mode.requested", &plan), ["Which color?", UNREADABLE]);
        for end in ["abort", "session.idle", "session.error", "session.shutdown"] {
            let mut open = questions.clone();
            let from_agent = json!({"type": end, "agentId": "helper", "data": {}});
            assert!(!open.apply(&serde_json::from_value(from_agent).unwrap()), "a sub-agent's {end}");
            assert!(apply(&mut open, end, &json!({})).is_empty(), "{end}");
        }
    }

    #[test]
    fn a_question_keeps_its_form_or_the_reason_why_it_has_none() {
        let mut questions = Questions::default();
        let properties = json!({"a": {"type": "string"}, "b": {"type": "string", "format": "email"}});
        apply(
            &mut questions,
            "elicitation.requested",
            &json!({"requestId": "a", "message": "Who?", "requestedSchema": {"properties": properties}}),
        );
        let plan = json!({"requestId": "b", "summary": "Paint it.", "actions": ["autopilot", "interactive"]});
        apply(&mut questions, "exit_plan_mode.requested", &plan);
        let open = questions.open();
        assert_eq!(
            open[0].form.as_ref().unwrap_err().as_ref(),
            "its form asks for more than choices, texts and numbers"
        );
        let choices = ["Approve, and go on interactively", "Do not approve"];
        assert_eq!(open[1].question.choices.iter().map(|choice| &**choice).collect::<Vec<_>>(), choices);
        let found = |request| questions.find(request).map(|asking| &*asking.question.text);
        assert_eq!((found(None), found(Some("a")), found(Some("x"))), (Some("Paint it."), Some("Who?"), None));
        assert_eq!(questions.answer("b"), None);
        let answer = json!({"requestId": "b", "approved": false});
        apply(&mut questions, "exit_plan_mode.completed", &answer);
        assert_eq!(questions.answer("b"), Some(&answer));
        // Only the last answers are remembered, and none that is longer than ours can be.
        let long = json!({"requestId": "c", "answer": "x".repeat(ANSWER_MAX)});
        apply(&mut questions, "user_input.completed", &long);
        assert_eq!(questions.answer("c"), Some(&Value::Null));
        for n in 0..ENDED_MAX {
            apply(&mut questions, "user_input.completed", &json!({"requestId": n.to_string()}));
        }
        assert_eq!((questions.answer("b"), questions.answers.len()), (None, ENDED_MAX));
    }

    #[test]
    fn a_flood_of_questions_is_bounded() {
        let mut questions = Questions::default();
        for n in 0..1000 {
            apply(&mut questions, "user_input.requested", &json!({"requestId": n.to_string(), "question": "Which?"}));
        }
        assert_eq!(questions.open().len(), OPEN_MAX);
    }
}
