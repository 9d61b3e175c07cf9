use super::*;
use pilotlight_core::confusable::find_confusable;

const SESSION: &str = "36535f61-5c7b-4f09-a70b-2f8aed970001";

pub(in super::super) fn asked(tool: &str, input: &Value) -> Asked {
    let input = json!({"session_id": SESSION, "hook_event_name": EVENT, "tool_name": tool, "tool_input": input});
    Asked::read(input.to_string().as_bytes()).unwrap()
}

fn request(tool: &str, input: &Value) -> Request {
    asked(tool, input).request("r").unwrap()
}

/// As 2.1.332 sends it.
#[test]
fn case_753_a_request_is_shown_whole_and_in_one_text_only_if_nothing_else_matters() {
    let bash = |more: &Value| {
        let mut input = json!({"command": "touch made", "description": "make it"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request("Bash", &input)
    };
    let plain = bash(&json!({"timeout": 1000, "run_in_background": true}));
    assert_eq!((plain.decisive().as_deref(), plain.shown().verbatim), (Some("touch made"), true));
    assert_eq!(plain.shown().text, "Run this command:\n\ntouch made\n\nThe agent says: \"make it\"");
    for more in [json!({"dangerouslyDisableSandbox": true}), json!({"run_in_background": "x"}), json!({"kind": "read"})]
    {
        let request = bash(&more);
        assert_eq!(request.decisive(), None, "{more}");
        let key = more.as_object().unwrap().keys().next().unwrap();
        assert!(request.shown().text.contains(key.as_str()), "{}", request.shown().text);
    }
    let read = request("Read", &json!({"file_path": "/etc/hosts", "limit": 5}));
    assert_eq!((read.decisive().as_deref(), &*read.kind), (Some("/etc/hosts"), "read"));
    let fetch = request("WebFetch", &json!({"url": "https://example.com/", "prompt": "what is it?"}));
    assert_eq!(fetch.decisive().as_deref(), Some("https://example.com/"));
    let write = request("Write", &json!({"file_path": "/p/a", "content": ""}));
    assert_eq!((write.text.as_str(), write.decisive()), ("/p/a\n\n", None));
    let edit = json!({"file_path": "/p/a", "old_string": "a\nb", "new_string": "c", "replace_all": false});
    assert_eq!(request("Edit", &edit).text, "/p/a\n\n-a\n-b\n+c");
    let tool = request("mcp__shop__buy", &json!({"what": "paint"}));
    assert_eq!(tool.text, "server: shop\ntool: buy\n{\n  \"what\": \"paint\"\n}");
}

#[test]
fn case_754_an_unknown_tool_and_unknown_arguments_are_shown_as_they_are() {
    let input = json!({"to": "the moon", "kind": "commands", "fullCommandText": "ls"});
    let shown = request("Teleport", &input);
    assert!(shown.decisive().is_none() && shown.text.contains("the moon") && shown.text.contains("Teleport"));
    for broken in [json!({}), json!({"command": 7}), json!({"command": ["ls"]})] {
        let shown = request("Bash", &broken);
        assert!(shown.decisive().is_none() && shown.text.contains("Bash"), "{broken}");
    }
    let long = "x".repeat(4096);
    let shown = request(&long, &json!({}));
    assert!(&*shown.kind == "a tool" && shown.text.contains(&long));
    let odd = request("B\u{202e}ash", &json!({"command": "ls"}));
    assert!(&*odd.kind == "a tool" && !odd.shown().verbatim && !odd.shown().text.contains('\u{202e}'));
}

#[test]
fn case_754_what_does_not_read_as_it_is_is_no_text_to_approve() {
    for command in ["a\u{0}b", "a\u{202e}b", "a\u{1b}[2Jb", "a\u{200b}b"] {
        let request = request("Bash", &json!({"command": command}));
        assert!(!request.shown().verbatim && find_confusable(&request.text).is_some(), "{command:?}");
    }
}

#[test]
fn case_755_what_asks_for_no_permission_of_a_session_is_not_read() {
    let fine = json!({"session_id": SESSION, "hook_event_name": EVENT, "tool_name": "Bash", "tool_input": {}});
    assert!(Asked::read(fine.to_string().as_bytes()).is_some());
    for (key, value) in [
        ("session_id", json!("../../x")),
        ("session_id", json!(7)),
        ("hook_event_name", json!("PreToolUse")),
        ("tool_name", json!("")),
        ("tool_name", json!(null)),
        ("tool_input", json!("ls")),
    ] {
        let mut other = fine.clone();
        other[key] = value;
        assert!(Asked::read(other.to_string().as_bytes()).is_none(), "{other}");
    }
    let deep = format!("{{\"a\":{}", "[".repeat(10_000));
    for nothing in ["", "{", "[]", "null", "\u{0}", &deep] {
        assert!(Asked::read(nothing.as_bytes()).is_none(), "{nothing}");
    }
}

#[test]
fn case_753_an_answer_never_changes_what_the_tool_is_given() {
    let mut asked = asked("Bash", &json!({"command": "npm run lint"}));
    let decided = |asked: &Asked, decision: &Decision| {
        let output = asked.output(decision).ok()?;
        assert_eq!(output["hookSpecificOutput"]["hookEventName"], EVENT);
        Some(output["hookSpecificOutput"]["decision"].clone())
    };
    assert_eq!(decided(&asked, &Decision::Approve).unwrap(), json!({"behavior": "allow"}));
    assert_eq!(decided(&asked, &Decision::DENY).unwrap(), json!({"behavior": "deny"}));
    let denial = Denial { note: Some("not now".into()), stop: true };
    let denied = decided(&asked, &Decision::Deny(denial)).unwrap();
    assert_eq!(denied, json!({"behavior": "deny", "message": "not now", "interrupt": true}));
    let rules = || "Bash(npm run *) (.claude/settings.local.json)".to_owned();
    assert_eq!(decided(&asked, &Decision::Always { rules: rules() }), None, "none is suggested");
    asked.suggestions = json!([{"type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": [{"toolName": "Bash", "ruleContent": "npm run *"}]}]);
    let always = decided(&asked, &Decision::Always { rules: rules() }).unwrap();
    assert_eq!(always, json!({"behavior": "allow", "updatedPermissions": asked.suggestions}));
    assert_eq!(decided(&asked, &Decision::Always { rules: "every command".into() }), None, "others were shown");
}

#[test]
fn case_753_the_facts_of_a_session_have_the_request() {
    let open = |tool, input: &Value| asked(tool, input).open_request("r", Moment::default()).unwrap();
    let bash = open("Bash", &json!({"command": "make"}));
    assert_eq!(
        (&*bash.kind, bash.asks.as_deref(), bash.over_bridge),
        ("shell", Some("make"), Some(AnswerOptions::default()))
    );
    assert_eq!(open("Bash", &json!({"command": "x".repeat(5000)})).asks, None, "it is reviewed");
    let write = open("Write", &json!({"file_path": "/p/a", "content": "x"}));
    assert_eq!((write.asks, write.paths), (None, vec!["/p/a".into()]));
    assert!(asked("ExitPlanMode", &json!({"plan": "p"})).open_request("r", Moment::default()).is_none());
}
