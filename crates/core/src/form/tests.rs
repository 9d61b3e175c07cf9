//! Forms as Copilot sends them, and the answers sent back.

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
fn a_question_takes_its_choices_and_free_text_if_allowed() {
    let data = json!({"requestId": "r", "question": "Which color?", "choices": ["red", "blue"], "allowFreeform": true});
    let asked = Form::read("user_input.requested", &data).unwrap();
    assert_eq!((&*asked.text, words(&asked), asked.takes_text), ("Which color?", vec!["red", "blue"], true));
    assert_eq!(asked.result(&FormAnswer::Choice(1)), Ok(json!({"answer": "blue", "wasFreeform": false})));
    assert_eq!(asked.result(&FormAnswer::Text("mauve".into())), Ok(json!({"answer": "mauve", "wasFreeform": true})));
    for no in [FormAnswer::Choice(2), FormAnswer::Text(" ".into()), FormAnswer::Decline, FormAnswer::Cancel] {
        assert!(asked.result(&no).is_err(), "{no:?}");
    }
    for (free, takes_text) in [(json!(false), false), (json!(null), false), (json!(true), true)] {
        let data = json!({"requestId": "r", "question": "Which?", "choices": ["red"], "allowFreeform": free});
        let asked = Form::read("user_input.requested", &data).unwrap();
        assert_eq!((asked.takes_text, asked.result(&FormAnswer::Text("x".into())).is_ok()), (takes_text, takes_text));
    }
    let open = Form::read("user_input.requested", &json!({"requestId": "r", "question": "Why?"})).unwrap();
    assert!(open.takes_text && open.choices.is_empty());
}

#[test]
fn a_form_of_one_simple_field_is_filled_in() {
    let listed = field(&json!({"type": "string", "enum": ["test", "prod"], "title": "Database"})).unwrap();
    assert_eq!((&*listed.text, words(&listed)), ("asker: Which? — Database", vec!["test", "prod"]));
    assert_eq!(listed.result(&FormAnswer::Choice(1)), Ok(json!({"action": "accept", "content": {"db": "prod"}})));
    assert_eq!(listed.result(&FormAnswer::Decline), Ok(json!({"action": "decline"})));
    assert_eq!(listed.result(&FormAnswer::Cancel), Ok(json!({"action": "cancel"})));
    assert!(listed.result(&FormAnswer::Text("prod".into())).is_err(), "a text is not a choice");
    for named in [
        json!({"type": "string", "enum": ["t", "prod"], "enumNames": ["Test", "prod"]}),
        json!({"type": "string", "oneOf": [{"const": "t", "title": "Test"}, {"const": "prod"}]}),
    ] {
        let named = field(&named).unwrap();
        assert_eq!(words(&named), ["Test (t)", "prod"], "a name does not hide what is sent");
        assert_eq!(named.result(&FormAnswer::Choice(0)), Ok(json!({"action": "accept", "content": {"db": "t"}})));
    }
    let yes = field(&json!({"type": "boolean"})).unwrap();
    assert_eq!(yes.result(&FormAnswer::Choice(1)), Ok(json!({"action": "accept", "content": {"db": false}})));
    let free = field(&json!({"type": "string", "minLength": 2, "maxLength": 3})).unwrap();
    assert_eq!(free.result(&FormAnswer::Text("abc".into())), Ok(json!({"action": "accept", "content": {"db": "abc"}})));
    assert!(
        free.result(&FormAnswer::Text("a".into())).is_err() && free.result(&FormAnswer::Text("abcd".into())).is_err()
    );
    let nothing = form(&json!({"type": "object", "properties": {}})).unwrap();
    assert_eq!(nothing.result(&FormAnswer::Choice(0)), Ok(json!({"action": "accept", "content": {}})));
}

#[test]
fn a_form_of_several_fields_is_filled_in_whole() {
    let asked =
        form(&json!({"properties": {"coats": {"type": "integer", "minimum": 1}, "color": {"enum": ["red", "blue"]},
        "note": {"type": "string"}}, "required": ["color", "coats"]}))
        .unwrap();
    assert!(asked.is_filled_in() && asked.fields().len() == 3);
    let given = |values: Value| asked.result(&FormAnswer::Fields(values.as_object().unwrap().clone()));
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
    assert!(asked.result(&FormAnswer::Text("blue".into())).is_err() && asked.result(&FormAnswer::Choice(0)).is_err());
    assert_eq!(asked.result(&FormAnswer::Decline), Ok(json!({"action": "decline"})));
    let number = field(&json!({"type": "number", "maximum": 5})).unwrap();
    assert_eq!(number.result(&FormAnswer::Text("4.5".into())), Ok(json!({"action": "accept", "content": {"db": 4.5}})));
    assert!(number.takes_text && number.result(&FormAnswer::Text("6".into())).is_err());
    let several = field(&json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}})).unwrap();
    let given = FormAnswer::Fields(json!({"db": ["b"]}).as_object().unwrap().clone());
    assert_eq!(several.result(&given), Ok(json!({"action": "accept", "content": {"db": ["b"]}})));
}

