//! Ends of tools that are not in the log: their line is torn, or lost. What the model writes after it was given the results
//! of all tools shows that they ended.

use super::story::Story;
use pilotlight_agents::tail::LogFormat;
use pilotlight_agents::{claude_code, codex, copilot};
use pilotlight_core::limits::Limits;
use pilotlight_core::replay::{OwnerStory, Replay};
use pilotlight_core::time::Span;
use pilotlight_core::verdict::Status;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn logs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            logs(&entry, found);
        } else if ["events.jsonl", "rollout.jsonl"].iter().any(|name| entry.ends_with(name))
            || entry.extension().is_some_and(|end| end == "jsonl")
                && entry.components().any(|it| it.as_os_str() == "files")
        {
            found.push(entry);
        }
    }
}

/// Whether this line, as its agent writes it, is the end of a tool of the session itself.
fn ends_tool(line: &Value) -> bool {
    let block = || line["message"]["content"].as_array().and_then(|content| content.first());
    match line["type"].as_str() {
        Some("tool.execution_complete") => line["agentId"].is_null() && line["data"]["isUserRequested"].is_null(),
        Some("user") => block().is_some_and(|block| block["type"] == "tool_result"),
        Some("response_item") => {
            ["function_call_output", "custom_tool_call_output"].iter().any(|kind| line["payload"]["type"] == *kind)
        }
        _ => false,
    }
}

/// The status at the end of a log, and how many tools are open then.
fn end(log_format: &LogFormat, lines: &[Vec<u8>]) -> (Status, usize) {
    let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format.parse);
    lines.iter().for_each(|line| replay.line(line, &mut Vec::new()));
    let open = replay.facts.turn.as_ref().map_or(0, |turn| turn.tools.len());
    replay.finish(Span::seconds(1), &mut Vec::new());
    (replay.verdict().status, open)
}

/// Given: each recorded log, without the end of one of its tools: not there, cut in two by a line break, or full of NULs. ->
/// If the model says anything afterwards, what is told at the end is the same.
#[test]
fn case_532_a_later_round_shows_that_the_tools_before_it_have_ended() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let log_formats: [(&str, &LogFormat); 3] = [
        ("traces", &copilot::log_format::LOG_FORMAT),
        ("claude-code", &claude_code::log_format::LOG_FORMAT),
        ("traces-codex", &codex::log_format::LOG_FORMAT),
    ];
    for (folder, log_format) in log_formats {
        let (mut found, mut checked) = (Vec::new(), 0);
        logs(&tests.join(folder), &mut found);
        for log in found {
            let lines: Vec<Vec<u8>> =
                fs::read(&log).unwrap().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let json: Vec<Value> = lines.iter().map(|line| serde_json::from_slice(line).unwrap_or_default()).collect();
            for at in (0..lines.len()).filter(|at| ends_tool(&json[*at])) {
                let answers = |line: &Value| {
                    line["type"] == "assistant.turn_start" && line["agentId"].is_null()
                        || line["type"] == "assistant" && line["message"]["model"] != "<synthetic>"
                        || line["payload"]["type"] == "message" && line["payload"]["role"] == "assistant"
                };
                // That a tool was denied is in its end alone.
                let is_denied = [Status::Failed, Status::PermissionLost].contains(&end(log_format, &lines).0);
                if is_denied || !json[at..].iter().any(answers) {
                    continue;
                }
                let (head, tail) = lines[at].split_at(lines[at].len() / 2);
                let nuls = [head, &vec![0; tail.len()][..]].concat();
                for lost in [vec![], vec![head.to_vec(), tail.to_vec()], vec![nuls]] {
                    let cut = [&lines[..at], &lost[..], &lines[at + 1..]].concat();
                    assert_eq!(end(log_format, &cut), end(log_format, &lines), "{}:{}", log.display(), at + 1);
                    checked += 1;
                }
            }
        }
        assert!(checked > 30, "{folder}: only {checked}");
    }
}

/// Given: two tools at once, one of them with a request; the ends of both are lost. -> They are open within their round, and
/// neither they nor the request after the start of the next one. A shell in the background runs on.
#[test]
fn case_533_parallel_tools_stay_open_within_their_round_and_end_with_their_request() {
    let asks = Story::prompted()
        .requests(0, &["bash", "bash"])
        .tool(1, "t1", "bash")
        .event(
            1,
            "tool.execution_start",
            json!({"toolCallId": "t2", "toolName": "bash", "arguments": {"mode": "async"}}),
        )
        .permission(2, "r1", "t1");
    assert_eq!(asks.verdict(3).status, Status::NeedsPermission);
    let next = asks.round_end(4);
    assert_eq!(next.verdict(5).status, Status::NeedsPermission, "an end of a round alone shows nothing");
    let next = next.round(5);
    let verdict = next.verdict(6);
    assert_eq!((verdict.status, verdict.background.shells), (Status::Working, 1));
    assert!(!verdict.because.to_string().contains("bash"), "{}", verdict.because);
    let over = next.answer(7, "It is done.").round_end(7);
    assert_eq!(over.verdict(8).status, Status::Idle);
}

/// Given: not even the start of the next round is there, but its message is. -> The same.
#[test]
fn case_534_the_message_of_a_later_round_shows_it_too() {
    let lost = Story::prompted().requests(0, &["bash"]).tool(1, "t1", "bash").round_end(4);
    assert!(lost.verdict(5).because.to_string().contains("bash"), "its result may be late");
    let over = lost.answer(7, "It is done.").round_end(7);
    assert_eq!(over.verdict(8).status, Status::Idle);
    // By the number of its round alone.
    let lost = Story::prompted()
        .event(1, "tool.execution_start", json!({"toolCallId": "t1", "toolName": "bash", "turnId": "0"}))
        .event(7, "assistant.message", json!({"content": "It is done.", "toolRequests": [], "turnId": "1"}))
        .round_end(7);
    assert_eq!(lost.verdict(8).status, Status::Idle);
}
