//! What works behind a session, and how full its context is, as the real program tells them.

use crate::control::hosts::{name_hosts, serves};
use crate::support::synthetic::{Folder, User};
use std::time::Duration;

/// An event that a sub-agent writes into the log of its session.
fn by(session: &Folder, id: &str, kind: &str, data: &str) -> String {
    let line = session.line(Duration::ZERO, kind, data);
    line.replacen("},\"id\":", &format!("}},\"agentId\":\"{id}\",\"id\":"), 1)
}

fn page(user: &User, session: &Folder) -> String {
    String::from_utf8(user.run(&["explain", &session.id]).stdout).unwrap()
}

#[test]
fn case_767_sub_agents_are_listed_and_the_one_that_asks_is_named() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    session.log_event("tool.execution_start", r#"{"toolCallId":"t1","toolName":"task"}"#);
    let started = r#"{"toolCallId":"t1","agentName":"explore","agentDisplayName":"exp1","agentDescription":"look\u001b[31m around"}"#;
    session.append(by(&session, "s1", "subagent.started", started));
    session.append(by(&session, "s2", "subagent.started", r#"{"agentDisplayName":"exp2","agentDescription":""}"#));
    let tool = r#"{"toolCallId":"t2","toolName":"bash","arguments":{"command":"npm test"}}"#;
    session.append(by(&session, "s1", "tool.execution_start", tool));
    let row = user.row(&session).unwrap();
    let list = row["background"]["list"].as_array().unwrap();
    assert_eq!(list.len(), 2, "{row}");
    assert_eq!((&list[0]["does"], &list[1]["does"]), (&"bash: npm test".into(), &serde_json::Value::Null), "{row}");
    let name = list[0]["name"].as_str().unwrap();
    assert!(name.starts_with("look") && name.ends_with("around") && !name.contains('\u{1b}'), "{name:?}");
    let lines = page(&user, &session);
    assert!(lines.contains(": bash: npm test, for ") && lines.contains("last activity "), "{lines}");
    let asks = r#"{"requestId":"r1","permissionRequest":{"kind":"shell","toolCallId":"t2"}}"#;
    session.append(by(&session, "s1", "permission.requested", asks));
    let row = user.row(&session).unwrap();
    assert!(row["because"].as_str().unwrap().contains("by its sub-agent: look"), "{row}");
    assert!(row["request"]["by"].as_str().unwrap().starts_with("look"), "{row}");
    let lines = page(&user, &session);
    assert!(lines.contains("by its sub-agent look"), "{lines}");
    session.append(by(&session, "s1", "subagent.completed", r#"{"toolCallId":"t1"}"#));
    session.append(by(&session, "s2", "subagent.completed", "{}"));
    assert_eq!(user.row(&session).unwrap()["background"]["list"], serde_json::json!([]));
}

#[test]
fn case_767_of_5000_sub_agents_a_bounded_number_is_listed() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let lines: String = (0..5000).map(|n| by(&session, &format!("s{n}"), "subagent.started", "{}")).collect();
    session.append(lines);
    let row = user.row(&session).unwrap();
    assert_eq!(row["background"]["list"].as_array().unwrap().len(), 50, "{}", row["because"]);
    let lines = page(&user, &session);
    assert!(lines.lines().count() < 80 && lines.contains("30 more"), "{lines}");
}

#[test]
fn case_768_how_full_a_context_is() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let used = |tokens: u32| format!(r#"{{"usage":{{"inputTokens":{tokens},"maxPromptTokens":128000}}}}"#);
    session.log_event("session.usage_record", &used(64_000));
    let row = user.row(&session).unwrap();
    assert_eq!(row["context"], serde_json::json!({"used": 64000, "window": 128_000}));
    assert!(!row["because"].as_str().unwrap().contains("nearly full"), "{row}");
    let lines = page(&user, &session);
    assert!(lines.contains("64000 of 128000 tokens (50 %)"), "{lines}");
    let watch = user.watch();
    watch.wait_row(&session, "half full", |row| row["context"]["used"] == 64_000);
    session.log_event("session.usage_record", &used(120_000));
    let full = |row: &serde_json::Value| row["because"].as_str().unwrap_or_default().contains("nearly full");
    watch.wait_row(&session, "nearly full", full);
    let table = String::from_utf8(user.run(&["status"]).stdout).unwrap();
    assert!(table.lines().any(|line| line.ends_with(" ◕")), "{table}");
    let ascii = user.pilotlight(&["status"]).env("LANG", "C").output().unwrap();
    assert!(String::from_utf8(ascii.stdout).unwrap().lines().any(|line| line.ends_with(" %")));
    session.log_event("session.usage_record", r#"{"usage":{"inputTokens":"many","maxPromptTokens":-1}}"#);
    for (context, window) in [("9223372036854775807", "9223372036854775807"), ("0", "0"), ("9e99", "-5")] {
        let usage = format!(r#"{{"usage":{{"inputTokens":{context},"maxPromptTokens":{window}}}}}"#);
        session.log_event("session.usage_record", &usage);
    }
    let row = user.row(&session).unwrap();
    assert_eq!(row["context"], serde_json::json!({"used": 120_000, "window": 128_000}), "none of these is a count");
}

/// Given: a session on another machine whose log tells its context. -> It is told here, in JSON and in words.
#[test]
fn case_832_how_full_a_context_is_on_another_machine() {
    let (near, remote) = (User::new(), User::new());
    name_hosts(&near, &[("devbox", serves(&remote))]);
    let there = remote.session(2);
    let _owner = there.owner(&remote);
    there.prompt();
    there.log_event("session.usage_record", r#"{"usage":{"inputTokens":120000,"maxPromptTokens":128000}}"#);
    let row = near.row(&there).unwrap();
    assert_eq!(row["context"], serde_json::json!({"used": 120_000, "window": 128_000}));
    let lines = page(&near, &there);
    assert!(lines.contains("context         120000 of 128000 tokens (93 %)"), "{lines}");
}
