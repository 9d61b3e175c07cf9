//! Questions at the limits of what is answered from here, and plans.

use pilotlight_core::form::{Form, Kind};
use serde_json::{Value, json};

fn with_choices(count: usize) -> Result<Form, &'static str> {
    let choices: Vec<_> = (0..count).map(|n| format!("choice {n}")).collect();
    Form::read("user_input.requested", &json!({"requestId": "r", "question": "Which?", "choices": choices}))
}

fn with_fields(count: usize, field: &Value) -> Result<Form, &'static str> {
    let fields: serde_json::Map<_, _> = (0..count).map(|n| (format!("field {n}"), field.clone())).collect();
    let schema = json!({"type": "object", "properties": fields});
    Form::read("elicitation.requested", &json!({"requestId": "r", "message": "Fill in", "requestedSchema": schema}))
}

#[test]
fn a_question_of_many_parts_is_answered_where_it_is_asked() {
    let too_long = Err("it is too long");
    assert_eq!(with_choices(100).unwrap().choices.len(), 100);
    assert_eq!(with_choices(101), too_long);
    let text = json!({"type": "string"});
    let Kind::Form(fields) = with_fields(30, &text).unwrap().kind else { panic!("it is a form") };
    assert_eq!(fields.len(), 30);
    assert_eq!(with_fields(31, &text), too_long);
    let listed = |count: usize| json!({"enum": (0..count).map(|n| n.to_string()).collect::<Vec<_>>()});
    assert!(with_fields(2, &listed(100)).is_ok());
    assert_eq!(with_fields(2, &listed(101)), too_long, "a field's choices count, too");
}

#[test]
fn a_question_of_many_bytes_is_answered_where_it_is_asked() {
    let asked = |length: usize| {
        let data = json!({"requestId": "r", "question": "x".repeat(length), "choices": ["yes"]});
        Form::read("user_input.requested", &data)
    };
    let most = 32 * 1024 - "yes".len();
    assert!(asked(most).is_ok());
    assert_eq!(asked(most + 1), Err("it is too long"));
    // Every text that is shown counts.
    let long = "x".repeat(10 * 1024);
    for field in [json!({"type": "string", "description": long}), json!({"enum": [long]})] {
        assert!(with_fields(3, &field).is_ok());
        assert_eq!(with_fields(4, &field), Err("it is too long"));
    }
}

#[test]
fn a_plan_is_shown_once_after_its_summary() {
    let text = |plan: Value| {
        let data = json!({"requestId": "r", "summary": "Paint it.", "planContent": plan, "actions": ["interactive"]});
        Form::read("exit_plan_mode.requested", &data).unwrap().text
    };
    assert_eq!(&*text(json!("# Paint\n\n- twice\n")), "Paint it.\n\n# Paint\n\n- twice");
    for nothing_new in [json!("Paint it."), json!("Paint it.\n"), json!(""), json!("\n"), json!(null), json!(7)] {
        assert_eq!(&*text(nothing_new.clone()), "Paint it.", "{nothing_new}");
    }
}
