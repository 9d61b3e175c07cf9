//! Makes text from a session safe to display: one bounded line, without anything that affects a terminal, a menu or the
//! reading direction.

use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Maximum length of names, titles and ids, in characters.
pub const NAME_MAX: usize = 120;
/// Maximum length of commands, paths and error messages, in characters.
pub const COMMAND_MAX: usize = 400;

/// Maximum length of what is shown of a session's last message, in characters.
pub const MESSAGE_MAX: usize = 500;

/// Returns text as one line of at most `most` characters. White space and control characters become single spaces,
/// invisible and direction-changing ones are removed, and truncation is marked with `…`.
pub fn plain(text: &str, most: usize) -> Box<str> {
    let mut out = String::with_capacity(text.len().min(most * 4));
    let mut left = most;
    let mut space = false;
    for c in text.chars() {
        if is_invisible(c) {
            continue;
        }
        if c.is_whitespace() || c.is_control() {
            space = !out.is_empty();
            continue;
        }
        let needed = 1 + usize::from(space);
        if left < needed {
            // The ellipsis replaces the last character, so that the bound holds.
            if left == 0 {
                out.pop();
            }
            out.push('…');
            break;
        }
        if std::mem::take(&mut space) {
            out.push(' ');
        }
        out.push(c);
        left -= needed;
    }
    out.into_boxed_str()
}

/// Like [`plain`], but `None` for text that would look blank: white space, fillers, marks without a letter.
pub fn legible(text: &str, most: usize) -> Option<Box<str>> {
    let shown = plain(text, most);
    let is_seen = |c: char| !c.is_whitespace() && !renders_blank(c) && c.width().is_some_and(|width| width > 0);
    // The ellipsis does not count as visible.
    let is_cut = shown.chars().count() >= most;
    let uncut = shown.strip_suffix('…').filter(|_| is_cut).unwrap_or(&shown);
    uncut.contains(is_seen).then_some(shown)
}

/// Truncates text to `columns`, counting wide characters as two. Truncation is marked with `…`.
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = text[..prefix_len(text, columns.saturating_sub(1))].to_owned();
    if columns > 0 {
        out.push('…');
    }
    out
}

/// Text that a session wrote, between words of ours: if it has right-to-left letters, it is isolated (FSI, PDI), so that
/// they do not reorder what surrounds it. Truncate it first.
pub fn isolated(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_right_to_left) { format!("\u{2068}{text}\u{2069}").into() } else { text.into() }
}

/// The blocks of strong right-to-left characters, including unassigned ones (Unicode's DerivedBidiClass.txt, defaults R
/// and AL).
pub(super) const fn is_right_to_left(c: char) -> bool {
    matches!(c as u32, 0x590..=0x8FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFF | 0x1_0800..=0x1_0FFF | 0x1_E800..=0x1_EFFF)
}

/// Wraps text, without loss, to lines of at most `columns`. A line break stands for one space of the text. A word too
/// long for a line is broken with a backslash at the end of the line, as in a shell.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), None::<(String, usize)>);
    let mut rest = Some(text);
    while let Some(from) = rest {
        // Never break at a space after a backslash: the line would look like a broken word.
        let end = from.match_indices(' ').map(|(at, _)| at).find(|&at| !from[..at].ends_with('\\'));
        let mut word = end.map_or(from, |at| &from[..at]);
        rest = end.map(|at| &from[at + 1..]);
        let (mut now, mut used) = match line.take() {
            Some((line, used)) if used + 1 + width(word) <= columns => (line + " ", used + 1),
            Some((line, _)) => {
                lines.push(line);
                (String::new(), 0)
            }
            None => (String::new(), 0),
        };
        while used + width(word) > columns {
            let part = prefix_len(word, columns.saturating_sub(1));
            let (part, more) = word.split_at(part.max(word.chars().next().map_or(0, char::len_utf8)));
            lines.push(format!("{part}\\"));
            (now, used, word) = (String::new(), 0, more);
        }
        line = Some((now + word, used + width(word)));
    }
    lines.extend(line.map(|(line, _)| line));
    lines
}

/// The width of a text in columns. Nearly all text is plain ASCII, which needs no table lookup.
fn width(text: &str) -> usize {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) { text.len() } else { text.width() }
}

/// The number of bytes of the longest prefix that fits into `columns`.
fn prefix_len(text: &str, columns: usize) -> usize {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    text.chars().take_while(fits).map(char::len_utf8).sum()
}

/// Like [`wrap`], but truncated to at most `most` lines.
pub fn lines(text: &str, columns: usize, most: usize) -> Vec<String> {
    let mut lines = wrap(text, columns);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = fit(&format!("{}…", fit(last, columns.saturating_sub(1)).trim_end_matches('…')), columns);
        }
    }
    lines
}

