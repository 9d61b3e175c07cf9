//! A note that one of our processes leaves for the others: which process it is, and what it does.

use pilotlight_core::text::plain;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest note that is read, in bytes.
pub const NOTE_MAX: u64 = 4096;
/// The most characters shown of what a process does.
const DOING_MAX: usize = 100;

/// Which process it is, and what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its process id.
    pub process: u32,
    /// What it does, or where it is seen, in words for the user.
    pub doing: String,
}

impl Note {
    /// A note about this process.
    pub fn of_this_process(doing: &str) -> Self {
        Self { process: std::process::id(), doing: doing.into() }
    }

    /// Reads a note. `None` if this is none: another program may write it, and another process may be writing it now.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let note: Self = serde_json::from_slice(text).ok()?;
        Some(Self { doing: plain(&note.doing, DOING_MAX).into(), ..note })
    }

    /// Its text, as [`parse`](Self::parse) reads it.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// `process 4711, its icon is in the panel`.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}, {}", self.process, self.doing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_anything_else_is_none() {
        let note = Note::of_this_process("stop");
        assert_eq!(Note::parse(note.text().as_bytes()), Some(note));
        for text in ["", "{", "[]", "process 4711", r#"{"process":"4711","doing":""}"#] {
            assert_eq!(Note::parse(text.as_bytes()), None, "{text}");
        }
        let hostile = Note { process: 1, doing: "a\u{1b}[31m\nb".repeat(100) };
        let read = Note::parse(hostile.text().as_bytes()).unwrap().to_string();
        assert!(!read.contains(['\u{1b}', '\n']) && read.chars().count() < 130, "{read}");
    }
}
