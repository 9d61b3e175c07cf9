//! Prints JSON that is safe on a terminal: characters that act on it, or change the text invisibly, are escaped.

use pilotlight_core::fleet::Row;
use pilotlight_core::text::escaped_json;
use serde::Serialize;
use std::io::{self, Write};

/// A row with how the last message of its session begins.
#[derive(Serialize)]
pub(super) struct RowWithMessage<'a> {
    #[serde(flatten)]
    pub(super) row: &'a Row,
    pub(super) last_message: Option<&'a str>,
}

/// Writes a value on one line, without a line break.
pub(super) fn write(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(escaped_json(serde_json::to_string(value)?).as_bytes())
}

/// Writes a value on several lines, without a line break at the end.
pub(super) fn write_pretty(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(escaped_json(serde_json::to_string_pretty(value)?).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_144_invisible_characters_are_escaped_and_survive_a_round_trip() {
        let unsafe_text = "a\u{7f}b\u{9b}31m\u{85}c\u{202e}d\u{2066}e\u{200b}f\u{2028}g\u{feff}\u{e0041}\u{3164}\u{ad}";
        let plain = "é 日本語 👩\u{200d}💻 \" \\ \n";
        for pretty in [false, true] {
            let mut out = Vec::new();
            let value = [unsafe_text, plain];
            if pretty { write_pretty(&mut out, &value) } else { write(&mut out, &value) }.unwrap();
            let out = String::from_utf8(out).unwrap();
            let shown = r"a\u007fb\u009b31m\u0085c\u202ed\u2066e\u200bf\u2028g\ufeff\udb40\udc41\u3164\u00ad";
            assert!(out.contains(shown) && out.contains("é 日本語 👩\u{200d}💻"), "{out}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&out).unwrap(), value);
        }
    }
}
