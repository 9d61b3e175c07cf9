//! Claude Code's questions and plans, as forms, and the answers as its hooks give them.
//!
//! A question's answer is its choice, or several of them joined by commas as the terminal does, under the question's own
//! text.

use pilotlight_core::form::{Choice, Form};
use serde_json::{Map, Value, json};

/// What a declined question is answered.
const DECLINED: &str = "The user declined to answer.";
/// What a plan is answered that is not approved, where the user does not say why.
const NOT_APPROVED: &str = "The user did not approve this plan.";
const UNKNOWN: &str = "it has a form that Pilotlight does not know";
/// How a plan's choices are told apart.
const APPROVAL: &str = "approval";

/// A tool that asks its user something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Questions,
    Plan,
}

impl Kind {
    pub(super) fn of(tool: &str) -> Option<Self> {
        match tool {
            "AskUserQuestion" => Some(Self::Questions),
            "ExitPlanMode" => Some(Self::Plan),
            _ => None,
        }
    }
}

/// One of the questions that are asked at once.
struct Question<'a> {
    /// The name of its field.
    name: String,
    text: &'a str,
    choices: Vec<&'a str>,
    takes_several: bool,
}

/// Reads the form of what is asked with these arguments, to be answered by this id.
pub(super) fn read(kind: Kind, id: &str, input: &Map<String, Value>) -> Result<Form, &'static str> {
    match kind {
        Kind::Questions => form_of(id, &questions(input).ok_or(UNKNOWN)?),
        Kind::Plan => {
            let plan = input.get("plan").and_then(Value::as_str).map(str::trim_end).filter(|plan| !plan.is_empty());
            let choices = [
                ("Approve; each edit asks", json!({APPROVAL: "once"})),
                ("Approve, and accept every edit", json!({APPROVAL: "edits"})),
                ("Do not approve", json!({APPROVAL: "no"})),
            ];
            let choices = choices.map(|(words, result)| Choice::new(words, result));
            Form::plan(id, plan.ok_or(UNKNOWN)?, choices.into())
        }
    }
}

