use super::*;
use pilotlight_core::event::{Limit, ScheduleChange, ToolResult};
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

/// As 2.1.332 writes it, with the result of the tool that a hook has answered for.
#[test]
fn case_752_the_log_says_that_a_hook_decided() {
    let decided = |key: &str, value: &str| {
        let mut decided = json!({"type": "hook_permission_decision", "decision": "allow", "toolUseID": "t",
            "hookEvent": "PermissionRequest"});
        decided[key] = value.into();
        body(&json!({"type": "attachment", "attachment": decided}))
    };
    let is_told = |body: &str, approved: bool| {
        body.starts_with("PermissionDone") && body.contains(&format!("approved: {approved}"))
    };
    assert!(is_told(&decided("decision", "allow"), true) && is_told(&decided("decision", "deny"), false));
    assert_eq!(decided("hookEvent", "PreToolUse"), "Aside");
    assert_eq!(decided("type", "hook_success"), "Aside");
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

/// As the program writes it for a subscription; with a key it tells of no end.
#[test]
fn case_769_an_error_tells_when_the_limit_of_the_account_ends() {
    let limit = |more: Value| {
        let mut line = json!({"type": "assistant", "timestamp": "2026-11-29T12:58:11.450Z", "error": "rate_limit", "apiErrorStatus": 429, "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "resets 3pm"}]}});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parse(line.to_string().as_bytes()).unwrap().besides.limit
    };
    let quota = json!({"status": "rejected", "resetsAt": 1_795_960_000, "rateLimitType": "five_hour", "unifiedWindows": {"five_hour": {"resetsAt": 7}}});
    let told = limit(json!({"isApiErrorMessage": true, "quotaLimits": quota}));
    assert_eq!(told, Some(Limit::Until(Time(1_795_960_000_000))));
    assert_eq!(limit(json!({"isApiErrorMessage": true})), None, "its words are not guessed at");
    assert_eq!(limit(json!({"quotaLimits": quota})), None);
    assert_eq!(limit(json!({"isApiErrorMessage": true, "quotaLimits": {"resetsAt": "soon"}})), None);
}

#[test]
fn case_770_what_the_model_says_is_its_message() {
    let said = |model: &str, block: Value| {
        let line = json!({"type": "assistant", "timestamp": "2026-11-29T12:44:28.600Z", "message": {"model": model, "stop_reason": "end_turn", "content": [block]}});
        parse(line.to_string().as_bytes()).unwrap().besides.message.map(|text| text.read(600).into_owned())
    };
    let text = json!({"type": "text", "text": "It is done."});
    assert_eq!(said("m", text.clone()).as_deref(), Some("It is done."));
    assert_eq!(said("<synthetic>", text), None);
    assert_eq!(said("m", json!({"type": "thinking", "thinking": "hm", "text": "hm"})), None);
    assert_eq!(said("m", json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"text": "x"}})), None);
}

#[test]
fn case_768_a_message_tells_what_its_request_used_of_the_context() {
    let used = |model: &str, usage: Value| {
        let line = json!({"type": "assistant", "timestamp": "2026-11-29T12:44:28.600Z", "message": {"model": model, "stop_reason": "end_turn", "content": [{"type": "text", "text": "It is done."}], "usage": usage}});
        parse(line.to_string().as_bytes()).unwrap().besides.tokens.and_then(|tokens| tokens.context)
    };
    let usage = json!({"input_tokens": 100, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 3000, "output_tokens": 4, "output_tokens_details": {"thinking_tokens": 9}, "server_tool_use": {"web_search_requests": 7}});
    assert_eq!(used("claude-opus-5-5", usage.clone()), Some(3124));
    assert_eq!(used("<synthetic>", usage), None, "it is of no request");
    assert_eq!(used("m", json!(null)), None);
    assert_eq!(used("m", json!({"input_tokens": -5, "output_tokens": "many"})), Some(0));
}

/// A change of a schedule in words.
fn told(change: Option<&ScheduleChange<'_>>) -> String {
    match change {
        None => "none".into(),
        Some(ScheduleChange::Armed { id, at, after, repeats, persists }) => {
            let (id, at) = (id.read(40), at.map(|at| at.0));
            format!("{id} at {at:?} after {:?}, {repeats} {persists}", after.map(|after| after.0))
        }
        Some(ScheduleChange::Fired { id, every }) => format!("{} fired, {:?}", id.read(40), every.map(|every| every.0)),
        Some(ScheduleChange::Cancelled { id }) => format!("{} cancelled", id.read(40)),
    }
}

/// As 2.1.332 wrote them.
#[test]
fn case_765_a_schedule_is_read_with_its_firing_and_its_end() {
    let schedule = |line: &Value| {
        let line = line.to_string();
        told(parse(line.as_bytes()).unwrap().besides.schedule.as_ref())
    };
    let done = json!([{"type": "tool_result", "tool_use_id": "t", "content": "Scheduled."}]);
    let made = |result: Value| schedule(&user(&done, &json!({ "toolUseResult": result })));
    let job = json!({"id": "a50f44ba", "humanSchedule": "Every minute", "recurring": true, "durable": false, "nextFireAt": 1_795_956_319_342.926_8, "maxAgeMs": 2_592_000_000_i64});
    assert_eq!(made(job), "a50f44ba at Some(1795956319342) after None, true false");
    let wakeup = json!({"scheduledFor": 1_795_956_360_000_i64, "clampedDelaySeconds": 60, "wasClamped": false});
    assert_eq!(made(wakeup), "loop at Some(1795956360000) after None, false true");
    assert_eq!(made(json!({"id": "a50f44ba"})), "a50f44ba cancelled");
    assert_eq!(made(json!({"stdout": "1", "interrupted": false})), "none");
    let fire = |more: Value| {
        let mut line = json!({"type": "system", "subtype": "scheduled_task_fire", "timestamp": "2026-11-29T12:45:19.427Z", "taskId": "a50f44ba", "cron": "* * * * *", "prompt": "Tick"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        schedule(&line)
    };
    assert_eq!(fire(json!({})), "a50f44ba fired, Some(60000)");
    assert_eq!(
        fire(json!({"cron": "46 12 * * *", "taskKind": "loop", "cronKind": "loop"})),
        "loop fired, Some(86400000)"
    );
    // What another tool says of an id, or what a line with another meaning holds.
    assert_eq!(schedule(&json!({"type": "system", "subtype": "turn_duration", "taskId": "x"})), "none");
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
