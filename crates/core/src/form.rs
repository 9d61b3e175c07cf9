//! A question that can be answered from here: read whole from the event that asks it, with each answer in its server's
//! format.
//!
//! Servers do not validate answers: a choice that was never offered, or a wrongly filled form, is passed on to the
//! model or the tool. So only questions that are fully understood are answered; for others the reason is kept, and the
//! user answers them where they were asked. A plan of Copilot's is only ever approved for interactive mode, never for a mode that
//! acts without asking.

mod field;

pub use field::{Field, FieldOption, FieldType};

use super::text::plain;
use super::turn::Call;
use field::{UNKNOWN, strings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Maximum size of a question, in bytes, choices included.
const WHOLE_MAX: usize = 32 << 10;
/// Maximum number of choices of a question, or of one of its fields.
const CHOICES_MAX: usize = 100;
/// Maximum length of an answer that is repeated to the user who gave it, in characters.
const SAID_MAX: usize = 60;
/// Maximum number of fields.
const FIELDS_MAX: usize = 30;
/// The action with which a plan is approved: the agent continues, and asks as before.
const INTERACTIVE: &str = "interactive";
/// The reason given for a question that is too long.
const TOO_LONG: &str = "it is too long";
/// The keys that limit a field's values.
const LIMITS: [&str; 6] = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"];
/// The keys that a form's schema may have.
const FORM_KEYS: [&str; 5] = ["type", "properties", "required", "$schema", "additionalProperties"];

/// A question that can be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The request id to answer it by.
    pub request: Box<str>,
    pub kind: Kind,
    /// The question, whole and unaltered, after the name of the tool server that asks, if one does.
    pub text: Box<str>,
    /// The answers to choose from.
    pub choices: Vec<Choice>,
    /// Whether free text is accepted.
    pub takes_text: bool,
}

/// One of the offered answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its text, whole and unaltered.
    pub words: Box<str>,
    /// What its server is sent.
    result: Value,
}

impl Choice {
    /// A choice with these words, for which the server of the question is sent this.
    pub fn new(words: &str, result: Value) -> Self {
        Self { words: words.into(), result }
    }
}

/// The kinds of questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The agent asks for text, or offers choices.
    Input,
    /// A form with these fields, from the agent or a tool.
    Form(Vec<Field>),
    /// A plan of the agent's, to be approved.
    Plan,
}

/// The user's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FormAnswer {
    /// The choice of this index.
    Choice(usize),
    /// The user's own words.
    Text(String),
    /// The values of a form's fields, by name.
    Fields(Map<String, Value>),
    /// The question itself is declined.
    Decline,
    /// The form is dismissed, neither accepted nor declined.
    Cancel,
}

