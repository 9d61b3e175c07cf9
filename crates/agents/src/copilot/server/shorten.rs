//! Leaves the longest texts out of a message that is too large, so that the rest of it can be read.

use serde_json::Value;

/// Stands in place of a text that is too large to be received, or to be sent by a bridge (`crates/agents/src/copilot/bridge/extension.mjs`).
pub(super) const CUT: &str = "(too large for Pilotlight)";

/// The longest text that stays in a message that is too large, in bytes of its JSON.
const TEXT_MAX: usize = 64 << 10;

/// Copies a JSON text that arrives in pieces, with [`CUT`] in place of each text that is too long.
#[derive(Debug, Default)]
pub(super) struct Shortener {
    /// Where in the copy the current text begins, its quote included; `None` outside of texts.
    begins: Option<usize>,
    escaped: bool,
    /// The current text was cut: the rest of it is dropped.
    cut: bool,
}

impl Shortener {
    /// Takes the next bytes, and appends what stays of them to `copy`.
    pub(super) fn push(&mut self, bytes: &[u8], copy: &mut Vec<u8>) {
        for &byte in bytes {
            let Some(begins) = self.begins else {
                self.begins = (byte == b'"').then_some(copy.len());
                copy.push(byte);
                continue;
            };
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            if ends {
                (self.begins, self.cut) = (None, false);
                copy.push(byte);
            } else if !self.cut {
                copy.push(byte);
                if copy.len() - begins > TEXT_MAX {
                    self.cut = true;
                    copy.truncate(begins + 1);
                    copy.extend_from_slice(CUT.as_bytes());
                }
            }
        }
    }
}

/// Whether a text of this message was left out.
pub(super) fn is_cut(message: &Value) -> bool {
    match message {
        Value::String(text) => text == CUT,
        Value::Array(items) => items.iter().any(is_cut),
        Value::Object(fields) => fields.values().any(is_cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_texts_that_are_too_long_are_cut_however_the_message_is_split() {
        let long = "\\\"é{".repeat(TEXT_MAX);
        let message =
            json!({"a\"": [1, &long, {"b": "short \\\" {"}], "c": "x".repeat(TEXT_MAX - 1), "d": "x".repeat(TEXT_MAX)});
        for piece in [1, 7, 4096, 1 << 24] {
            let (mut shortener, mut copy) = (Shortener::default(), Vec::new());
            message.to_string().as_bytes().chunks(piece).for_each(|piece| shortener.push(piece, &mut copy));
            let copy: Value = serde_json::from_slice(&copy).unwrap();
            assert!(is_cut(&copy) && !is_cut(&message));
            let expected = json!({"a\"": [1, CUT, {"b": "short \\\" {"}], "c": "x".repeat(TEXT_MAX - 1), "d": CUT});
            assert_eq!(copy, expected, "pieces of {piece}");
        }
    }
}
