//! Forms as Copilot sends them, and what is sent back.

use super::*;

fn form(schema: &Value) -> Result<Form, &'static str> {
    let data = json!({"requestId": "r", "elicitationSource": "asker", "message": "Which?", "requestedSchema": schema});
    Form::read("elicitation.requested", &data)
}

fn field(field: &Value) -> Result<Form, &'static str> {
    form(&json!({"type": "object", "properties": {"db": field}, "required": ["db"]}))
}

fn words(form: &Form) -> Vec<&str> {
    form.choices.iter().map(|choice| &*choice.words).collect()
}

#[test]
fn a_question_takes_its_choices_and_where_it_says_so_any_text() {
    let data = json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"], "allowFreeform": true});
    let asked = Form::read("user_input.requested", &data).unwrap();
    assert_eq!((&*asked.text, words(&asked), asked.takes_text), ("Which color?", vec!["red", "blue"], true));
    assert_eq!(asked.result(&With::Choice(1)), Ok(json!({"answer": "blue", "wasFreeform": false})));
    assert_eq!(asked.result(&With::Text("mauve".into())), Ok(json!({"answer": "mauve", "wasFreeform": true})));
    for no in [With::Choice(2), With::Text(" ".into()), With::Decline, With::Cancel] {
        assert!(asked.result(&no).is_err(), "{no:?}");
    }
    for (free, takes_text) in [(json!(false), false), (json!(null), false), (json!(true), true)] {
        let data = json!({"requestId": "r", "question": "Which?", "choices": ["red"], "allowFreeform": free});
        let asked = Form::read("user_input.requested", &data).unwrap();
        assert_eq!((asked.takes_text, asked.result(&With::Text("x".into())).is_ok()), (takes_text, takes_text));
    }
    let open = Form::read("user_input.requested", &json!({"requestId": "r", "question": "Why?"})).unwrap();
    assert!(open.takes_text && open.choices.is_empty());
}

#[test]
fn a_form_of_one_simple_field_is_filled_in() {
    let listed = field(&json!({"type": "string", "enum": ["test", "prod"], "title": "Database"})).unwrap();
    assert_eq!((&*listed.text, words(&listed)), ("asker: Which? — Database", vec!["test", "prod"]));
    assert_eq!(listed.result(&With::Choice(1)), Ok(json!({"action": "accept", "content": {"db": "prod"}})));
    assert_eq!(listed.result(&With::Decline), Ok(json!({"action": "decline"})));
    assert_eq!(listed.result(&With::Cancel), Ok(json!({"action": "cancel"})));
    assert!(listed.result(&With::Text("prod".into())).is_err(), "words are no choice");
    for named in [
        json!({"type": "string", "enum": ["t", "prod"], "enumNames": ["Test", "prod"]}),
        json!({"type": "string", "oneOf": [{"const": "t", "title": "Test"}, {"const": "prod"}]}),
    ] {
        let named = field(&named).unwrap();
        assert_eq!(words(&named), ["Test (t)", "prod"], "a name does not hide what is sent");
        assert_eq!(named.result(&With::Choice(0)), Ok(json!({"action": "accept", "content": {"db": "t"}})));
    }
    let yes = field(&json!({"type": "boolean"})).unwrap();
    assert_eq!(yes.result(&With::Choice(1)), Ok(json!({"action": "accept", "content": {"db": false}})));
    let free = field(&json!({"type": "string", "minLength": 2, "maxLength": 3})).unwrap();
    assert_eq!(free.result(&With::Text("abc".into())), Ok(json!({"action": "accept", "content": {"db": "abc"}})));
    assert!(free.result(&With::Text("a".into())).is_err() && free.result(&With::Text("abcd".into())).is_err());
    let nothing = form(&json!({"type": "object", "properties": {}})).unwrap();
    assert_eq!(nothing.result(&With::Choice(0)), Ok(json!({"action": "accept", "content": {}})));
}

#[test]
fn a_form_of_several_fields_is_filled_in_whole() {
    let asked =
        form(&json!({"properties": {"coats": {"type": "integer", "minimum": 1}, "color": {"enum": ["red", "blue"]},
        "note": {"type": "string"}}, "required": ["color", "coats"]}))
        .unwrap();
    assert!(asked.is_filled_in() && asked.fields().len() == 3);
    let given = |values: Value| asked.result(&With::Fields(values.as_object().unwrap().clone()));
    let both = json!({"color": "blue", "coats": 2});
    assert_eq!(given(both.clone()), Ok(json!({"action": "accept", "content": both})));
    for no in [
        json!({"color": "blue"}),
        json!({"color": "mauve", "coats": 2}),
        json!({"color": "blue", "coats": "2"}),
        json!({"color": "blue", "coats": 2, "x": "y"}),
        json!({}),
    ] {
        assert!(given(no.clone()).is_err(), "{no}");
    }
    assert!(asked.result(&With::Text("blue".into())).is_err() && asked.result(&With::Choice(0)).is_err());
    assert_eq!(asked.result(&With::Decline), Ok(json!({"action": "decline"})));
    let number = field(&json!({"type": "number", "maximum": 5})).unwrap();
    assert_eq!(number.result(&With::Text("4.5".into())), Ok(json!({"action": "accept", "content": {"db": 4.5}})));
    assert!(number.takes_text && number.result(&With::Text("6".into())).is_err());
    let several = field(&json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}})).unwrap();
    let given = With::Fields(json!({"db": ["b"]}).as_object().unwrap().clone());
    assert_eq!(several.result(&given), Ok(json!({"action": "accept", "content": {"db": ["b"]}})));
}

