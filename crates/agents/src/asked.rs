//! The question in what an agent writes when it asks its user.

use pilotlight_core::question::Question;
use serde::Deserialize;
use std::collections::BTreeMap;

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

/// Reads the JSON object that asks. `None` if its format is unknown, or if it asks nothing.
pub(crate) fn question(json: &[u8]) -> Option<Question> {
    let mut asked: Asked = serde_json::from_slice(json).ok()?;
    if let [first, rest @ ..] = &mut asked.questions[..] {
        asked.question = std::mem::take(&mut first.question);
        let choices = first.options.iter().map(|choice| choice.label.clone());
        asked.choices = rest.is_empty().then(|| choices.collect());
    }
    let field = || {
        let mut fields = asked.requested_schema?.properties.into_values();
        fields.next().filter(|_| fields.next().is_none())?.choices
    };
    let choices = asked.choices.or_else(field).unwrap_or_default();
    Question::asked(&asked.question, &choices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(value: &Value) -> Option<(String, Vec<String>)> {
        let question = question(&serde_json::to_vec(value).unwrap())?;
        Some((question.text.into(), question.choices.into_iter().map(Into::into).collect()))
    }

    #[test]
    fn every_format_in_which_agents_ask_is_read() {
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
    fn what_asks_nothing_is_no_question() {
        for nothing in [json!({}), json!([]), json!("Which?"), json!({"question": 7}), json!({"question": "\u{200b} "})]
        {
            assert_eq!(read(&nothing), None, "{nothing}");
        }
    }
}
