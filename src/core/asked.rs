//! What a session asks its user, in its own words: of a tool that asks, as its log has it, or of a server's event.

use super::form::Form;
use super::text::plain;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The question is kept up to this many characters.
const TEXT_MAX: usize = 500;
/// So many choices are kept.
const CHOICES_MAX: usize = 20;
/// Each of them up to this many characters.
const CHOICE_MAX: usize = 100;

/// A question, fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// What is asked, on one line.
    pub text: Box<str>,
    /// The answers to choose from; none where any text will do, or several things are asked for.
    pub choices: Vec<Box<str>>,
}

/// The forms in which Copilot asks: `ask_user` of the SDK (`question`, `choices`) and of the terminal, and tools of MCP
/// servers (`message`, `requestedSchema`), and a plan (`summary`, `actions`). The log and the servers' events agree on them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    #[serde(alias = "message", alias = "summary")]
    question: String,
    #[serde(default, alias = "actions")]
    choices: Option<Vec<String>>,
    #[serde(default)]
    requested_schema: Option<Schema>,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    properties: BTreeMap<String, Field>,
}

#[derive(Deserialize)]
struct Field {
    #[serde(default, rename = "enum")]
    choices: Option<Vec<String>>,
}

impl Question {
    /// Reads the JSON object that asks. `None` where it has none of the known forms, or asks nothing.
    pub(crate) fn read(json: &[u8]) -> Option<Self> {
        let asked: Asked = serde_json::from_slice(json).ok()?;
        let text = plain(&asked.question, TEXT_MAX);
        let field = || {
            let mut fields = asked.requested_schema?.properties.into_values();
            fields.next().filter(|_| fields.next().is_none())?.choices
        };
        let choices = asked.choices.or_else(field).unwrap_or_default();
        let choices = choices.iter().take(CHOICES_MAX).map(|choice| plain(choice, CHOICE_MAX));
        (!text.is_empty()).then(|| Self { text, choices: choices.filter(|choice| !choice.is_empty()).collect() })
    }

    /// The same, with the choices as they can be answered, in their order.
    pub(crate) fn answered_by(self, form: &Form) -> Self {
        let choices = form.choices.iter().take(CHOICES_MAX).map(|choice| plain(&choice.words, CHOICE_MAX));
        Self { choices: choices.collect(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: &Value) -> Option<(String, Vec<String>)> {
        let question = Question::read(&serde_json::to_vec(value).unwrap())?;
        Some((question.text.into(), question.choices.into_iter().map(Into::into).collect()))
    }

    #[test]
    fn every_form_in_which_copilot_asks_is_read() {
        let asked =
            |choices: &[&str]| Some(("Which color?".to_owned(), choices.iter().map(ToString::to_string).collect()));
        let sdk = json!({"question": "Which color?", "choices": ["red", "blue"], "allowFreeform": true});
        assert_eq!(read(&sdk), asked(&["red", "blue"]));
        assert_eq!(read(&json!({"question": "Which color?", "choices": null})), asked(&[]));
        let one = json!({"color": {"type": "string", "enum": ["red", "blue"]}});
        let form = json!({"message": "Which color?", "requestedSchema": {"type": "object", "properties": one}});
        assert_eq!(read(&form), asked(&["red", "blue"]));
        // One choice of several fields would be no answer.
        let two = json!({"color": {"enum": ["red", "blue"]}, "coats": {"type": "number"}});
        assert_eq!(read(&json!({"message": "Which color?", "requestedSchema": {"properties": two}})), asked(&[]));
        let plan = json!({"summary": "Paint\nit.", "actions": ["interactive", "exit_only"], "planContent": ""});
        let actions = ["interactive", "exit_only"].map(str::to_owned).to_vec();
        assert_eq!(read(&plan), Some(("Paint it.".to_owned(), actions)));
    }

    #[test]
    fn what_asks_nothing_is_no_question_and_what_is_long_is_cut() {
        for nothing in [json!({}), json!([]), json!("Which?"), json!({"question": 7}), json!({"question": "\u{200b} "})]
        {
            assert_eq!(read(&nothing), None, "{nothing}");
        }
        let long = json!({"question": "x".repeat(10_000), "choices": vec!["y".repeat(1000); 100]});
        let (text, choices) = read(&long).unwrap();
        assert_eq!((text.chars().count(), choices.len()), (TEXT_MAX, CHOICES_MAX));
        assert!(choices.iter().all(|choice| choice.chars().count() == CHOICE_MAX));
    }
}
