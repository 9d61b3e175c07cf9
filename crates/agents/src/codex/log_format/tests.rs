use super::*;
use pilotlight_core::event::{Limit, ToolResult};

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

/// As 0.169.0 wrote it.
#[test]
fn case_768_a_count_of_tokens_tells_the_context_and_its_size() {
    let usage = |tokens: u32| format!(r#"{{"input_tokens":100,"cached_input_tokens":0,"total_tokens":{tokens}}}"#);
    let info = format!(
        r#"{{"total_token_usage":{},"last_token_usage":{},"model_context_window":258400}}"#,
        usage(330),
        usage(110)
    );
    let tokens = |kind: &str, info: &str| {
        let text = line("event_msg", &format!(r#"{{"type":"{kind}","info":{info},"rate_limits":{{"primary":null}}}}"#));
        parse(text.as_bytes()).unwrap().besides.tokens.map(|tokens| (tokens.context, tokens.window, tokens.total))
    };
    assert_eq!(tokens("token_count", &info), Some((Some(110), Some(258_400), Some(330))));
    assert_eq!(tokens("token_count", "null"), Some((None, None, None)));
    assert_eq!(
        tokens("token_count", r#"{"last_token_usage":[7],"model_context_window":"big"}"#),
        Some((None, None, None))
    );
    assert_eq!(tokens("task_started", &info), None);
}

#[test]
fn case_769_of_the_limits_that_are_reached_the_last_to_end_counts() {
    let limit = |limits: &str| {
        let text = line("event_msg", &format!(r#"{{"type":"token_count","info":null,"rate_limits":{limits}}}"#));
        parse(text.as_bytes()).unwrap().besides.limit
    };
    let window =
        |used: &str, resets: &str| format!(r#"{{"used_percent":{used},"window_minutes":300,"resets_at":{resets}}}"#);
    let both = |one: String, other: String| {
        format!(r#"{{"limit_id":"codex","primary":{one},"secondary":{other},"credits":null}}"#)
    };
    let until = |seconds: i64| Some(Limit::Until(Time(seconds * 1000)));
    assert_eq!(limit(&both(window("100.0", "1795960000"), window("40.5", "1796000000"))), until(1_795_960_000));
    assert_eq!(limit(&both(window("100.0", "1795960000"), window("101", "1796000000"))), until(1_796_000_000));
    assert_eq!(limit(&both(window("99.9", "1795960000"), "null".into())), Some(Limit::Free));
    assert_eq!(limit(&both("null".into(), "null".into())), None, "it tells of none");
    assert_eq!(limit("null"), None);
    assert_eq!(limit(&both(window("100", "null"), "[7]".into())), Some(Limit::Free));
    assert_eq!(limit(&both(window("100", "9223372036854775807"), "7".into())), Some(Limit::Until(Time(i64::MAX))));
}

#[test]
fn case_770_what_the_model_says_is_its_message() {
    let said = |kind: &str, payload: &str| {
        let text = line(kind, payload);
        parse(text.as_bytes()).unwrap().besides.message.map(|text| text.read(600).into_owned())
    };
    let message = |role: &str| {
        format!(
            r#"{{"type":"message","role":"{role}","content":[{{"type":"output_text","text":"It \u001b[31mis."}}]}}"#
        )
    };
    assert_eq!(said("response_item", &message("assistant")).as_deref(), Some("It \u{1b}[31mis."));
    assert_eq!(said("response_item", &message("user")), None);
    assert_eq!(said("event_msg", r#"{"type":"task_complete","last_agent_message":"Done."}"#).as_deref(), Some("Done."));
    assert_eq!(said("event_msg", r#"{"type":"task_complete","last_agent_message":null}"#), None);
}