#[test]
fn a_form_not_fully_understood_cannot_be_answered() {
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
    for (mode, url) in [
        (json!("url"), json!("https://example.com/")),
        (json!("url"), json!(null)),
        (json!("form"), json!("https://example.com/")),
        (json!(null), json!("https://example.com/")),
    ] {
        let page = json!({"requestId": "r", "message": "Sign in", "mode": mode, "url": url});
        assert!(Form::read("elicitation.requested", &page).unwrap_err().contains("browser"), "{page}");
    }
    let long = json!({"requestId": "r", "question": "x".repeat(WHOLE_MAX + 1)});
    assert_eq!(Form::read("user_input.requested", &long).unwrap_err(), "it is too long");
    for broken in
        [json!({}), json!({"requestId": "r"}), json!({"question": "Why?"}), json!({"requestId": "r", "question": " "})]
    {
        assert!(Form::read("user_input.requested", &broken).is_err(), "{broken}");
    }
}

#[test]
fn a_plan_is_approved_for_interactive_mode_only() {
    let data = |actions: Value| json!({"requestId": "r", "summary": "Paint it.", "planContent": "# Paint\n", "actions": actions});
    let read = |actions| Form::read("exit_plan_mode.requested", &data(actions)).unwrap();
    let plan = read(json!(["autopilot", "autopilot_fleet", "interactive", "exit_only"]));
    assert_eq!(&*plan.text, "Paint it.\n\n# Paint");
    assert_eq!(plan.result(&FormAnswer::Choice(0)), Ok(json!({"approved": true, "selectedAction": "interactive"})));
    assert_eq!(plan.result(&FormAnswer::Choice(1)), Ok(json!({"approved": false})));
    assert_eq!(plan.result(&FormAnswer::Text("Blue".into())), Ok(json!({"approved": false, "feedback": "Blue"})));
    let other = read(json!(["autopilot", "exit_only"]));
    assert_eq!(words(&other), ["Do not approve"], "only actions on offer can be approved");
    assert!(plan.choices.iter().chain(&other.choices).all(|choice| !choice.result.to_string().contains("auto")));
}

