use super::*;
use pilotlight_core::event::ToolResult;
use serde_json::{Value, json};

fn body(line: &Value) -> String {
    let text = line.to_string();
    parse(text.as_bytes()).map_or("malformed".into(), |event| format!("{:?}", event.body))
}

fn starts(line: &Value, with: &str) {
    let body = body(line);
    assert!(body.starts_with(with), "{line}: {body}");
}

fn user(content: &Value, more: &Value) -> Value {
    let mut line =
        json!({"type": "user", "uuid": "u", "timestamp": "2026-11-23T19:16:00.000Z", "message": {"content": content}});
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

fn result(more: &Value) -> ToolResult {
    let failed = json!([{"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": [{"type": "text", "text": "no"}]}]);
    let line = user(&failed, more).to_string();
    match parse(line.as_bytes()).unwrap().body {
        Body::ToolDone { result, .. } => result,
        other => panic!("{other:?}"),
    }
}

/// Case 250.
#[test]
fn case_250_only_what_a_person_typed_is_a_prompt() {
    let none = json!({});
    starts(&user(&json!("do it"), &none), "Prompt { joins: false, continuation: false");
    starts(&user(&json!([{"type": "text", "text": "do it"}]), &none), "Prompt { joins: false, continuation: false");
    starts(
        &user(&json!("<task-notification>"), &json!({"origin": {"kind": "task-notification"}})),
        "Prompt { joins: false, continuation: true",
    );
    starts(&json!({"type": "attachment", "attachment": {"type": "queued_command"}}), "Prompt { joins: true");
    for local in ["<command-name>/model</command-name>", "<local-command-stdout>x", "<bash-stdout>x"] {
        starts(&user(&json!(local), &none), "Aside");
    }
    starts(&user(&json!("<bash-input>ls</bash-input>"), &none), "UserTool");
    starts(&user(&json!("x"), &json!({"isMeta": true})), "Aside");
    starts(&user(&json!("x"), &json!({"isCompactSummary": true})), "Aside");
    starts(&user(&json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]), &none), "Abort");
}

#[test]
fn a_denial_is_told_by_who_decided() {
    let rejected = |source: &str, reason: Option<&str>| {
        result(&json!({"permissionDecision": {"decision": "reject", "source": source, "reasonType": reason}}))
    };
    assert_eq!(rejected("config", Some("mode")), ToolResult::Unasked);
    assert_eq!(rejected("config", None), ToolResult::Unasked);
    assert_eq!(rejected("config", Some("rule")), ToolResult::Denied);
    assert_eq!(rejected("hook", Some("hook")), ToolResult::Denied);
    assert_eq!(result(&json!({"toolDenialKind": "user-rejected"})), ToolResult::Denied);
    assert_eq!(result(&json!({"toolDenialKind": "interrupted"})), ToolResult::Failure);
    assert_eq!(result(&json!({})), ToolResult::Failure);
}

#[test]
fn what_was_said_ends_a_turn_only_where_its_model_says_so() {
    let said = |stop: Option<&str>, model: &str, text: &str| json!({"type": "assistant", "message": {"model": model, "stop_reason": stop, "content": [{"type": "text", "text": text}]}});
    starts(&said(Some("tool_use"), "m", "I begin."), "Message { requests_tools: true");
    starts(&said(Some("end_turn"), "m", "Which one?"), "Answer { asks: true");
    starts(&said(None, "m", "I begin"), "Step");
    starts(&said(Some("stop_sequence"), "<synthetic>", "No response requested."), "Aside");
    let failed = json!({"type": "assistant", "isApiErrorMessage": true, "error": "rate_limit", "apiErrorStatus": 429, "message": {"content": []}});
    starts(&failed, "Error { kind: Some");
    let untold = json!({"type": "assistant", "isApiErrorMessage": true, "error": "unknown", "apiErrorStatus": 400, "message": {"content": []}});
    starts(&untold, "Error { kind: None, message: None, status: Some(400) }");
    starts(&json!({"type": "api-request", "requestDigest": "d"}), "ModelAsked");
    starts(&json!({"type": "system", "subtype": "api_error"}), "ModelFailed");
}

/// Case 252: every cut and every swap of a byte is an event or none, and never a panic.
#[test]
fn case_252_broken_lines_are_no_events() {
    let input = json!({"command": "ls", "run_in_background": true, "questions": [{}]});
    let line = json!({"type": "assistant", "timestamp": "2026-11-23T19:16:00.000Z", "message": {"model": "m", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": input}]}});
    let text = line.to_string();
    starts(&line, "ToolStart");
    for cut in 0..text.len() {
        assert!(parse(&text.as_bytes()[..cut]).is_err(), "{cut}");
        let _ = parse_ends(&text.as_bytes()[..cut], &text.as_bytes()[cut..]);
        let mut swapped = text.clone().into_bytes();
        swapped[cut] = b'"';
        let _ = parse(&swapped);
    }
    for bad in [&b""[..], b"null", b"[]", b"{}", b"\0\0", b"{\"type\":7}", b"{\"type\":\"user\",\"message\":7}"] {
        let _ = parse(bad);
    }
}

#[test]
fn a_huge_result_still_closes_its_tool() {
    let content = "x".repeat(2 << 20);
    let line = user(&json!([{"tool_use_id": "t", "type": "tool_result", "content": content}]), &json!({})).to_string();
    let event = parse_ends(&line.as_bytes()[..1 << 20], &line.as_bytes()[line.len() - 1024..]);
    // The order of fields is that of the recordings only there; here the message may come first.
    assert!(event.is_ok_and(|event| matches!(event.body, Body::ToolDone { .. } | Body::Aside)));
}

#[test]
fn a_log_is_told_by_its_beginning() {
    assert!(is_start(b"{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"x\"}\n"));
    assert!(!is_start(b"{\"type\":\"user.message\",\"data\":{\"sessionId\":\"x\"},\"id\":\"\"}\n"));
    assert!(!is_start(b""));
}
