//! The questions with choices that a tool of an agent asks all at once, as a form. Claude Code's and opencode's differ in a
//! name only.

use pilotlight_core::form::Form;
use serde_json::{Map, Value, json};

/// Why a question cannot be answered from here.
pub(crate) const UNKNOWN: &str = "it has a form that Pilotlight does not know";

/// One of the questions that are asked at once.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    /// The name of its field.
    name: String,
    pub(crate) text: &'a str,
    pub(crate) choices: Vec<&'a str>,
    takes_several: bool,
    /// It takes other words besides its choices.
    takes_other: bool,
}

/// Reads questions. `several` is the key that tells that one takes several choices. `None` if they are not understood.
pub(crate) fn read<'a>(asked: Option<&'a Value>, several: &str) -> Option<Vec<Question<'a>>> {
    let asked = asked?.as_array().filter(|asked| !asked.is_empty())?;
    let header = |question: &Value| Some(question.get("header")?.as_str()?.trim().to_owned());
    let headers: Vec<_> = asked.iter().map(|question| header(question).unwrap_or_default()).collect();
    let is_name = |name: &String| {
        !name.is_empty() && !name.contains(['=', '\n']) && headers.iter().filter(|other| *other == name).count() == 1
    };
    let names_fit = headers.iter().all(is_name);
    let flag = |question: &Value, key: &str| question.get(key).and_then(Value::as_bool);
    let read = |(at, question): (usize, &'a Value)| {
        let options = question.get("options")?.as_array()?;
        let choices = options.iter().map(|option| option.get("label")?.as_str()).collect::<Option<Vec<_>>>()?;
        let is_double = |(at, choice): (usize, &&str)| choices[..at].contains(choice);
        if choices.iter().enumerate().any(is_double) {
            return None;
        }
        Some(Question {
            name: if names_fit { headers[at].clone() } else { (at + 1).to_string() },
            text: question.get("question")?.as_str().filter(|text| !text.trim().is_empty())?,
            choices,
            takes_several: flag(question, several).unwrap_or(false),
            takes_other: flag(question, "custom").unwrap_or(true),
        })
    };
    asked.iter().enumerate().map(read).collect()
}

/// The form of these questions, to be answered by this id.
pub(crate) fn form(id: &str, questions: &[Question<'_>]) -> Result<Form, &'static str> {
    let field = |question: &Question<'_>, description: Option<&str>| {
        let mut field = match question.takes_several {
            true => json!({"type": "array", "items": {"type": "string", "enum": question.choices}, "minItems": 1}),
            false if question.choices.is_empty() && question.takes_other => json!({"type": "string", "minLength": 1}),
            false => json!({"type": "string", "enum": question.choices}),
        };
        if let Some(description) = description {
            field["description"] = description.into();
        }
        (question.name.clone(), field)
    };
    let (message, fields): (&str, Map<String, Value>) = match questions {
        [one] => (one.text, [field(one, None)].into_iter().collect()),
        several => {
            let fields = several.iter().map(|question| field(question, Some(question.text)));
            ("It asks several questions", fields.collect())
        }
    };
    let required: Vec<_> = questions.iter().map(|question| &*question.name).collect();
    let schema = json!({"type": "object", "properties": fields, "required": required});
    let mut asked = json!({"requestId": id, "message": message, "requestedSchema": schema});
    // A form of an agent's own tool takes other words besides the choices.
    if questions.iter().all(|question| question.takes_other) {
        asked["toolCallId"] = id.into();
    }
    Form::read("elicitation.requested", &asked)
}

/// The answers to these questions by this result of their form, in their order. `None` if the user declined to answer, or
/// the result is of another form.
pub(crate) fn answers(questions: &[Question<'_>], result: &Value) -> Option<Vec<Vec<String>>> {
    let given = result["content"].as_object().filter(|_| result["action"] == "accept")?;
    let answer = |question: &Question<'_>| match given.get(&question.name)? {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(several) => several.iter().map(|one| Some(one.as_str()?.to_owned())).collect(),
        _ => None,
    };
    questions.iter().map(answer).collect()
}