fn form_of(id: &str, questions: &[Question<'_>]) -> Result<Form, &'static str> {
    let field = |question: &Question<'_>, description: Option<&str>| {
        let mut field = match question.takes_several {
            true => json!({"type": "array", "items": {"type": "string", "enum": question.choices}, "minItems": 1}),
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
    Form::read(
        "elicitation.requested",
        &json!({"requestId": id, "message": message, "toolCallId": id, "requestedSchema": schema}),
    )
}

/// The questions of these arguments. `None` if they are not understood.
fn questions(input: &Map<String, Value>) -> Option<Vec<Question<'_>>> {
    let asked = input.get("questions")?.as_array().filter(|asked| !asked.is_empty())?;
    let header = |question: &Value| Some(question.get("header")?.as_str()?.trim().to_owned());
    let headers: Vec<_> = asked.iter().map(|question| header(question).unwrap_or_default()).collect();
    let is_name = |name: &String| {
        !name.is_empty() && !name.contains(['=', '\n']) && headers.iter().filter(|other| *other == name).count() == 1
    };
    let names_fit = headers.iter().all(is_name);
    let read = |(at, question): (usize, &'_ Value)| -> Option<Question<'_>> {
        let texts = |key: &str| question.get(key)?.as_str().filter(|text| !text.trim().is_empty());
        let options = input.get("questions")?.get(at)?.get("options")?.as_array()?;
        let choices = options.iter().map(|option| option.get("label")?.as_str()).collect::<Option<Vec<_>>>()?;
        let is_double = |(at, choice): (usize, &&str)| choices[..at].contains(choice);
        if choices.is_empty() || choices.iter().enumerate().any(is_double) {
            return None;
        }
        let text = input.get("questions")?.get(at)?.get("question")?.as_str()?;
        texts("question")?;
        Some(Question {
            name: if names_fit { headers[at].clone() } else { (at + 1).to_string() },
            text,
            choices,
            takes_several: question.get("multiSelect").and_then(Value::as_bool).unwrap_or(false),
        })
    };
    let read: Vec<_> = asked.iter().enumerate().map(read).collect::<Option<_>>()?;
    // Its text is the name of an answer.
    let is_double = |(at, question): (usize, &Question<'_>)| read[..at].iter().any(|other| other.text == question.text);
    let has_double = read.iter().enumerate().any(is_double);
    (!has_double).then_some(read)
}

/// The decision that answers what was asked with these arguments by this result of its form. `None` if the result is of
/// another form.
pub(super) fn decision(kind: Kind, input: &Map<String, Value>, result: &Value) -> Option<Value> {
    match kind {
        Kind::Questions => answers(input, result),
        Kind::Plan => Some(match result[APPROVAL].as_str() {
            Some("once") => json!({"behavior": "allow", "updatedInput": {}}),
            Some("edits") => json!({"behavior": "allow", "updatedInput": {}, "updatedPermissions":
                [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]}),
            _ => deny(result["feedback"].as_str().unwrap_or(NOT_APPROVED)),
        }),
    }
}

fn answers(input: &Map<String, Value>, result: &Value) -> Option<Value> {
    if result["action"] != "accept" {
        return Some(deny(DECLINED));
    }
    let questions = questions(input)?;
    let given = result["content"].as_object()?;
    let answer = |question: &Question<'_>| {
        let answer = match given.get(&question.name)? {
            Value::String(text) => text.clone(),
            Value::Array(several) => several.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?.join(", "),
            _ => return None,
        };
        Some((question.text.to_owned(), Value::from(answer)))
    };
    let answers: Map<String, Value> = questions.iter().map(answer).collect::<Option<_>>()?;
    let mut input = input.clone();
    input.insert("answers".into(), answers.into());
    Some(json!({"behavior": "allow", "updatedInput": input}))
}

fn deny(message: &str) -> Value {
    json!({"behavior": "deny", "message": message})
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::form::FormAnswer;

    fn input(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn colour() -> Value {
        json!({"question": "Which colour?", "header": "Colour", "multiSelect": false,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]})
    }

    fn sizes() -> Value {
        json!({"question": "Which sizes?", "header": "Sizes", "multiSelect": true,
            "options": [{"label": "S"}, {"label": "L"}]})
    }

    /// What the hook answers to these questions if its user gives this answer.
    fn answered(questions: &Value, answer: &FormAnswer) -> Result<Value, &'static str> {
        let input = input(&json!({"questions": questions}));
        let form = read(Kind::Questions, "r", &input)?;
        Ok(decision(Kind::Questions, &input, &form.result(answer)?).unwrap())
    }

    #[test]
    fn case_746_a_question_is_answered_by_its_choice_or_in_other_words() {
        let form = read(Kind::Questions, "r", &input(&json!({"questions": [colour()]}))).unwrap();
        let choices: Vec<_> = form.choices.iter().map(|choice| &*choice.words).collect();
        assert_eq!((&*form.text, &choices[..], form.takes_text), ("Which colour?", &["Red", "Blue"][..], true));
        let blue = answered(&json!([colour()]), &FormAnswer::Choice(1)).unwrap();
        assert_eq!(
            blue,
            json!({"behavior": "allow", "updatedInput":
            {"questions": [colour()], "answers": {"Which colour?": "Blue"}}})
        );
        let other = answered(&json!([colour()]), &FormAnswer::Text("Green, rather".into())).unwrap();
        assert_eq!(other["updatedInput"]["answers"]["Which colour?"], "Green, rather");
        let declined = answered(&json!([colour()]), &FormAnswer::Decline).unwrap();
        assert_eq!(declined, json!({"behavior": "deny", "message": DECLINED}));
    }

    #[test]
    fn case_746_several_questions_are_filled_in_and_several_choices_joined() {
        let questions = json!([colour(), sizes()]);
        let values = input(&json!({"Colour": "Blue", "Sizes": ["S", "L"]}));
        let given = answered(&questions, &FormAnswer::Fields(values)).unwrap();
        assert_eq!(given["updatedInput"]["answers"], json!({"Which colour?": "Blue", "Which sizes?": "S, L"}));
        for wrong in [json!({"Colour": "Blue"}), json!({"Colour": "Blue", "Sizes": ["XL"]})] {
            assert!(answered(&questions, &FormAnswer::Fields(input(&wrong))).is_err());
        }
        let one = answered(&json!([sizes()]), &FormAnswer::Fields(input(&json!({"Sizes": ["L"]})))).unwrap();
        assert_eq!(one["updatedInput"]["answers"], json!({"Which sizes?": "L"}));
        let mut same = sizes();
        same["header"] = "Colour".into();
        let values = input(&json!({"1": "Red", "2": ["S"]}));
        assert!(answered(&json!([colour(), same]), &FormAnswer::Fields(values)).is_ok(), "headers that are the same");
    }

    #[test]
    fn case_747_a_question_that_is_not_understood_is_left_where_it_is_asked() {
        let many: Vec<_> = (0..500).map(|n| json!({"label": format!("choice {n}")})).collect();
        for questions in [
            json!([]),
            json!("Which?"),
            json!([{"question": "Which?"}]),
            json!([{"question": "Which?", "options": []}]),
            json!([{"question": "Which?", "options": [{"label": "a"}, {"label": "a"}]}]),
            json!([{"question": " ", "options": [{"label": "a"}]}]),
            json!([{"question": "Which?", "options": many}]),
            json!([colour(), colour()]),
        ] {
            assert!(read(Kind::Questions, "r", &input(&json!({"questions": questions}))).is_err(), "{questions}");
        }
    }

    #[test]
    fn case_748_a_plan_is_approved_with_or_without_its_edits_or_sent_back() {
        let plan = input(&json!({"plan": "1. Paint it.", "planFilePath": "/p"}));
        let form = read(Kind::Plan, "r", &plan).unwrap();
        let given = |answer: FormAnswer| decision(Kind::Plan, &plan, &form.result(&answer).unwrap()).unwrap();
        assert_eq!(given(FormAnswer::Choice(0)), json!({"behavior": "allow", "updatedInput": {}}));
        let edits = given(FormAnswer::Choice(1));
        assert_eq!(edits["updatedPermissions"][0]["mode"], "acceptEdits");
        assert_eq!(given(FormAnswer::Choice(2)), json!({"behavior": "deny", "message": NOT_APPROVED}));
        assert_eq!(given(FormAnswer::Decline), given(FormAnswer::Choice(2)));
        assert_eq!(
            given(FormAnswer::Text("Test it, too.".into())),
            json!({"behavior": "deny", "message": "Test it, too."})
        );
        for nothing in [json!({}), json!({"plan": " "}), json!({"plan": "x".repeat(40 << 10)})] {
            assert!(read(Kind::Plan, "r", &input(&nothing)).is_err());
        }
    }
}
