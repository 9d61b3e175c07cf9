//! Leaves the longest texts out of a message that is too large, so that the rest of it can be read.

use crate::channel::request::CUT;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::request::is_cut;
    use serde_json::{Value, json};

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