#[test]
fn different_questions_have_different_marks() {
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
fn a_reported_answer_is_recognized() {
    let sent = json!({"answer": "blue", "wasFreeform": false});
    assert!(is_answer(&json!({"requestId": "r", "answer": "blue", "wasFreeform": false}), &sent));
    for other in
        [json!({"requestId": "r", "answer": "red", "wasFreeform": false}), json!({"requestId": "r"}), json!(null)]
    {
        assert!(!is_answer(&other, &sent), "{other}");
    }
}

#[test]
fn only_a_form_or_a_plan_can_be_declined() {
    let asked = json!({"requestId": "r", "question": "Why?"});
    let plan = json!({"requestId": "r", "summary": "Paint it.", "actions": ["interactive"]});
    for (form, can) in [
        (Form::read("user_input.requested", &asked), false),
        (Form::read("exit_plan_mode.requested", &plan), true),
        (form(&json!({"type": "object", "properties": {}})), true),
        (field(&json!({"type": "boolean"})), true),
    ] {
        let form = form.unwrap();
        assert_eq!((form.can_be_declined(), form.result(&FormAnswer::Decline).is_ok()), (can, can), "{form:?}");
    }
}

#[test]
fn what_a_field_takes_is_described() {
    let words = |schema: Value, is_required: bool| Field::read("db", &schema, is_required).unwrap().words();
    let several = |least: u64, most: u64| {
        words(json!({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": least, "maxItems": most}), true)
    };
    assert_eq!(words(json!({"type": "array", "items": {"enum": ["a"]}}), true), "any of its choices");
    assert_eq!(several(0, 2), "any of its choices, at most 2");
    assert_eq!(several(1, u64::MAX), "any of its choices, at least 1");
    assert_eq!(several(1, 2), "any of its choices, 1 to 2");
    assert_eq!(words(json!({"type": "boolean"}), true), "one of its choices");
    assert_eq!(words(json!({"type": "string"}), false), "a text; may be left out");
    assert_eq!(words(json!({"type": "string", "minLength": 2}), true), "a text, at least 2 characters");
    assert_eq!(words(json!({"type": "number", "maximum": 0.5}), false), "a number, at most 0.5; may be left out");
    assert_eq!(words(json!({"type": "integer"}), true), "a whole number");
}

#[test]
fn a_blank_text_is_no_answer_to_any_field() {
    let free = field(&json!({"type": "string"})).unwrap();
    let several = form(&json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}})).unwrap();
    for blank in ["", " ", "\n\t"] {
        assert!(free.fields()[0].value(&[blank]).is_err(), "{blank:?}");
        assert!(free.result(&FormAnswer::Text(blank.into())).is_err(), "{blank:?}");
        let given = json!({"a": blank, "b": "x"}).as_object().unwrap().clone();
        assert!(several.result(&FormAnswer::Fields(given)).is_err(), "{blank:?}");
    }
    let left_out = json!({"b": "x"}).as_object().unwrap().clone();
    assert!(several.result(&FormAnswer::Fields(left_out)).is_ok(), "an optional one may be left out");
}

/// Copilot's event leaves out which fields are required, and their limits; the bridge adds what the agent stated.
#[test]
fn case_201f_a_form_keeps_the_limits_that_the_agent_stated() {
    let field = |of: Value| json!({"type": "object", "properties": {"coats": of}});
    let asked =
        json!({"properties": {"coats": {"type": "integer", "minimum": 1, "maximum": 5}}, "required": ["coats"]});
    let data = |schema: Value, asked: &Value| json!({"requestId": "r", "toolCallId": "c", "message": "How many?", "requestedSchema": schema, "asked": asked});
    let read = |data: Value| Form::read("elicitation.requested", &data);
    let form = read(data(field(json!({"type": "integer"})), &asked)).unwrap();
    assert_eq!(form.fields()[0].words(), "a whole number, 1 to 5");
    for no in ["0", "6", "2.5"] {
        assert!(form.result(&FormAnswer::Text(no.into())).is_err(), "{no}");
    }
    assert!(form.result(&FormAnswer::Text("5".into())).is_ok());
    // What the event itself says counts more, and what is no limit is ignored.
    let own = read(data(field(json!({"type": "integer", "maximum": 9})), &asked)).unwrap();
    assert_eq!(own.fields()[0].words(), "a whole number, 1 to 9");
    for strange in
        [json!(null), json!("x"), json!({"properties": {"coats": {"minimum": "1", "$ref": "x"}}, "required": 1})]
    {
        let form = read(data(field(json!({"type": "integer"})), &strange)).unwrap();
        assert_eq!(form.fields()[0].words(), "a whole number; may be left out", "{strange}");
    }
}

/// Beside the choices of the agent's own form, the terminal offers "Other".
#[test]
fn case_200d_other_words_are_an_answer_to_the_agents_own_form() {
    let form = |more: (&str, Value), of: Value| {
        let mut data = json!({"requestId": "r", "message": "Which?", "requestedSchema": {"properties": {"db": of}}});
        data[more.0] = more.1;
        Form::read("elicitation.requested", &data).unwrap()
    };
    let listed = json!({"type": "string", "enum": ["test", "prod"]});
    let agents = form(("toolCallId", json!("c")), listed.clone());
    assert!(agents.takes_text && words(&agents) == ["test", "prod"]);
    let accepted = |value: Value| Ok(json!({"action": "accept", "content": {"db": value}}));
    assert_eq!(agents.result(&FormAnswer::Text("dev".into())), accepted(json!("dev")));
    assert!(!form(("elicitationSource", json!("asker")), listed).takes_text);
    let yes = form(("toolCallId", json!("c")), json!({"type": "boolean"}));
    for (text, value) in [("yes", json!(true)), ("TRUE", json!(true)), ("no", json!(false)), ("later", json!("later"))]
    {
        assert_eq!(yes.result(&FormAnswer::Text(text.into())), accepted(value), "{text}");
    }
}

#[test]
fn a_form_without_a_choice_or_a_text_is_filled_in() {
    let whole = field(&json!({"type": "string", "enum": ["a", "b"]})).unwrap();
    let is_filled_in = |choices: bool, takes_text: bool| {
        let choices = if choices { whole.choices.clone() } else { Vec::new() };
        Form { choices, takes_text, ..whole.clone() }.is_filled_in()
    };
    assert!(is_filled_in(false, false));
    assert!(!is_filled_in(true, false) && !is_filled_in(false, true) && !is_filled_in(true, true));
}

#[test]
fn only_the_agents_own_form_takes_other_words() {
    let takes_other = |source: Value, call: Value| {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "enum": ["t", "prod"]},
            "b": {"type": "string", "enum": ["t", "prod"]},
        }});
        let data = json!({"requestId": "r", "elicitationSource": source, "toolCallId": call, "message": "Which?",
            "requestedSchema": schema});
        Form::read("elicitation.requested", &data).unwrap().fields()[0].takes_other
    };
    assert!(takes_other(json!(null), json!("t1")));
    assert!(!takes_other(json!("asker"), json!("t1")) && !takes_other(json!(null), json!(null)));
}

#[test]
fn case_653_an_answer_is_repeated_to_who_gave_it() {
    let asked = json!({"requestId": "r", "question": "Which colours?", "choices": ["Warm colours", "cool"]});
    let form = Form::read("user_input.requested", &asked).unwrap();
    assert_eq!(form.said(&FormAnswer::Choice(0)), "answered “Warm colours”");
    assert_eq!(form.said(&FormAnswer::Text("a\u{1b}[2J b".into())), "answered “a [2J b”");
    assert_eq!(form.said(&FormAnswer::Decline), "declined to answer");
    assert!(form.said(&FormAnswer::Text("x".repeat(999))).chars().count() < 80);
}
