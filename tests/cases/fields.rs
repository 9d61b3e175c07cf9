//! The fields of a line that some rule needs, and what they are kept for.

use super::story::Story;
use pilotlight_agents::copilot::log_format::is_shutdown;
use pilotlight_core::time::Time;
use serde_json::{Value, json};

#[test]
fn the_model_is_the_one_last_named() {
    let named = |story: &Story, at: i32| story.facts(at).model.map(String::from);
    let answer = |story: Story, at: i32, model: &str| {
        story.event(at, "assistant.message", json!({ "model": model, "content": "Done.", "toolRequests": [] }))
    };
    let story = answer(Story::new().prompt(0).round(0), 1, "second");
    let story = story.event(2, "session.model_change", json!({ "previousModel": "second", "newModel": "third" }));
    let story = story.event(3, "session.resume", json!({ "selectedModel": "fourth" })).prompt(4);
    assert_eq!(
        [0, 1, 2, 3, 4].map(|at| named(&story, at).unwrap()),
        ["fake-model", "second", "third", "fourth", "fourth"]
    );
    assert_eq!(named(&Story::cut().prompt(0), 0), None);
}

#[test]
fn the_size_of_the_context_is_that_of_the_root() {
    let usage = |tokens: i64| json!({ "usage": { "outputTokens": 7, "inputTokens": tokens } });
    let story = Story::prompted().event(1, "session.usage_record", usage(100));
    let story = story.by("a1").event(2, "session.usage_record", usage(999));
    let story = story.event(3, "session.usage_record", json!({ "usage": {} }));
    assert_eq!([0, 1, 2, 3].map(|at| story.facts(at).context_tokens), [None, Some(100), Some(100), Some(100)]);
}

/// Only such a text may be approved where it is shown.
#[test]
fn the_text_of_a_request_describes_it_fully_or_is_unknown() {
    let asks = |request: Value| {
        let data = json!({ "requestId": "r1", "permissionRequest": request });
        let mut facts = Story::prompted().event(1, "permission.requested", data).facts(1);
        facts.requests.remove(0).asks.map(String::from)
    };
    let all = |kind: &str| {
        json!({ "kind": kind, "fullCommandText": "make deploy", "path": "/etc/hosts", "url": "https://example.com/",
            "extensionName": "an extension", "intention": "deploy" })
    };
    for (kind, text) in [
        ("shell", Some("make deploy")),
        ("read", Some("/etc/hosts")),
        ("url", Some("https://example.com/")),
        ("extension-env-access", Some("an extension")),
        ("write", None),
        ("mcp", None),
        ("unheard-of", None),
    ] {
        assert_eq!(asks(all(kind)).as_deref(), text, "{kind}");
    }
    assert_eq!(asks(json!({ "kind": "shell", "path": "/etc/hosts" })), None, "no other field takes its place");
}

#[test]
fn a_tool_works_on_its_command_or_else_its_path() {
    let works_on = |arguments: Value| {
        let data = json!({ "toolCallId": "t1", "toolName": "any", "arguments": arguments });
        let mut turn = Story::prompted().event(1, "tool.execution_start", data).facts(1).turn.unwrap();
        turn.tools.remove(0).command.map(String::from)
    };
    assert_eq!(works_on(json!({ "command": "make" })).as_deref(), Some("make"));
    assert_eq!(works_on(json!({ "path": "/etc/hosts" })).as_deref(), Some("/etc/hosts"));
    assert_eq!(works_on(json!({ "command": "view", "path": "/etc/hosts" })).as_deref(), Some("view"));
    assert_eq!(works_on(json!({ "description": "x", "mode": "sync" })), None);
    assert_eq!(works_on(json!("make")), None);
}

/// A log read backwards is not read beyond a shutdown for what runs in the background.
#[test]
fn a_shutdown_is_recognized_by_its_type_alone() {
    let last = |story: &Story| is_shutdown(story.lines().last().unwrap());
    assert!(last(&Story::prompted().shutdown(1)));
    assert!(!last(&Story::prompted()) && !last(&Story::prompted().abort(1)) && !last(&Story::prompted().resume(1)));
    let quoted = Story::prompted().event(1, "session.info", json!({ "message": "\"type\":\"session.shutdown\"" }));
    assert!(!last(&quoted));
}

/// In the form that Copilot writes, too.
#[test]
fn a_time_that_does_not_exist_is_not_read() {
    let parse = |time: &str| Time::parse(format!("2026-11-{time}Z").as_bytes());
    assert!(parse("28T23:59:59.999").is_some() && parse("30T00:00:00.000").is_some());
    for wrong in ["31T00:00:00.000", "00T00:00:00.000", "20T24:00:00.000", "20T18:60:25.003", "20T18:07:61.003"] {
        assert_eq!(parse(wrong), None, "{wrong}");
    }
    // A leap second counts as the one before it.
    assert_eq!(parse("20T18:07:60.000"), parse("20T18:07:59.000"));
    for month in ["00", "13"] {
        assert_eq!(Time::parse(format!("2026-{month}-20T18:07:25.003Z").as_bytes()), None, "{month}");
    }
}
