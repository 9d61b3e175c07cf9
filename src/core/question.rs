//! A question to the user in the session's own words, read from the log (a tool that asks) or from a server's event.

use super::text::plain;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum length of the question, in characters.
const TEXT_MAX: usize = 500;
/// Maximum number of choices.
const CHOICES_MAX: usize = 20;
/// Maximum length of a choice, in characters.
const CHOICE_MAX: usize = 100;

/// A question, safe to display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// The id to answer it by. `None` if it cannot be answered from here.
    pub id: Option<Box<str>>,
    /// The question, on one line.
    pub text: Box<str>,
    /// The answers to choose from. Empty if any text will do, or if it asks for several things at once.
    pub choices: Vec<Box<str>>,
}

/// The formats in which agents ask. Copilot: `ask_user` in the SDK (`question`, `choices`), `ask_user` in the terminal and
/// tools of MCP servers (`message`, `requestedSchema`), and a plan (`summary`, `actions`). The log and the servers'
/// events use the same ones. Claude Code asks several at once (`questions`, each with `options`), and for a `plan`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    #[serde(default, alias = "message", alias = "summary", alias = "plan")]
    question: String,
    #[serde(default)]
    questions: Vec<OneOf>,
    #[serde(default, alias = "actions")]
    choices: Option<Vec<String>>,
    #[serde(default)]
    requested_schema: Option<Schema>,
}

/// One of several questions.
#[derive(Deserialize)]
struct OneOf {
    question: String,
    #[serde(default)]
    options: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    label: String,
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
    /// A question on another machine.
    pub(super) fn told(id: Option<Box<str>>, text: &str, choices: &[Box<str>]) -> Self {
        let choices = choices.iter().take(CHOICES_MAX).map(|choice| plain(choice, CHOICE_MAX)).collect();
        Self { id: id.filter(|id| id.len() <= TEXT_MAX), text: plain(text, TEXT_MAX), choices }
    }

    /// Reads the JSON object that asks. `None` if its format is unknown, or if it asks nothing.
    pub(crate) fn read(json: &[u8]) -> Option<Self> {
        let mut asked: Asked = serde_json::from_slice(json).ok()?;
        if let [first, rest @ ..] = &mut asked.questions[..] {
            asked.question = std::mem::take(&mut first.question);
            let choices = first.options.iter().map(|choice| choice.label.clone());
            asked.choices = rest.is_empty().then(|| choices.collect());
        }
        let text = plain(&asked.question, TEXT_MAX);
        let field = || {
            let mut fields = asked.requested_schema?.properties.into_values();
            fields.next().filter(|_| fields.next().is_none())?.choices
        };
        let choices = asked.choices.or_else(field).unwrap_or_default();
        let choices = choices.iter().take(CHOICES_MAX).map(|choice| plain(choice, CHOICE_MAX));
        (!text.is_empty()).then(|| Self {
            id: None,
            text,
            choices: choices.filter(|choice| !choice.is_empty()).collect(),
        })
    }

    /// The same question, answered by this id with one of these choices.
    pub(crate) fn answered_by<'a>(self, id: &str, choices: impl Iterator<Item = &'a str>) -> Self {
        let choices = choices.take(CHOICES_MAX).map(|choice| plain(choice, CHOICE_MAX));
        Self { id: Some(id.into()), choices: choices.collect(), ..self }
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
    fn every_format_in_which_copilot_asks_is_read() {
        let asked =
            |choices: &[&str]| Some(("Which color?".to_owned(), choices.iter().map(ToString::to_string).collect()));
        let sdk = json!({"question": "Which color?", "choices": ["red", "blue"], "allowFreeform": true});
        assert_eq!(read(&sdk), asked(&["red", "blue"]));
        assert_eq!(read(&json!({"question": "Which color?", "choices": null})), asked(&[]));
        let one = json!({"color": {"type": "string", "enum": ["red", "blue"]}});
        let form = json!({"message": "Which color?", "requestedSchema": {"type": "object", "properties": one}});
        assert_eq!(read(&form), asked(&["red", "blue"]));
        // A choice for one of several fields would not be an answer.
        let two = json!({"color": {"enum": ["red", "blue"]}, "coats": {"type": "number"}});
        assert_eq!(read(&json!({"message": "Which color?", "requestedSchema": {"properties": two}})), asked(&[]));
        let options = json!([{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]);
        let listed = json!({"questions": [{"id": "c", "header": "C", "question": "Which color?", "options": options}]});
        assert_eq!(read(&listed), asked(&["red", "blue"]));
        let several = json!({"questions": [{"question": "Which color?", "options": options}, {"question": "Why?"}]});
        assert_eq!(read(&several), asked(&[]));
        assert_eq!(read(&json!({"questions": []})), None);
        let plan = json!({"summary": "Paint\nit.", "actions": ["interactive", "exit_only"], "planContent": ""});
        let actions = ["interactive", "exit_only"].map(str::to_owned).to_vec();
        assert_eq!(read(&plan), Some(("Paint it.".to_owned(), actions)));
    }

    #[test]
    fn empty_questions_are_rejected_and_long_ones_cut() {
        for nothing in [json!({}), json!([]), json!("Which?"), json!({"question": 7}), json!({"question": "\u{200b} "})]
        {
            assert_eq!(read(&nothing), None, "{nothing}");
        }
        let long = json!({"question": "x".repeat(10_000), "choices": vec!["y".repeat(1000); 100]});
        let (text, choices) = read(&long).unwrap();
        assert_eq!((text.chars().count(), choices.len()), (TEXT_MAX, CHOICES_MAX));
        assert!(choices.iter().all(|choice| choice.chars().count() == CHOICE_MAX));
    }

    #[test]
    fn other_choices_can_take_the_place_of_those_in_the_log() {
        let json = json!({"question": "Which color?", "choices": ["red"]});
        let asked = Question::read(&serde_json::to_vec(&json).unwrap()).unwrap();
        let other = asked.clone().answered_by("r", ["light\nblue", "green"].into_iter());
        assert_eq!((&other.text, other.choices), (&asked.text, vec!["light blue".into(), "green".into()]));
        assert_eq!((asked.id.as_deref(), other.id.as_deref()), (None, Some("r")));
        let long = "x".repeat(1000);
        let many = asked.answered_by("r", [&*long; 100].into_iter());
        assert_eq!(many.choices.len(), CHOICES_MAX);
        assert!(many.choices.iter().all(|choice| choice.chars().count() == CHOICE_MAX));
    }
}
