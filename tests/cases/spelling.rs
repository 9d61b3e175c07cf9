//! Every recorded log reads the same however its JSON is spelled: with blanks, as other programs write it, and with the keys
//! of its objects in another order.

use pilotlight_agents::tail::{LogFormat, ReadContext, Tail};
use pilotlight_agents::{claude_code, codex, copilot};
use pilotlight_core::facts::Facts;
use pilotlight_core::limits::Limits;
use pilotlight_core::replay::{OwnerStory, Replay};
use pilotlight_core::time::{Moment, Span};
use pilotlight_system::clock::Clock;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The log formats, as they are asked whose a log is.
const DIALECTS: [&LogFormat; 3] =
    [&copilot::log_format::LOG_FORMAT, &claude_code::log_format::LOG_FORMAT, &codex::log_format::LOG_FORMAT];

/// The recorded logs below a folder.
fn logs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        if entry.is_dir() {
            logs(&entry, found);
        } else if name.ends_with(".jsonl") && !["timeline.jsonl", "journal.jsonl"].contains(&name) {
            found.push(entry);
        }
    }
}

/// Every recorded log with the number of its log format.
fn recordings() -> Vec<(PathBuf, usize)> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let of = |(log_format, folder): (usize, &str)| {
        let mut found = Vec::new();
        logs(&tests.join(folder), &mut found);
        found.into_iter().map(move |log| (log, log_format)).collect::<Vec<_>>()
    };
    ["traces", "claude-code", "traces-codex"].into_iter().enumerate().flat_map(of).collect()
}

/// The same line with a blank before and after each colon and comma.
fn spaced(line: &str) -> String {
    let (mut text, mut inside, mut escaped) = (String::new(), false, false);
    for letter in line.chars() {
        match letter {
            ':' | ',' if !inside => write!(text, " {letter} ").unwrap(),
            _ => text.push(letter),
        }
        inside ^= letter == '"' && !escaped;
        escaped = inside && letter == '\\' && !escaped;
    }
    text
}

/// The same value, its keys in the order that `turn` puts them into, without blanks.
fn reordered(value: &Value, turn: &dyn Fn(&mut Vec<&String>)) -> String {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.keys().collect();
            turn(&mut keys);
            let field = |key: &String| format!("{}:{}", Value::from(key.as_str()), reordered(&fields[key], turn));
            format!("{{{}}}", keys.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(parts) => {
            format!("[{}]", parts.iter().map(|part| reordered(part, turn)).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// The line in each spelling.
fn spellings(line: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(line).unwrap();
    let sorted = reordered(&value, &|keys| keys.sort());
    let reversed = reordered(&value, &|keys| {
        keys.sort();
        keys.reverse();
    });
    vec![spaced(line), spaced(&sorted), sorted, spaced(&reversed), reversed]
}

/// What is told of a whole log.
fn story(log_format: &LogFormat, lines: &[String]) -> (Facts, String) {
    let mut replay = Replay::new(OwnerStory::Alive, Limits::default(), log_format.parse);
    let mut changes = Vec::new();
    lines.iter().for_each(|line| replay.line(line.as_bytes(), &mut changes));
    replay.finish(Span::hours(1), &mut changes);
    (replay.facts, format!("{changes:?}"))
}

/// What is found by reading a log from its end.
fn from_its_end(log_format: &LogFormat, lines: &[String], now: Moment) -> Facts {
    let log = tempfile::NamedTempFile::new().unwrap();
    fs::write(log.path(), lines.join("\n") + "\n").unwrap();
    let (limits, mut facts) = (Limits::default(), Facts::default());
    let context = ReadContext { now, limits: &limits, until: None };
    Tail::default().read(log_format, log.path(), &mut facts, context, &mut Vec::new()).unwrap();
    facts
}

/// Given: each recorded log, written anew with blanks around colons and commas, and with its keys sorted forwards and
/// backwards. -> It is told to be of the same agent, each line is the same event, and all that is told of it is the same.
#[test]
fn case_545_a_log_reads_the_same_however_its_json_is_spelled() {
    // Both readings at one moment: the difference between the two clocks is part of what is read.
    let (now, mut checked) = (Clock::start().now(), 0);
    for (path, number) in recordings() {
        let log_format = DIALECTS[number];
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        let anew: Vec<_> = lines.iter().map(|line| spellings(line)).collect();
        let expected = story(log_format, &lines);
        for way in 0..anew[0].len() {
            let same: Vec<_> = anew.iter().map(|spellings| spellings[way].clone()).collect();
            let whose = DIALECTS.iter().position(|log_format| (log_format.is_start)(same.join("\n").as_bytes()));
            let own = DIALECTS.iter().position(|other| (other.is_start)(text.as_bytes()));
            assert_eq!(whose, own, "whose {} is, spelling {way}", path.display());
            assert!(own.is_none_or(|own| own == number), "{}", path.display());
            for (line, other) in lines.iter().zip(&same) {
                let (read, anew) = ((log_format.parse)(line.as_bytes()), (log_format.parse)(other.as_bytes()));
                assert_eq!(anew, read, "{}, spelling {way}: {other}", path.display());
                let is_prompt = [line, other].map(|line| (log_format.is_fresh_prompt)(line.as_bytes()));
                assert_eq!(is_prompt[0], is_prompt[1], "{other}");
                checked += 1;
            }
            assert!(story(log_format, &same) == expected, "{}, spelling {way}", path.display());
        }
        let blanks: Vec<_> = anew.iter().map(|spellings| spellings[0].clone()).collect();
        assert!(from_its_end(log_format, &blanks, now) == from_its_end(log_format, &lines, now), "{}", path.display());
    }
    assert!(checked > 10_000, "only {checked} lines");
}

/// Given: a line with blanks that follows a torn one. -> It is an event, as without blanks.
#[test]
fn case_546_an_event_after_a_torn_line_is_read_in_either_spelling() {
    let event = r#"{"type":"assistant.turn_end","data":{"turnId":"0"},"id":"e1","timestamp":"2026-11-20T18:00:00.000Z","parentId":null}"#;
    let log_format = DIALECTS[0];
    for torn in [r#"{"type":"tool.execution_complete","data":{"result":{"content":"abc"#, "\0\0\0\0"] {
        for line in [event.to_owned(), spaced(event), spellings(event).pop().unwrap()] {
            let whole = format!("{torn}{line}");
            assert_eq!((log_format.parse)(whole.as_bytes()), (log_format.parse)(event.as_bytes()), "{whole}");
        }
    }
}
