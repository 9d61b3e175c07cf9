//! The last prompt of a log, for sending it again, and its system message, for hosting its session. Nothing else reads
//! them, and nothing is kept here.

use super::log_format::{is_fresh_prompt, kind_of};
use pilotlight_system::plain_file::{self, Links};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How far back a search goes, in bytes. So much has followed an older prompt that the user no longer waits for its
/// answer.
const BACK: u64 = 64 * 1024 * 1024;
/// How far back the first read goes, in bytes; each further one goes four times as far.
const STEP: u64 = 64 * 1024;

/// A prompt of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastPrompt {
    pub text: String,
    /// Whether files or pictures were attached.
    pub has_attachments: bool,
}

/// Returns the last prompt that Copilot did not give itself.
///
/// # Errors
/// Where the log cannot be read, or its last [`BACK`] bytes hold no such prompt.
pub(crate) fn last_prompt(log: &Path) -> io::Result<LastPrompt> {
    last(log, prompt_of)
}

/// Returns the system message that the session's agent was given last, whole: with what its program added to it.
///
/// # Errors
/// Where the log cannot be read, or its last [`BACK`] bytes hold none.
pub(crate) fn system_message(log: &Path) -> io::Result<String> {
    last(log, system_message_of)
}

/// Returns what the last line has that has it.
fn last<T>(log: &Path, of: impl Fn(&[u8]) -> Option<T>) -> io::Result<T> {
    let (mut file, meta) = plain_file::open(log, Links::Refused)?;
    let length = meta.len();
    let mut back = STEP;
    loop {
        let start = length.saturating_sub(back);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        (&mut file).take(back).read_to_end(&mut bytes)?;
        let whole = if start == 0 { 0 } else { memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |end| end + 1) };
        if let Some(found) = bytes[whole..].split(|byte| *byte == b'\n').rev().find_map(&of) {
            return Ok(found);
        }
        if start == 0 || back >= BACK {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it is not in it"));
        }
        back *= 4;
    }
}

fn system_message_of(line: &[u8]) -> Option<String> {
    const KIND: &str = "system.message";
    kind_of(line).filter(|kind| *kind == KIND.as_bytes())?;
    let event: serde_json::Value = serde_json::from_slice(line).ok()?;
    // Sub-agents have their own.
    let is_root = event["type"] == KIND && event["agentId"].is_null() && event["data"]["role"] == "system";
    let text = event["data"]["content"].as_str().filter(|text| is_root && !text.is_empty())?;
    Some(text.to_owned())
}

fn prompt_of(line: &[u8]) -> Option<LastPrompt> {
    if !line.trim_ascii_start().starts_with(b"{") || !is_fresh_prompt(line) {
        return None;
    }
    let event: serde_json::Value = serde_json::from_slice(line).ok()?;
    let data = event.get("data")?;
    let text = data.get("content")?.as_str()?;
    let has_attachments =
        data.get("attachments").and_then(serde_json::Value::as_array).is_some_and(|all| !all.is_empty());
    (!text.is_empty()).then(|| LastPrompt { text: text.to_owned(), has_attachments })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str, more: &str) -> String {
        format!(
            r#"{{"type":"user.message","data":{{"content":"{text}"{more}}},"id":"1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null}}"#
        )
    }

    #[test]
    fn the_users_last_prompt_is_found_far_from_the_end_of_the_log() {
        let scratch = tempfile::tempdir().unwrap();
        let log = scratch.path().join("events.jsonl");
        let tool = r#"{"type":"tool.execution_complete","data":{"toolCallId":"a","result":"user.message"},"id":"2","timestamp":"2026-01-01T00:00:01.000Z","parentId":null}"#;
        let lines = [
            prompt("first", ""),
            prompt("say \\\"hi\\\"", ""),
            prompt("steer", r#","delivery":"steering""#),
            prompt("go on", r#","isAutopilotContinuation":true"#),
            tool.to_owned() + &" ".repeat(300_000),
            "broken {".into(),
        ];
        std::fs::write(&log, lines.join("\n")).unwrap();
        assert_eq!(last_prompt(&log).unwrap(), LastPrompt { text: "say \"hi\"".into(), has_attachments: false });
        std::fs::write(&log, prompt("look", r#","attachments":[{"type":"file","path":"/a"}]"#)).unwrap();
        assert_eq!(last_prompt(&log).unwrap(), LastPrompt { text: "look".into(), has_attachments: true });
        std::fs::write(&log, tool).unwrap();
        assert!(last_prompt(&log).is_err());
        assert!(last_prompt(scratch.path()).is_err(), "a folder");
    }

    #[test]
    fn the_last_system_message_is_the_agents_own_and_whole() {
        let scratch = tempfile::tempdir().unwrap();
        let log = scratch.path().join("events.jsonl");
        let line = |text: &str, role: &str, more: &str| {
            format!(
                r#"{{"type":"system.message","data":{{"role":"{role}","content":"{text}"}},"id":"1","timestamp":"2026-01-01T00:00:00.000Z","parentId":null{more}}}"#
            )
        };
        let lines = [
            line("first", "system", ""),
            line("You are\\nmine", "system", ""),
            line("a helper", "system", r#","agentId":"a""#),
            line("a note", "developer", ""),
            line("", "system", ""),
            prompt("system.message", ""),
            "broken {\"type\":\"system.message\"".into(),
        ];
        std::fs::write(&log, lines.join("\n")).unwrap();
        assert_eq!(system_message(&log).unwrap(), "You are\nmine");
        std::fs::write(&log, &lines[2]).unwrap();
        assert!(system_message(&log).is_err());
    }
}
