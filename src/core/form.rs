//! A question as it can be answered: read from the event that asks it, whole, with each answer as its server takes it.
//!
//! Servers check no answer: a choice that was never offered, or a form filled in wrongly, is passed on to the model or to the
//! tool. So only what is fully understood here is answered; of everything else the reason is kept, and it is answered where it
//! is asked. A plan is approved for going on interactively, and for nothing that would act without asking.

mod field;

pub(crate) use field::{Field, Named, Takes};

use super::turn::Call;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Questions are kept whole up to this length, in bytes, choices included.
const WHOLE_MAX: usize = 32 << 10;
/// The most choices that a question, or a field of it, is kept with.
const CHOICES_MAX: usize = 100;
/// The most fields that a form is kept with.
const FIELDS_MAX: usize = 30;
/// The action of a plan that is approved: the agent goes on, and asks as before.
const INTERACTIVE: &str = "interactive";
/// What a form may say beside its fields.
const FORM_KEYS: [&str; 5] = ["type", "properties", "required", "$schema", "additionalProperties"];

/// A question that can be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Form {
    /// The id that it is answered by.
    pub request: Box<str>,
    /// What it is.
    pub kind: Kind,
    /// What is asked, whole and unaltered; who asks, where that is a server of tools.
    pub text: Box<str>,
    /// The answers to choose from.
    pub choices: Vec<Choice>,
    /// Whether words of the user's own are an answer.
    pub takes_text: bool,
}

/// An answer to choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What is shown of it, whole and unaltered.
    pub words: Box<str>,
    /// What its server is told.
    result: Value,
}

/// The ways to ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The agent asks for words, or offers some.
    Input,
    /// A form, the agent's or a tool's, of these fields.
    Form(Vec<Field>),
    /// The agent has made a plan.
    Plan,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum With {
    /// The choice of this index.
    Choice(usize),
    /// The user's own words.
    Text(String),
    /// The values of a form's fields, by their names.
    Fields(Map<String, Value>),
    /// A no to the question itself.
    Decline,
    /// Neither yes nor no: the form is put away.
    Cancel,
}

