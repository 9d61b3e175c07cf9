//! The last prompt of a log, for sending it again. Nothing else reads a user's prompts, and nothing is kept here.

use crate::core::event::is_fresh_prompt;
use crate::system::plain_file::{self, Links};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How far back the search goes, in bytes. So much has followed an older prompt that the user no longer waits for its
/// answer.
const BACK: u64 = 64 * 1024 * 1024;
/// How far back the first read goes, in bytes; each further one goes four times as far.
const STEP: u64 = 64 * 1024;

/// A prompt of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastPrompt {
    pub text: String,
    /// Whether files or pictures were attached.
    pub has_attachments: bool,
}

/// Returns the last prompt that Copilot did not give itself.
///
/// # Errors
/// Where the log cannot be read, or its last [`BACK`] bytes hold no such prompt.
pub(crate) fn last_prompt(log: &Path) -> io::Result<LastPrompt> {
    let (mut file, meta) = plain_file::open(log, Links::Refused)?;
    let length = meta.len();
    let mut back = STEP;
    loop {
        let start = length.saturating_sub(back);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        (&mut file).take(back).read_to_end(&mut bytes)?;
        let whole = if start == 0 { 0 } else { memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |end| end + 1) };
        if let Some(prompt) = bytes[whole..].split(|byte| *byte == b'\n').rev().find_map(text_of) {
            return Ok(prompt);
        }
        if start == 0 || back >= BACK {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no prompt in it"));
        }
        back *= 4;
    }
}

fn text_of(line: &[u8]) -> Option<LastPrompt> {
    if !line.starts_with(b"{") || !is_fresh_prompt(line) {
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
}
