//! Prints JSON that is safe on a terminal: characters that act on it, or change the text invisibly, are escaped.
//!
//! JSON itself only requires this for the first 32 control characters. Non-ASCII characters occur in its strings alone,
//! so they can be escaped in the serialized text.

use crate::core::text::is_invisible;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes a value on one line, without a line break.
pub(super) fn write(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(escaped(serde_json::to_string(value)?).as_bytes())
}

/// Writes a value on several lines, without a line break at the end.
pub(super) fn write_pretty(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    out.write_all(escaped(serde_json::to_string_pretty(value)?).as_bytes())
}

fn escaped(text: String) -> String {
    const DELETE: char = '\u{7f}';
    let acts = |c: char| c == DELETE || !c.is_ascii() && (c.is_control() || is_invisible(c) || is_separator(c));
    if !text.contains(acts) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}"); // writing to a String cannot fail
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether Unicode counts it as a line break.
const fn is_separator(c: char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
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
