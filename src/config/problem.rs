//! What is wrong with a config, in words that name the place.
//!
//! Texts that come from the file are shown shortened and with everything unprintable escaped: a message goes to a terminal
//! and into a menu, where control and direction characters would have their own way.

use std::fmt;
use std::path::{Path, PathBuf};

/// How many problems of one file are told; the rest is counted.
const MOST: usize = 20;

/// How many characters of a text from the file a message shows.
const SHOWN: usize = 60;

/// What holds instead of a file that nothing can be read from.
pub(super) const ALL: &str = "All settings have their defaults";

/// One thing that is wrong with a config, and what holds instead. Shown as `FILE:LINE:COLUMN: what.`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The config file.
    pub path: PathBuf,
    /// Where in the file, if it is about one place.
    pub at: Option<Position>,
    /// What is wrong, without the closing full stop.
    pub what: String,
    /// What holds instead, where the file is read at the start, without the closing full stop. May be empty.
    pub instead: String,
}

/// A place in a text, as editors count: both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.complaint())?;
        if self.instead.is_empty() { Ok(()) } else { write!(f, " {}.", self.instead) }
    }
}

impl Problem {
    /// Whether nothing of the file counts, not even what is right.
    pub(crate) fn spoils_all(&self) -> bool {
        self.instead == ALL
    }

    /// The place and what is wrong there, without what holds instead: `FILE:LINE:COLUMN: what.`
    pub(crate) fn complaint(&self) -> String {
        let (path, what) = (printable(self.path.to_string_lossy().chars()), &self.what);
        let stop = if what.ends_with('?') { "" } else { "." };
        match self.at {
            Some(Position { line, column }) => format!("{path}:{line}:{column}: {what}{stop}"),
            None => format!("{path}: {what}{stop}"),
        }
    }
}

/// Gathers the problems of one text.
pub(super) struct Report<'t> {
    text: &'t str,
    path: &'t Path,
    /// Each with its offset into the text, where it has one.
    found: Vec<(Option<usize>, String, String)>,
}

impl<'t> Report<'t> {
    pub(super) fn new(text: &'t str, path: &'t Path) -> Self {
        Self { text, path, found: Vec::new() }
    }

    /// Adds what is wrong at the byte `offset` of the text, and what holds instead.
    pub(super) fn add(&mut self, offset: Option<usize>, what: impl Into<String>, instead: impl Into<String>) {
        self.found.push((offset, what.into(), instead.into()));
    }

    /// The problems in the order of the file. The first [`MOST`] are told; how many more there are is the last one.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|&(offset, ..)| offset);
        let more = self.found.len().saturating_sub(MOST);
        let problem = |at, what, instead| Problem { path: self.path.to_owned(), at, what, instead };
        let mut problems: Vec<_> = self
            .found
            .into_iter()
            .take(MOST)
            .map(|(offset, what, instead)| problem(offset.map(|offset| position(self.text, offset)), what, instead))
            .collect();
        if more > 0 {
            problems.push(problem(None, format!("{more} more like these"), String::new()));
        }
        problems
    }
}

/// The place of the byte `offset` in `text`; of an offset past the end, the end.
fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
    let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
    Position { line, column }
}

/// `text` on one line, shortened, with everything unprintable escaped.
pub(super) fn shown(text: &str) -> String {
    let mut out = printable(text.chars().take(SHOWN));
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}

fn printable(chars: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for c in chars {
        match c {
            // These two are escaped by `escape_debug` only for source code's sake; paths on Windows are full of one.
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
    fn a_place_is_counted_from_one_in_characters() {
        let text = "a = 1\nä = 2\n";
        let at = |offset| {
            let Position { line, column } = position(text, offset);
            (line, column)
        };
        assert_eq!([at(0), at(4), at(6), at(8), at(13), at(999)], [(1, 1), (1, 5), (2, 1), (2, 2), (3, 1), (3, 1)]);
    }

    #[test]
    fn what_cannot_be_printed_is_escaped_and_what_is_long_is_cut() {
        assert_eq!(shown("a\u{1b}[2J\n\u{202e}b"), r"a\u{1b}[2J\n\u{202e}b");
        assert_eq!(shown(r#"C:\x "y" 'z' ä"#), r#"C:\x "y" 'z' ä"#);
        assert_eq!(shown(&"x".repeat(60)), "x".repeat(60));
        assert_eq!(shown(&"x".repeat(61)), format!("{}…", "x".repeat(60)));
    }

    #[test]
    fn a_problem_is_shown_with_its_place() {
        let mut problem = Problem {
            path: PathBuf::from("/home/u/a\nb.toml"),
            at: Some(Position { line: 7, column: 1 }),
            what: "wrong".into(),
            instead: "Ignored".into(),
        };
        assert_eq!(problem.to_string(), "/home/u/a\\nb.toml:7:1: wrong. Ignored.");
        problem.at = None;
        assert_eq!(problem.to_string(), "/home/u/a\\nb.toml: wrong. Ignored.");
        assert_eq!(problem.complaint(), "/home/u/a\\nb.toml: wrong.");
    }
}
