use super::*;
use pilotlight_core::event::ToolResult;

fn line(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-11-21T22:56:48.299Z","ordinal":7,"type":"{kind}","payload":{payload}}}"#)
}

fn body_of(text: &str) -> Body<'_> {
    parse(text.as_bytes()).unwrap().body
}

fn done(output: &str) -> (ToolResult, Option<String>) {
    let payload = format!(r#"{{"type":"function_call_output","call_id":"c","output":{output}}}"#);
    match body_of(&line("response_item", &payload)) {
        Body::ToolDone { result, shell, .. } => (result, shell.map(|shell| shell.read(100).into_owned())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_has_its_command_and_the_mark_of_one_that_leaves_the_sandbox() {
    let plain = r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\": \"echo \\\"a\\\\n\\\" > x\", \"yield_time_ms\": 1}","call_id":"c1"}"#;
    let text = line("response_item", plain);
    let Body::ToolStart { command, asks_unseen, nested, .. } = body_of(&text) else { panic!() };
    let once = command.unwrap().read(100);
    assert_eq!(
        (Text(once.as_bytes()).read(100).into_owned(), asks_unseen, nested),
        ("echo \"a\\n\" > x".into(), false, true)
    );
    let escalated = plain.replace(r#"\"yield"#, r#"\"sandbox_permissions\": \"require_escalated\", \"yield"#);
    assert!(matches!(body_of(&line("response_item", &escalated)), Body::ToolStart { asks_unseen: true, .. }));
    for odd in [r#""""#, r#""{\"cmd\": 7}""#, r#""{\"cmd\": \"never closed""#, "7", r#""\\\\\\""#] {
        let payload = format!(r#"{{"type":"custom_tool_call","name":"apply_patch","arguments":{odd},"call_id":"c1"}}"#);
        assert!(matches!(body_of(&line("response_item", &payload)), Body::ToolStart { command: None, .. }), "{odd}");
    }
    assert_eq!(parse(line("response_item", r#"{"type":"function_call","name":"x"}"#).as_bytes()), Err(Malformed));
}

#[test]
fn an_output_says_what_became_of_its_tool() {
    for (output, result, shell) in [
        (r#""Chunk ID: 1\nProcess exited with code 0\nOutput:\n""#, ToolResult::Success, None),
        (r#""Chunk ID: 1\nProcess exited with code 12\nOutput:\n""#, ToolResult::Failure, None),
        (r#""Chunk ID: 1\nProcess running with session ID 71240\nOutput:\n""#, ToolResult::Success, Some("71240")),
        (r#""approval policy is Never; reject command - you cannot ask""#, ToolResult::Unasked, None),
        (
            r#""exec_command failed: CreateProcess { message: \"Rejected(\\\"rejected by user\\\")\" }""#,
            ToolResult::Denied,
            None,
        ),
        (r#""exec_command failed: no such file""#, ToolResult::Failure, None),
        (r#""aborted by user after 4 s""#, ToolResult::Failure, None),
        (r#""unsupported call: update_plan""#, ToolResult::Failure, None),
        // What a program prints is not Codex's word.
        (r#""Output:\napproval policy is Never; reject""#, ToolResult::Success, None),
        (r#""cat: rejected by user""#, ToolResult::Success, None),
        (r#"[{"type":"input_text","text":"x"}]"#, ToolResult::Success, None),
        ("null", ToolResult::Success, None),
    ] {
        assert_eq!(done(output), (result, shell.map(str::to_owned)), "{output}");
    }
}

#[test]
fn a_turn_ends_with_an_answer_a_question_an_error_or_an_interruption() {
    let over = |payload: &str| format!(r#"{{"type":"task_complete","turn_id":"t"{payload}}}"#);
    for (payload, asks) in [
        (r#","last_agent_message":"Done.""#, false),
        (r#","last_agent_message":"Which one?""#, true),
        (r#","last_agent_message":null,"error":null"#, false),
        ("", false),
    ] {
        assert_eq!(body_of(&line("event_msg", &over(payload))), Body::TurnOver { asks }, "{payload}");
    }
    for (info, kind, status) in [
        (r#"{"http_connection_failed":{"http_status_code":401}}"#, Some("http_connection_failed"), Some(401)),
        (r#""usage_limit_exceeded""#, Some("usage_limit_exceeded"), None),
        ("null", None, None),
        ("[1]", None, None),
    ] {
        let text = line("event_msg", &over(&format!(r#","error":{{"message":"no","codex_error_info":{info}}}"#)));
        let expected = Body::Error { kind: kind.map(|kind| Text(kind.as_bytes())), message: Some(Text(b"no")), status };
        assert_eq!(body_of(&text), expected, "{info}");
    }
    assert_eq!(
        body_of(&line("event_msg", r#"{"type":"turn_aborted","turn_id":"t","reason":"interrupted"}"#)),
        Body::Abort
    );
}

#[test]
fn the_user_is_asked_unless_nobody_or_an_automatic_reviewer_is() {
    for (payload, asks) in [
        (r#"{"approval_policy":"on-request","approvals_reviewer":"user","model":"m","cwd":"/p"}"#, true),
        (r#"{"approval_policy":"on-request","model":"m","cwd":"/p"}"#, true),
        (r#"{"approval_policy":"on-request","approvals_reviewer":"auto_review"}"#, false),
        (r#"{"approval_policy":"never","approvals_reviewer":"user"}"#, false),
        ("{}", false),
        ("null", false),
    ] {
        let text = line("turn_context", payload);
        assert!(matches!(body_of(&text), Body::Context { asks_unseen, .. } if asks_unseen == asks), "{payload}");
    }
}

#[test]
fn a_turn_is_named_by_its_id_and_nothing_else_is_named() {
    let text = line("event_msg", r#"{"type":"task_started","turn_attribution":{"turn_id":"x"},"turn_id":"t7"}"#);
    assert_eq!(parse(text.as_bytes()).unwrap().id, b"t7");
    assert!(is_fresh_prompt(text.as_bytes()));
    let abort = line("event_msg", r#"{"type":"turn_aborted","turn_id":"t7"}"#);
    assert_eq!(parse(abort.as_bytes()).unwrap().id, b"", "it would count as the same line twice");
    let quoted = line("response_item", r#"{"type":"message","text":"task_started"}"#);
    assert!(!is_fresh_prompt(quoted.as_bytes()) && !is_fresh_prompt(b"") && !is_fresh_prompt(b"task_started"));
}

#[test]
fn counts_and_settings_are_no_progress_and_unknown_items_are() {
    for (kind, payload, is_progress) in [
        ("event_msg", r#"{"type":"token_count","info":null}"#, false),
        ("event_msg", r#"{"type":"thread_settings_applied"}"#, false),
        ("token_usage_record", "{}", false),
        ("world_state", "{}", false),
        ("novelty", "{}", false),
        ("event_msg", r#"{"type":"item_completed","item":{"type":"AgentMessage"}}"#, true),
        ("response_item", r#"{"type":"novelty"}"#, true),
        ("compacted", "{}", false),
    ] {
        assert_eq!(body_of(&line(kind, payload)).is_progress(), is_progress, "{kind} {payload}");
    }
}

#[test]
fn what_is_no_event_is_malformed() {
    let whole = line("event_msg", r#"{"type":"task_complete"}"#);
    for broken in ["", "null", "[]", "{}", "{\"a\":1}", &whole[1..], &whole[..whole.len() - 1], "\u{0}\u{0}"] {
        assert_eq!(parse(broken.as_bytes()), Err(Malformed), "{broken}");
    }
    assert_eq!(parse(whole.replace("2026-11-21", "tomorrow").as_bytes()), Err(Malformed));
    let spaced = whole.replace(':', " : ").replace(" : 56 : 48", ":56:48").replace("22 : ", "22:");
    assert!(parse(spaced.as_bytes()).is_ok(), "{spaced}");
}

#[test]
fn of_a_line_that_is_too_long_the_beginning_is_read() {
    let text = line("response_item", r#"{"type":"function_call_output","id":"f","call_id":"c9","output":"xxxx"}"#);
    let event = parse_ends(&text.as_bytes()[..text.len() - 6], b"").unwrap();
    assert!(matches!(event.body, Body::ToolDone { call: Text(b"c9"), result: ToolResult::Success, .. }));
    assert_eq!(parse_ends(b"{\"timestamp\":\"2026", b""), Err(Malformed));
}

#[test]
fn the_first_prompt_is_the_users() {
    let item = r#"{"type":"item_completed","item":{"type":"UserMessage","id":"u","content":[{"type":"text","text":"Fix \"it\"","text_elements":[]}]}}"#;
    assert_eq!(prompt_of(line("event_msg", item).as_bytes()).as_deref(), Some("Fix \"it\""));
    for other in [
        item.replace("UserMessage", "AgentMessage"),
        item.replace("[{", "[7,{"),
        item.replace("\"text\":\"Fix", "\"x\":\"Fix"),
    ] {
        assert_eq!(prompt_of(line("event_msg", &other).as_bytes()), None, "{other}");
    }
}
