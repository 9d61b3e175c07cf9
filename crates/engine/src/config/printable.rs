//! Texts from the file as problems show them: shortened, and with everything unprintable escaped. Messages go to
//! terminals and menus, which would act on control and direction characters.

/// How many characters of a text from the file a message shows.
const SHOWN: usize = 60;

/// `text` on one line, shortened, with everything unprintable escaped.
pub(super) fn shown(text: &str) -> String {
    let mut out = printable(text.chars().take(SHOWN));
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

/// `chars` with everything unprintable escaped.
pub(super) fn printable(chars: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for c in chars {
        match c {
            // `escape_debug` escapes these only for source code; Windows paths are full of backslashes.
            '\\' | '\'' | '"' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unprintable_characters_are_escaped_and_long_texts_are_cut() {
        assert_eq!(shown("a\u{1b}[2J\n\u{202e}b"), r"a\u{1b}[2J\n\u{202e}b");
        assert_eq!(shown(r#"C:\x "y" 'z' ä"#), r#"C:\x "y" 'z' ä"#);
        assert_eq!(shown(&"x".repeat(60)), "x".repeat(60));
        assert_eq!(shown(&"x".repeat(61)), format!("{}…", "x".repeat(60)));
    }
}