impl Form {
    /// Reads the question from an event of this type.
    ///
    /// # Errors
    /// Why it cannot be answered from here, without quoting the question.
    pub fn read(kind: &str, data: &Value) -> Result<Self, &'static str> {
        let form = match kind {
            "user_input.requested" => Self::of_input(data),
            "elicitation.requested" => Self::of_form(data),
            "exit_plan_mode.requested" => Self::of_plan(data),
            _ => Err(UNKNOWN),
        }?;
        if form.is_bounded() { Ok(form) } else { Err(TOO_LONG) }
    }

    /// Whether it is no longer than one may be.
    pub(super) fn is_bounded(&self) -> bool {
        let most = self.fields().iter().map(|field| field.listed().len()).chain([self.choices.len()]).max();
        let is_too_long = self.texts().map(str::len).sum::<usize>() > WHOLE_MAX;
        !is_too_long && self.fields().len() <= FIELDS_MAX && most <= Some(CHOICES_MAX)
    }

    /// A plan of the agent's, to be approved by one of these choices, or sent back in the user's own words.
    ///
    /// # Errors
    /// Why it cannot be answered from here, without quoting it.
    pub fn plan(request: &str, text: &str, choices: Vec<Choice>) -> Result<Self, &'static str> {
        let form = Self { request: request.into(), kind: Kind::Plan, text: text.into(), choices, takes_text: true };
        if form.is_bounded() { Ok(form) } else { Err(TOO_LONG) }
    }

    fn of_input(data: &Value) -> Result<Self, &'static str> {
        let choices = match &data["choices"] {
            Value::Null => Vec::new(),
            choices => strings(choices).ok_or(UNKNOWN)?,
        };
        let takes_text = data["allowFreeform"].as_bool().unwrap_or(choices.is_empty());
        let choice =
            |words: &str| Choice { words: words.into(), result: json!({"answer": words, "wasFreeform": false}) };
        let choices: Vec<_> = choices.into_iter().map(choice).collect();
        if choices.is_empty() && !takes_text {
            return Err(UNKNOWN);
        }
        Ok(Self { request: id(data)?, kind: Kind::Input, text: text(data, "question")?.into(), choices, takes_text })
    }

    fn of_form(data: &Value) -> Result<Self, &'static str> {
        if !data["url"].is_null() || data["mode"].as_str().is_some_and(|mode| mode != "form") {
            return Err("it wants a page opened in a browser");
        }
        let asked = text(data, "message")?;
        let from = data["elicitationSource"].as_str().map(|from| format!("{from}: ")).unwrap_or_default();
        let of = |asked: String, kind, choices, takes_text| -> Result<Self, &'static str> {
            Ok(Self { request: id(data)?, kind, text: format!("{from}{asked}").into(), choices, takes_text })
        };
        let (none, schema) = (Map::new(), with_limits(&data["requestedSchema"], &data["asked"]));
        let (form, fields) = match &schema {
            Value::Null => (&none, &none),
            schema => {
                let form = schema.as_object().ok_or(UNKNOWN)?;
                (form, form.get("properties").map_or(Some(&none), Value::as_object).ok_or(UNKNOWN)?)
            }
        };
        if form.keys().any(|key| !FORM_KEYS.contains(&&**key)) {
            return Err(UNKNOWN);
        }
        let required = form.get("required").map_or(Some(Vec::new()), strings).ok_or(UNKNOWN)?;
        // The terminal offers other words beside the choices of the agent's own form, but not of a tool server's.
        let is_agents = data["elicitationSource"].is_null() && data["toolCallId"].is_string();
        let read = |(name, field): (&String, &Value)| {
            let field = Field::read(name, field, required.contains(&&**name))?;
            let takes_other = is_agents && matches!(field.takes, FieldType::One(_));
            Ok(Field { takes_other, ..field })
        };
        let fields = fields.iter().map(read).collect::<Result<Vec<_>, &str>>()?;
        match &fields[..] {
            [] => {
                let accept = Choice { words: "Accept".into(), result: accept(&Map::new()) };
                of(asked.into(), Kind::Form(fields), vec![accept], false)
            }
            [field] => {
                let about = field.about.iter().map(|about| &**about).filter(|about| *about != asked);
                let text = [asked].into_iter().chain(about).collect::<Vec<_>>().join(" — ");
                let choice = |named: &FieldOption| Choice {
                    words: named.words.clone(),
                    result: one(field, named.value.clone()),
                };
                let choices = match &field.takes {
                    FieldType::One(named) => named.iter().map(choice).collect(),
                    FieldType::Some { .. } | FieldType::Text { .. } | FieldType::Number { .. } => Vec::new(),
                };
                let takes_text =
                    field.takes_other || matches!(field.takes, FieldType::Text { .. } | FieldType::Number { .. });
                of(text, Kind::Form(fields), choices, takes_text)
            }
            _ => of(asked.into(), Kind::Form(fields), Vec::new(), false),
        }
    }

    fn of_plan(data: &Value) -> Result<Self, &'static str> {
        let summary = text(data, "summary")?;
        let plan = data["planContent"].as_str().map(str::trim_end).filter(|plan| !plan.is_empty() && *plan != summary);
        let text = plan.map_or_else(|| summary.to_owned(), |plan| format!("{summary}\n\n{plan}"));
        let approve = || Choice {
            words: "Approve, and go on interactively".into(),
            result: json!({"approved": true, "selectedAction": INTERACTIVE}),
        };
        let can_approve = strings(&data["actions"]).ok_or(UNKNOWN)?.contains(&INTERACTIVE);
        let decline = Choice { words: "Do not approve".into(), result: json!({"approved": false}) };
        let choices = can_approve.then(approve).into_iter().chain([decline]).collect();
        Ok(Self { request: id(data)?, kind: Kind::Plan, text: text.into(), choices, takes_text: true })
    }

    /// A hash that identifies this question as shown. If the same question is asked again, its request id differs.
    pub fn mark(&self) -> u64 {
        let choices: Vec<_> = self.choices.iter().map(|choice| &*choice.words).collect();
        // Two questions never produce the same text, because each part is a JSON value.
        Call::of(&json!([self.request, self.text, choices, self.takes_text, self.fields()]).to_string()).number()
    }

    /// The fields of a form.
    pub fn fields(&self) -> &[Field] {
        match &self.kind {
            Kind::Form(fields) => fields,
            Kind::Input | Kind::Plan => &[],
        }
    }

    /// Whether it must be filled in field by field, because neither a choice nor a text is an answer.
    pub fn is_filled_in(&self) -> bool {
        self.choices.is_empty() && !self.takes_text
    }

    /// All its texts that are shown.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let choices = self.choices.iter().map(|choice| &*choice.words);
        [&*self.text].into_iter().chain(choices).chain(self.fields().iter().flat_map(Field::texts))
    }

    /// Whether the question itself can be declined.
    pub const fn can_be_declined(&self) -> bool {
        matches!(self.kind, Kind::Form(_) | Kind::Plan)
    }

    /// What the user did who gave this answer: `answered “Warm colours”`.
    pub fn said(&self, with: &FormAnswer) -> String {
        let quoted = |words: &str| format!("answered “{}”", plain(words, SAID_MAX));
        match with {
            FormAnswer::Choice(index) => {
                self.choices.get(*index).map_or("answered".into(), |choice| quoted(&choice.words))
            }
            FormAnswer::Text(text) => quoted(text),
            FormAnswer::Fields(_) => "filled in its form".into(),
            FormAnswer::Decline => "declined to answer".into(),
            FormAnswer::Cancel => "cancelled its question".into(),
        }
    }

    /// Returns an answer as its server expects it.
    ///
    /// # Errors
    /// Why it is not a valid answer, without quoting the question.
    pub fn result(&self, with: &FormAnswer) -> Result<Value, &'static str> {
        match (with, &self.kind) {
            (FormAnswer::Choice(index), _) => {
                self.choices.get(*index).map(|choice| choice.result.clone()).ok_or("it has no such choice")
            }
            (FormAnswer::Text(_), _) if !self.takes_text => Err("it takes one of its choices, and no other words"),
            (FormAnswer::Text(text), _) if text.trim().is_empty() => Err("an empty text is no answer"),
            (FormAnswer::Text(text), Kind::Input) => Ok(json!({"answer": text, "wasFreeform": true})),
            // Free text says what to change.
            (FormAnswer::Text(text), Kind::Plan) => Ok(json!({"approved": false, "feedback": text})),
            (FormAnswer::Text(text), Kind::Form(fields)) => match &fields[..] {
                [field] => field.value(&[text]).map(|value| one(field, value)),
                _ => Err(UNKNOWN),
            },
            (FormAnswer::Fields(values), Kind::Form(fields)) => filled_in(fields, values),
            (FormAnswer::Fields(_), Kind::Input | Kind::Plan) => Err("it has no fields"),
            (FormAnswer::Decline, Kind::Form(_)) => Ok(json!({"action": "decline"})),
            (FormAnswer::Decline, Kind::Plan) => Ok(json!({"approved": false})),
            (FormAnswer::Cancel, Kind::Form(_)) => Ok(json!({"action": "cancel"})),
            (FormAnswer::Decline | FormAnswer::Cancel, Kind::Input) => {
                Err("it can be answered, but not declined; `stop` ends its turn")
            }
            (FormAnswer::Cancel, Kind::Plan) => Err("a plan can be declined, but not cancelled; `stop` ends its turn"),
        }
    }
}

