//! Claude Code's questions and plans, as forms, and the answers as its hooks give them.
//!
//! A question's answer is its choice, or several of them joined by commas as the terminal does, under the question's own
//! text.

use crate::questions::{self, Question, UNKNOWN};
use pilotlight_core::form::{Choice, Form};
use serde_json::{Map, Value, json};

/// What a declined question is answered.
const DECLINED: &str = "The user declined to answer.";
/// What a plan is answered that is not approved, where the user does not say why.
const NOT_APPROVED: &str = "The user did not approve this plan.";
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

/// Reads the form of what is asked with these arguments, to be answered by this id.
pub(super) fn read(kind: Kind, id: &str, input: &Map<String, Value>) -> Result<Form, &'static str> {
    match kind {
        Kind::Questions => questions::form(id, &questions_in(input).ok_or(UNKNOWN)?),
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

/// The questions of these arguments. `None` if they are not understood.
fn questions_in(input: &Map<String, Value>) -> Option<Vec<Question<'_>>> {
    let read = questions::read(input.get("questions"), "multiSelect")?;
    // Its text is the name of an answer.
    let is_double = |(at, question): (usize, &Question<'_>)| read[..at].iter().any(|other| other.text == question.text);
    let has_double = read.iter().enumerate().any(is_double);
    (!has_double && read.iter().all(|question| !question.choices.is_empty())).then_some(read)
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
    let questions = questions_in(input)?;
    let given = questions::answers(&questions, result)?;
    let answer = |(question, given): (&Question<'_>, Vec<String>)| (question.text.to_owned(), given.join(", ").into());
    let answers: Map<String, Value> = questions.iter().zip(given).map(answer).collect();
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
