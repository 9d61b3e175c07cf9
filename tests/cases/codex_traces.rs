//! Recorded logs of Codex, checked against labels: see `tests/traces-codex/README.md`.

use super::traces::{labels, verdict_at};
use pilotlight_agents::codex::log_format;
use pilotlight_core::limits::Limits;
use pilotlight_core::owner::Owner;
use pilotlight_core::replay::{OwnerStory, Replay};
use pilotlight_core::verdict::{Liveness, Observations, Status, judge};
use std::fs;
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces-codex");
    let mut folders: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[test]
fn every_recorded_thread_has_the_labelled_statuses() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for folder in folders() {
        let log = fs::read(folder.join("rollout.jsonl")).unwrap();
        for label in labels(&folder.join("labels.txt")) {
            let verdict = verdict_at(&log, &label, log_format::parse);
            checked += 1;
            wrong.extend(label.mistake(&verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} labels:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 160, "only {checked} labels were read");
}

#[test]
fn every_line_of_every_recorded_thread_is_an_event() {
    for folder in folders() {
        let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format::parse);
        let log = fs::read(folder.join("rollout.jsonl")).unwrap();
        let lines = log.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let expected = lines.clone().count() as u64;
        lines.for_each(|line| replay.line(line, &mut Vec::new()));
        assert_eq!((replay.facts.events, replay.facts.skipped), (expected, 0), "{}", folder.display());
        assert!(!replay.facts.forked, "{}", folder.display());
        assert!(replay.facts.cwd.is_some() && replay.facts.turn_id.is_some(), "{}", folder.display());
    }
}

/// Given: the recording of a turn that ends in a plan. -> Once the user has looked, it is idle: that the question on the
/// screen was put aside leaves no trace.
#[test]
fn case_535_a_turn_that_ends_in_a_plan_asks_in_the_plans_words_until_it_is_seen() {
    let log = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces-codex/plan-proposed/rollout.jsonl"));
    let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format::parse);
    log.unwrap().split(|&byte| byte == b'\n').for_each(|line| replay.line(line, &mut Vec::new()));
    let verdict = replay.verdict();
    assert_eq!(
        verdict.question().map(|question| &*question.text),
        Some("# Paint the fence 1. Buy paint. 2. Paint it.")
    );
    assert!(verdict.is_by_message());
    let (told, owner) = (Observations::by_log(&replay.facts), Owner::Alive { pid: 1, started: None });
    let at = replay.facts.closed.as_ref().unwrap().at;
    let seen = judge(told, &owner, &Liveness::default(), Some(at.wall), at, &Limits::default());
    assert_eq!(seen.status, Status::Idle);
}

fn line(second: u32, kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-11-21T22:56:{second:02}.000Z","type":"{kind}","payload":{payload}}}"#)
}

/// Given: a question that does not wait for its answer (made up: no recording has one). -> The turn works on; once it is
/// over, the question is open, until the user says something, or if it could not be asked.
#[test]
fn case_536_a_question_that_does_not_wait_is_open_once_the_turn_is_over() {
    let call = r#"{"type":"function_call","name":"request_user_input_async","call_id":"c","arguments":"{\"questions\":[{\"id\":\"q\",\"question\":\"Which colour?\",\"options\":[{\"label\":\"Red\"}]}]}"}"#;
    let output = |text: &str| format!(r#"{{"type":"function_call_output","call_id":"c","output":"{text}"}}"#);
    let over = line(5, "event_msg", r#"{"type":"task_complete","turn_id":"t","last_agent_message":"Done."}"#);
    let said = r#"{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"Red"}]}}"#;
    let started = |second| line(second, "event_msg", &format!(r#"{{"type":"task_started","turn_id":"t{second}"}}"#));
    let status = |between: &[String], after: &[String]| {
        let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format::parse);
        let begin = [started(1), line(2, "response_item", call)];
        for line in begin.iter().chain(between).chain([&over]).chain(after) {
            replay.line(line.as_bytes(), &mut Vec::new());
        }
        (replay.verdict().status, replay.verdict().question().map(|question| question.text.to_string()))
    };
    let asked = line(3, "response_item", &output("asked"));
    let open = (Status::NeedsInput, Some("Which colour?".to_owned()));
    assert_eq!(status(std::slice::from_ref(&asked), &[]), open);
    assert_eq!(status(&[], &[]), open, "its output is lost");
    let answered = [asked.clone(), line(4, "event_msg", said)];
    assert_eq!(status(&answered, &[]).0, Status::Idle);
    assert_eq!(status(std::slice::from_ref(&asked), &[started(6)]).0, Status::Working);
    let refused = line(3, "response_item", &output("request_user_input_async is unavailable in Default mode"));
    assert_eq!(status(&[refused], &[]).0, Status::Idle);
    let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format::parse);
    for line in [started(1), line(2, "response_item", call), asked] {
        replay.line(line.as_bytes(), &mut Vec::new());
    }
    assert_eq!(replay.verdict().status, Status::Working, "the turn goes on");
}