/// The schema of a form with the limits that the agent stated for it, which Copilot leaves out of its event. `asked` is
/// the schema that the agent called its tool with.
fn with_limits(schema: &Value, asked: &Value) -> Value {
    let mut schema = schema.clone();
    if let (Some(form), Some(required)) = (schema.as_object_mut(), asked.get("required").filter(|it| it.is_array())) {
        form.entry("required").or_insert_with(|| required.clone());
    }
    for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let Some(field) = field.as_object_mut() else { continue };
        for key in LIMITS {
            if let Some(limit) = asked["properties"][name][key].as_number() {
                field.entry(key).or_insert_with(|| limit.clone().into());
            }
        }
    }
    schema
}

/// The result for a form with these values.
fn accept(content: &Map<String, Value>) -> Value {
    json!({"action": "accept", "content": content})
}

/// The result for a form with a single field.
fn one(field: &Field, value: Value) -> Value {
    accept(&[(field.name.to_string(), value)].into_iter().collect())
}

/// The result for a form with several fields. Optional ones may be missing.
fn filled_in(fields: &[Field], values: &Map<String, Value>) -> Result<Value, &'static str> {
    if values.keys().any(|name| !fields.iter().any(|field| *field.name == **name)) {
        return Err("it has no such field");
    }
    for field in fields {
        match values.get(&*field.name) {
            Some(value) => field.fits(value)?,
            None if field.is_required => return Err("a required field is missing"),
            None => {}
        }
    }
    Ok(accept(values))
}

/// Whether the result that a server reports for a question is the answer it was sent.
pub fn is_answer(reported: &Value, sent: &Value) -> bool {
    sent.as_object().is_some_and(|sent| sent.iter().all(|(key, value)| reported.get(key) == Some(value)))
}

fn id(data: &Value) -> Result<Box<str>, &'static str> {
    data["requestId"].as_str().map(Into::into).ok_or(UNKNOWN)
}

fn text<'d>(data: &'d Value, key: &str) -> Result<&'d str, &'static str> {
    data[key].as_str().filter(|text| !text.trim().is_empty()).ok_or(UNKNOWN)
}

#[cfg(test)]
mod tests;