impl Form {
    /// Reads what an event of this type asks.
    ///
    /// # Errors
    /// Why it cannot be answered from here, in words that hold nothing of the question.
    pub fn read(kind: &str, data: &Value) -> Result<Self, &'static str> {
        let form = match kind {
            "user_input.requested" => Self::of_input(data),
            "elicitation.requested" => Self::of_form(data),
            "exit_plan_mode.requested" => Self::of_plan(data),
            _ => Err(UNKNOWN),
        }?;
        let most = form.fields().iter().map(|field| field.listed().len()).chain([form.choices.len()]).max();
        let is_too_long = form.texts().map(str::len).sum::<usize>() > WHOLE_MAX;
        if is_too_long || form.fields().len() > FIELDS_MAX || most > Some(CHOICES_MAX) {
            return Err("it is too long");
        }
        Ok(form)
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
        let none = Map::new();
        let (form, fields) = match &data["requestedSchema"] {
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
        let read = |(name, field): (&String, &Value)| Field::read(name, field, required.contains(&&**name));
        let fields = fields.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        match &fields[..] {
            [] => {
                let accept = Choice { words: "Accept".into(), result: accept(&Map::new()) };
                of(asked.into(), Kind::Form(fields), vec![accept], false)
            }
            [field] => {
                let about = field.about.iter().map(|about| &**about).filter(|about| *about != asked);
                let text = [asked].into_iter().chain(about).collect::<Vec<_>>().join(" — ");
                let choice =
                    |named: &Named| Choice { words: named.words.clone(), result: one(field, named.value.clone()) };
                let choices = match &field.takes {
                    Takes::One(named) => named.iter().map(choice).collect(),
                    Takes::Some { .. } | Takes::Text { .. } | Takes::Number { .. } => Vec::new(),
                };
                let takes_text = matches!(field.takes, Takes::Text { .. } | Takes::Number { .. });
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

    /// Tells this question, as it is shown, from any other: the same one asked anew has another id.
    pub fn mark(&self) -> u64 {
        let choices: Vec<_> = self.choices.iter().map(|choice| &*choice.words).collect();
        // No two questions make one text: each part is a JSON value.
        Call::of(&json!([self.request, self.text, choices, self.takes_text, self.fields()]).to_string()).number()
    }

    /// The fields of a form.
    pub(crate) fn fields(&self) -> &[Field] {
        match &self.kind {
            Kind::Form(fields) => fields,
            Kind::Input | Kind::Plan => &[],
        }
    }

    /// Whether it is filled in field by field: neither a choice nor a text is an answer.
    pub(crate) fn is_filled_in(&self) -> bool {
        self.choices.is_empty() && !self.takes_text
    }

    /// Everything that is shown of it.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let choices = self.choices.iter().map(|choice| &*choice.words);
        [&*self.text].into_iter().chain(choices).chain(self.fields().iter().flat_map(Field::texts))
    }

    /// Whether it can be turned down as such.
    pub(crate) const fn can_be_declined(&self) -> bool {
        matches!(self.kind, Kind::Form(_) | Kind::Plan)
    }

    /// What its server is told as an answer.
    ///
    /// # Errors
    /// Why this is no answer to it, in words that hold nothing of the question.
    pub(crate) fn result(&self, with: &With) -> Result<Value, &'static str> {
        match (with, &self.kind) {
            (With::Choice(index), _) => {
                self.choices.get(*index).map(|choice| choice.result.clone()).ok_or("it has no such choice")
            }
            (With::Text(_), _) if !self.takes_text => Err("it takes one of its choices, and no other words"),
            (With::Text(text), _) if text.trim().is_empty() => Err("an empty text is no answer"),
            (With::Text(text), Kind::Input) => Ok(json!({"answer": text, "wasFreeform": true})),
            // Words of the user's own are what is to be changed.
            (With::Text(text), Kind::Plan) => Ok(json!({"approved": false, "feedback": text})),
            (With::Text(text), Kind::Form(fields)) => match &fields[..] {
                [field] => field.value(&[text]).map(|value| one(field, value)),
                _ => Err(UNKNOWN),
            },
            (With::Fields(values), Kind::Form(fields)) => filled_in(fields, values),
            (With::Fields(_), Kind::Input | Kind::Plan) => Err("it has no fields"),
            (With::Decline, Kind::Form(_)) => Ok(json!({"action": "decline"})),
            (With::Decline, Kind::Plan) => Ok(json!({"approved": false})),
            (With::Cancel, Kind::Form(_)) => Ok(json!({"action": "cancel"})),
            (With::Decline | With::Cancel, Kind::Input) => {
                Err("it can be answered, and not declined; `stop` ends its turn")
            }
            (With::Cancel, Kind::Plan) => Err("a plan can be declined, and not cancelled; `stop` ends its turn"),
        }
    }
}

/// What is told of a form that was filled in.
fn accept(content: &Map<String, Value>) -> Value {
    json!({"action": "accept", "content": content})
}

/// The same, of one field.
fn one(field: &Field, value: Value) -> Value {
    accept(&[(field.name.to_string(), value)].into_iter().collect())
}

/// Each field by its value; what may be left out may be missing.
fn filled_in(fields: &[Field], values: &Map<String, Value>) -> Result<Value, &'static str> {
    if values.keys().any(|name| !fields.iter().any(|field| *field.name == **name)) {
        return Err("it has no such field");
    }
    for field in fields {
        match values.get(&*field.name) {
            Some(value) => field.fits(value)?,
            None if field.is_required => return Err("a field is missing that it must have"),
            None => {}
        }
    }
    Ok(accept(values))
}

/// Said of what is not understood.
const UNKNOWN: &str = "it has a form that Pilotlight does not know";

/// Whether what a server tells of the end of a question is the answer that it was sent.
pub(crate) fn is_answer(told: &Value, sent: &Value) -> bool {
    sent.as_object().is_some_and(|sent| sent.iter().all(|(key, value)| told.get(key) == Some(value)))
}

fn id(data: &Value) -> Result<Box<str>, &'static str> {
    data["requestId"].as_str().map(Into::into).ok_or(UNKNOWN)
}

fn text<'d>(data: &'d Value, key: &str) -> Result<&'d str, &'static str> {
    data[key].as_str().filter(|text| !text.trim().is_empty()).ok_or(UNKNOWN)
}

fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

#[cfg(test)]
mod tests;