/// Invisible characters that affect their surroundings: direction marks and overrides, joiners and other zero-width
/// format characters, tags, byte-order marks (Unicode's Bidi_Control and Default_Ignorable_Code_Point, except for the
/// two joiners that scripts and emoji need).
pub fn is_invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x34F | 0x61C | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B | 0x200E | 0x200F | 0x202A..=0x202E
        | 0x2060..=0x206F | 0x3164 | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A
        | 0xE0000..=0xE0FFF)
}

/// JSON in which characters that act on a terminal, or change the text invisibly, are escaped. JSON itself only requires
/// this for the first 32 control characters. Non-ASCII characters occur in its strings alone, so they can be escaped in
/// the serialized text.
pub fn escaped_json(text: String) -> String {
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

/// Characters that leave nothing on screen: the [invisible](is_invisible) ones, the joiners and variation selectors,
/// which names and emoji need but commands do not, and blank letters, notes and signs.
pub(crate) fn renders_blank(c: char) -> bool {
    is_invisible(c) || matches!(u32::from(c), 0x200C | 0x200D | 0x2800 | 0xFE00..=0xFE0F | 0x13441..=0x13442 | 0x1D159)
}

/// A list in words: `a`, `a and b`, `a, b and c`.
pub fn listed(items: &[impl AsRef<str>]) -> String {
    let mut out = String::new();
    for (index, item) in items.iter().enumerate() {
        let joint = if index == 0 {
            ""
        } else if index + 1 == items.len() {
            " and "
        } else {
            ", "
        };
        let _ = write!(out, "{joint}{}", item.as_ref());
    }
    out
}

/// `a, b or c`.
pub fn any_of(items: &[impl AsRef<str>]) -> String {
    match items {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [all @ .., last] => {
            let all: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", all.join(", "), last.as_ref())
        }
    }
}

/// `1 background agent`, `2 background agents`.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A number of bytes in the largest unit that fits: `456 B`, `2 KB`, `12 MB`, in powers of 1000.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} KB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// The least number of bytes that [`size`] words like this one.
pub(crate) const fn least_of_size(bytes: u64) -> u64 {
    match bytes {
        0..1000 => bytes,
        1000..1_000_000 => bytes - bytes % 1000,
        _ => bytes - bytes % 1_000_000,
    }
}

/// Whether an id is a UUID, as Copilot's are. No other id is put into a command line or the clipboard.
pub fn is_uuid(id: &str) -> bool {
    let lengths = id.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// The text with its first letter in upper case.
pub fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// Escapes markup.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_one_bounded_line() {
        assert_eq!(&*plain("  a\n\tb\u{1b}[31m  c\0", 100), "a b [31m c");
        assert_eq!(&*plain("ab\u{202e}dc\u{200b}\u{2028}e", 100), "abdc e");
        assert_eq!(&*plain("abcdef", 6), "abcdef");
        assert_eq!(&*plain("abcdefg", 6), "abcde…");
        assert_eq!(plain(&"é ".repeat(10_000), 120).chars().count(), 120);
        assert_eq!(&*plain("", 5), "");
    }

    #[test]
    fn case_144_text_that_looks_blank_is_no_name() {
        let (filler, braille, mark, joiner) = ("\u{3164}", "\u{2800}", "\u{301}", "\u{200d}");
        for blank in [
            "",
            " \t\n",
            filler,
            braille,
            mark,
            joiner,
            "\u{1d159}",
            "\u{fe0f}",
            "\u{2003}\u{3000}",
            "\u{115f}\u{1160}",
        ] {
            assert_eq!(legible(blank, 10), None, "{blank:?}");
            assert_eq!(legible(&blank.repeat(20), 10), None, "{blank:?}");
        }
        for seen in ["a", "日", "é", "👩\u{200d}💻", "-", "\u{5e9}", "\u{fffd}"] {
            assert_eq!(legible(seen, 10).as_deref(), Some(seen));
            assert_eq!(legible(&format!("{braille}{seen}"), 10).as_deref(), Some(&*format!("{braille}{seen}")));
        }
    }

    #[test]
    fn wrapped_text_can_be_joined_again() {
        assert_eq!(wrap("rm -rf build and more", 10), ["rm -rf", "build and", "more"]);
        assert_eq!(wrap("cat /a/very/long/path x", 10), ["cat", "/a/very/l\\", "ong/path x"]);
        assert_eq!(wrap("a b\\ c", 4), ["a", "b\\ c"], "no line end that looks like a broken word");
        assert_eq!(wrap("日本語", 5), ["日本\\", "語"]);
        assert_eq!(wrap("", 5), [""]);
        for text in ["a", "one two three four five", &"x".repeat(40), "a\\ b\\ c d", "日本語 の 名前"] {
            for columns in 3..12 {
                let lines = wrap(text, columns);
                assert!(lines.iter().all(|line| line.width() <= columns), "{lines:?}");
                let mut read = String::new();
                for (n, line) in lines.iter().enumerate() {
                    let last = n + 1 == lines.len();
                    match line.strip_suffix('\\') {
                        Some(part) if !last => read.push_str(part),
                        _ => read += &format!("{line}{}", if last { "" } else { " " }),
                    }
                }
                assert!(read == text, "{text:?} {columns} {lines:?}");
            }
        }
        assert_eq!(lines("one two three four", 8, 2), ["one two", "three…"]);
    }

    #[test]
    fn lists_and_counts_are_worded() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(counted(1, "request"), "1 request");
        assert_eq!(counted(0, "request"), "0 requests");
    }

    #[test]
    fn alternatives_are_worded() {
        assert_eq!(any_of(&[""; 0]), "");
        assert_eq!(any_of(&["a"]), "a");
        assert_eq!(any_of(&["a", "b", "c"]), "a, b or c");
    }

    #[test]
    fn sizes_are_worded_alike_from_the_least_one_on() {
        for (bytes, words, least) in [
            (0, "0 B", 0),
            (999, "999 B", 999),
            (1000, "1 KB", 1000),
            (2999, "2 KB", 2000),
            (999_999, "999 KB", 999_000),
            (1_000_000, "1 MB", 1_000_000),
            (12_345_678, "12 MB", 12_000_000),
        ] {
            assert_eq!((&*size(bytes), least_of_size(bytes)), (words, least));
            assert_eq!(size(least), words);
        }
    }

    #[test]
    fn markup_and_what_acts_on_a_terminal_are_escaped() {
        assert_eq!(escaped("<b>&amp;"), "&lt;b&gt;&amp;amp;");
        for harmless in ["", "{\"a\": \"b\\n\"}\n", "é 日本語 👩"] {
            assert_eq!(escaped_json(harmless.to_owned()), harmless);
        }
        for (acts, escaped) in [
            ('\u{7f}', "\\u007f"),
            ('\u{9b}', "\\u009b"),
            ('\u{202e}', "\\u202e"),
            ('\u{2028}', "\\u2028"),
            ('\u{2029}', "\\u2029"),
            ('\u{e0041}', "\\udb40\\udc41"),
        ] {
            assert_eq!(escaped_json(format!("\"é{acts}\"")), format!("\"é{escaped}\""));
        }
    }

    #[test]
    fn only_uuids_are_recognized() {
        assert!(is_uuid("36535f61-5c7b-4f09-a70b-2f8aed970001") && is_uuid("36535F61-5C7B-4F09-A70B-2F8AED970001"));
        for not in [
            "",
            "36535f61",
            "36535f61-5c7b-4f09-a70b-2f8aed97000",
            "36535f61-5c7b-4f09-a70b-2f8aed97000g",
            "36535f61-5c7b-4f09-a70b-2f8aed970001\n",
            "36535f61-5c7b-4f09-a70b-2f8aed97000 ",
            "36535f615c7b4f09a70b2f8aed970001----",
            "36535f61-5c7b-4f09-a70b-2f8aed97ä01",
            "--------------------------------------",
            "$(touch x)",
        ] {
            assert!(!is_uuid(not), "{not:?}");
        }
    }

    #[test]
    fn text_that_fits_its_lines_is_not_cut() {
        let text = "one two three four";
        assert_eq!(wrap(text, 8), ["one two", "three", "four"]);
        for most in [3, 4] {
            assert_eq!(lines(text, 8, most), wrap(text, 8));
        }
        assert_eq!(lines(text, 8, 1), ["one two…"]);
        let cut = lines("exactly8 more", 8, 1);
        assert!(cut.len() == 1 && cut[0].ends_with('…') && cut[0].width() <= 8, "{cut:?}");
    }

    #[test]
    fn text_is_cut_to_its_columns_and_isolated_if_it_reads_from_the_right() {
        assert_eq!((fit("abc", 3), fit("abc", 2), fit("abc", 0)), ("abc".into(), "a…".into(), String::new()));
        assert_eq!((isolated("abc"), isolated("שלום")), ("abc".into(), "\u{2068}שלום\u{2069}".into()));
        assert_eq!(wrap("a b c d", 5), ["a b c", "d"], "each space takes a column");
    }
}
