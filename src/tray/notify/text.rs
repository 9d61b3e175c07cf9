//! The texts of notifications: plain, and limited in length.

use pilotlight_core::text::{escaped, plain};

/// Maximum length of a title, in characters.
pub(super) const TITLE_MAX: usize = 200;
/// Maximum length of a line of the body, in characters.
pub(super) const LINE_MAX: usize = 240;
/// Maximum number of lines of the body.
const LINES_MAX: usize = 12;

/// A body of sanitized lines. The line breaks are ours, never a session's. Where they are shown as spaces, a dash tells a command from
/// what follows it.
pub(super) fn body(text: &str, is_markup: bool, joins_lines: bool) -> String {
    let line = |line: &str| match plain(line, LINE_MAX) {
        line if is_markup => escaped(&line),
        line => line.into(),
    };
    text.lines().take(LINES_MAX).map(line).collect::<Vec<_>>().join(if joins_lines { "\n— " } else { "\n" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_103_what_a_session_wrote_is_plain_text() {
        let hostile = "<b>bold</b> & \u{1b}[31m\u{202e}txt.\nsecond";
        for is_markup in [false, true] {
            let shown = body(hostile, is_markup, false);
            assert_eq!(shown.lines().count(), 2);
            assert!(!shown.contains(['\u{1b}', '\u{202e}']));
        }
        assert_eq!(body(hostile, true, false), "&lt;b&gt;bold&lt;/b&gt; &amp; [31mtxt.\nsecond");
        assert_eq!(body(hostile, false, false), "<b>bold</b> & [31mtxt.\nsecond");
        assert_eq!(body(&"x".repeat(10_000), true, false).chars().count(), LINE_MAX);
        assert_eq!(body("make\nAsks all the time", true, true), "make\n— Asks all the time");
        assert_eq!(body(&"x\n".repeat(10_000), true, false).lines().count(), LINES_MAX);
    }
}