#[test]
fn what_is_not_understood_whole_is_not_answered() {
    for unknown in [
        json!({"type": "object"}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "array", "items": {"enum": ["a"], "minLength": 2}}),
        json!({"type": "array", "items": {"enum": ["a"]}, "uniqueItems": true}),
        json!({"type": "number", "multipleOf": 2}),
        json!({"type": "number", "minimum": "2"}),
        json!({"type": "string", "format": "email"}),
        json!({"type": "string", "pattern": "^a"}),
        json!({"type": "string", "enum": [1, 2]}),
        json!({"type": "string", "enum": []}),
        json!({"type": "string", "enum": ["a"], "enumNames": []}),
        json!({"type": "string", "enum": ["a"], "oneOf": [{"const": "b"}]}),
        json!({"type": "boolean", "enum": ["a"]}),
        json!({"type": "string", "minLength": "2"}),
        json!({}),
        json!(7),
    ] {
        assert!(field(&unknown).is_err(), "{unknown}");
    }
    let one_of_two = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string", "pattern": "^a"}}});
    assert!(form(&one_of_two).is_err(), "a form is filled in whole, or not at all");
    assert!(form(&json!({"properties": {"a": {"type": "string"}}, "required": [7]})).is_err());
    assert!(form(&json!({"properties": {}, "anyOf": []})).is_err());
    let url = json!({"requestId": "r", "message": "Sign in", "mode": "url", "url": "https://example.com/"});
    assert!(Form::read("elicitation.requested", &url).unwrap_err().contains("browser"));
    let long = json!({"requestId": "r", "question": "x".repeat(WHOLE_MAX + 1)});
    assert_eq!(Form::read("user_input.requested", &long).unwrap_err(), "it is too long");
    for broken in
        [json!({}), json!({"requestId": "r"}), json!({"question": "Why?"}), json!({"requestId": "r", "question": " "})]
    {
        assert!(Form::read("user_input.requested", &broken).is_err(), "{broken}");
    }
}

#[test]
fn a_plan_is_approved_for_going_on_interactively_and_for_nothing_else() {
    let data = |actions: Value| json!({"requestId": "r", "summary": "Paint it.", "planContent": "# Paint\n", "actions": actions});
    let read = |actions| Form::read("exit_plan_mode.requested", &data(actions)).unwrap();
    let plan = read(json!(["autopilot", "autopilot_fleet", "interactive", "exit_only"]));
    assert_eq!(&*plan.text, "Paint it.\n\n# Paint");
    assert_eq!(plan.result(&With::Choice(0)), Ok(json!({"approved": true, "selectedAction": "interactive"})));
    assert_eq!(plan.result(&With::Choice(1)), Ok(json!({"approved": false})));
    assert_eq!(plan.result(&With::Text("Blue".into())), Ok(json!({"approved": false, "feedback": "Blue"})));
    let other = read(json!(["autopilot", "exit_only"]));
    assert_eq!(words(&other), ["Do not approve"], "nothing stands for an action that was not asked for");
    assert!(plan.choices.iter().chain(&other.choices).all(|choice| !choice.result.to_string().contains("auto")));
}

#[test]
fn no_two_questions_have_one_mark() {
    let read = |data: &Value| Form::read("user_input.requested", data).unwrap().mark();
    let asked = json!({"requestId": "r", "question": "Which?", "choices": ["red", "blue"]});
    let change = |key: &str, value: Value| {
        let mut other = asked.clone();
        other[key] = value;
        read(&other)
    };
    assert_eq!(read(&asked), read(&asked.clone()));
    for (key, value) in [
        ("requestId", json!("s")),
        ("question", json!("Which ?")),
        ("choices", json!(["blue", "red"])),
        ("choices", json!(["red,blue"])),
        ("allowFreeform", json!(true)),
    ] {
        assert_ne!(change(key, value.clone()), read(&asked), "{key}: {value}");
    }
}

#[test]
fn an_answer_is_known_again() {
    let sent = json!({"answer": "blue", "wasFreeform": false});
    assert!(is_answer(&json!({"requestId": "r", "answer": "blue", "wasFreeform": false}), &sent));
    for other in
        [json!({"requestId": "r", "answer": "red", "wasFreeform": false}), json!({"requestId": "r"}), json!(null)]
    {
        assert!(!is_answer(&other, &sent), "{other}");
    }
}
