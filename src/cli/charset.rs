//! Which characters the terminal can show. Without a UTF-8 locale, everything that is printed for people is ASCII: our
//! own marks have ASCII forms, and any other character of a name or a path is a question mark.
//!
//! JSON, text for other bars, and requests are left as they are: those are for programs, or must not be altered.

use pilotlight_core::verdict::Status;
use std::borrow::Cow;
use std::io::{self, IsTerminal};
use unicode_width::UnicodeWidthChar;

/// Whether standard output may have characters beyond ASCII.
pub(super) fn has_unicode_stdout() -> bool {
    has_unicode(io::stdout().is_terminal())
}

/// Whether standard error may.
pub(super) fn has_unicode_stderr() -> bool {
    has_unicode(io::stderr().is_terminal())
}

fn has_unicode(is_terminal: bool) -> bool {
    let env = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = env("LC_ALL").or_else(|| env("LC_CTYPE")).or_else(|| env("LANG"));
    cfg!(not(unix)) || allows_unicode(locale.as_deref(), is_terminal)
}

/// `locale` is the one that the environment names. A file or a pipe gets ASCII only if that asks for it.
fn allows_unicode(locale: Option<&str>, is_terminal: bool) -> bool {
    let Some(locale) = locale.map(str::to_lowercase) else { return !is_terminal };
    if is_terminal { locale.contains("utf-8") || locale.contains("utf8") } else { !matches!(&*locale, "c" | "posix") }
}

/// Text for people, as the terminal can show it.
pub(super) fn words(text: &str, unicode: bool) -> Cow<'_, str> {
    if unicode || text.is_ascii() { text.into() } else { ascii(text, false).into() }
}

/// The same, of the same width: columns stay where they are.
pub(super) fn columns(text: &str, unicode: bool) -> Cow<'_, str> {
    if unicode || text.is_ascii() { text.into() } else { ascii(text, true).into() }
}

fn ascii(text: &str, keeps_width: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if c.is_ascii() => out.push(c),
            '…' if !keeps_width => out.push_str("..."),
            '…' => {
                // Two columns, of which one was a letter's.
                let cut = out.pop().filter(|last| !matches!(last, 'm' | '.'));
                out.push_str(if cut.is_some() { ".." } else { "." });
            }
            '→' | '▸' if !keeps_width => out.push_str("->"),
            '—' | '–' | '·' | '‑' => out.push('-'),
            '›' | '→' | '▸' => out.push('>'),
            '•' => out.push('*'),
            '“' | '”' => out.push('"'),
            '‘' | '’' => out.push('\''),
            '\u{a0}' => out.push(' '),
            _ => match mark_of(c) {
                Some(mark) => out.push_str(mark),
                // An isolate or another mark without a width of its own.
                None => (0..c.width().unwrap_or(0)).for_each(|_| out.push('?')),
            },
        }
    }
    out
}

/// The ASCII form of a status's mark.
fn mark_of(c: char) -> Option<&'static str> {
    let marks = Status::ALL.into_iter().map(Status::mark);
    marks.into_iter().find(|(mark, _)| mark.chars().eq([c])).map(|(_, ascii)| ascii)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn the_locale_decides_on_a_terminal_and_only_c_elsewhere() {
        for (locale, terminal, pipe) in [
            (None, false, true),
            (Some("C"), false, false),
            (Some("POSIX"), false, false),
            (Some("C.UTF-8"), true, true),
            (Some("de_DE.utf8"), true, true),
            (Some("de_DE.ISO-8859-1"), false, true),
        ] {
            let allows = [true, false].map(|is_terminal| allows_unicode(locale, is_terminal));
            assert_eq!(allows, [terminal, pipe], "{locale:?}");
        }
    }

    #[test]
    fn case_227_every_character_has_an_ascii_form_and_columns_keep_their_width() {
        let text = "⚑ needs · “Größe” — 報告… → ends\u{2068}x\u{2069} ‘a’ › b • c";
        let shown = words(text, false);
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(words("wait… → a · b — “c”", false), "wait... -> a - b - \"c\"");
        assert_eq!((&*words(text, true), &*columns("plain", false)), (text, "plain"));
        for text in [text, "the configurati…  idle", "報告…", "…", "\u{1b}[32m✓ idle\u{1b}[0m"] {
            let shown = columns(text, false);
            assert!(shown.is_ascii() && shown.width() == text.width(), "{text}: {shown}");
        }
        assert_eq!(columns("the configurati…", false), "the configurat..");
        for status in Status::ALL {
            assert!(words(status.mark().0, false).len() == 1, "{status}");
        }
    }
}
