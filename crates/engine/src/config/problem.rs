//! What is wrong with a config, in words that name the place.

use std::fmt;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::DeString;

use super::nearest::nearest;
use super::printable::{printable, shown};
use super::settings::name;

/// How many problems of one file are reported; the rest are counted.
const MOST: usize = 20;

/// What holds instead of what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The settings as they were last valid: the file cannot be used at all.
    LastValid,
    /// The most careful settings, because none are known that were valid.
    Careful,
    /// Something else, in words without the closing full stop. May be empty.
    Else(String),
}

impl<W: Into<String>> From<W> for Instead {
    fn from(words: W) -> Self {
        Self::Else(words.into())
    }
}

/// One thing that is wrong with a config, and what holds instead. Shown as `FILE:LINE:COLUMN: what.`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The config file.
    pub path: PathBuf,
    /// Where in the file, if at one place.
    pub at: Option<Position>,
    /// What is wrong, without the closing full stop.
    pub what: String,
    /// What was probably meant.
    pub hint: Option<String>,
    /// What holds instead when the file is read at the start.
    pub instead: Instead,
}

/// A place in a text, as editors count: both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.complaint())?;
        match &self.instead {
            Instead::LastValid => f.write_str(" The last valid settings apply."),
            Instead::Careful => f.write_str(
                " Until you repair it, the defaults apply, with these exceptions: popups show neither titles nor commands, no \
                 last message is shown, and Pilotlight looks for no further homes, asks no server about a silent session, \
                 and does not use Codex's daemon.",
            ),
            Instead::Else(words) if words.is_empty() => Ok(()),
            Instead::Else(words) => write!(f, " {words}."),
        }
    }
}

impl Problem {
    /// Whether the whole file is ignored, including what is right in it.
    pub(crate) fn spoils_all(&self) -> bool {
        matches!(self.instead, Instead::LastValid | Instead::Careful)
    }

    /// The place and what is wrong there, without what holds instead: `FILE:LINE:COLUMN: what.`
    pub(crate) fn complaint(&self) -> String {
        self.about(&self.path)
    }

    /// The same without the folders of the file.
    pub fn brief(&self) -> String {
        self.about(self.path.file_name().map_or(&*self.path, Path::new))
    }

    fn about(&self, file: &Path) -> String {
        let (file, what) = (printable(file.to_string_lossy().chars()), &self.what);
        let at = self.at.map(|Position { line, column }| format!(":{line}:{column}")).unwrap_or_default();
        match &self.hint {
            Some(hint) => format!("{file}{at}: {what}, did you mean `{hint}`?"),
            None => format!("{file}{at}: {what}."),
        }
    }
}

/// Collects the problems of one text.
pub(super) struct Problems<'t> {
    text: &'t str,
    path: &'t Path,
    /// Each with its offset into the text, if it has one.
    found: Vec<(Option<usize>, String, Option<String>, Instead)>,
}

impl<'t> Problems<'t> {
    pub(super) fn new(text: &'t str, path: &'t Path) -> Self {
        Self { text, path, found: Vec::new() }
    }

    /// Adds a problem at the byte `offset` of the text, and what holds instead.
    pub(super) fn add(&mut self, offset: Option<usize>, what: impl Into<String>, instead: impl Into<Instead>) {
        self.found.push((offset, what.into(), None, instead.into()));
    }

    /// Adds a key of `table` that does not exist. Returns what was probably meant.
    pub(super) fn unknown_key(&mut self, table: &str, key: &Spanned<DeString<'_>>) -> Option<String> {
        let what = format!("unknown key `{}`", name(table, &shown(key.get_ref())));
        let meant = nearest(table, key.get_ref());
        self.found.push((Some(key.span().start), what, meant.clone(), "It is ignored".into()));
        meant
    }

    /// The first [`MOST`] problems in the order of the file, and the number of the others as the last one.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        let Self { text, path, mut found } = self;
        found.sort_by_key(|&(offset, ..)| offset);
        if let more @ 1.. = found.len().saturating_sub(MOST) {
            found.truncate(MOST);
            found.push((None, format!("{more} more like these"), None, "".into()));
        }
        let place = |offset: Option<usize>| offset.map(|offset| position(text, offset));
        let problem =
            |(offset, what, hint, instead)| Problem { path: path.to_owned(), at: place(offset), what, hint, instead };
        found.into_iter().map(problem).collect()
    }
}

/// The position of the byte `offset` in `text`; the end for an offset past it.
fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
    let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
    Position { line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_from_one_in_characters() {
        let text = "a = 1\nä = 2\n";
        let at = |offset| {
            let Position { line, column } = position(text, offset);
            (line, column)
        };
        assert_eq!([at(0), at(4), at(6), at(8), at(13), at(999)], [(1, 1), (1, 5), (2, 1), (2, 2), (3, 1), (3, 1)]);
    }

    #[test]
    fn a_problem_is_shown_with_its_position() {
        let mut problem = Problem {
            path: PathBuf::from("/home/u/a\nb.toml"),
            at: Some(Position { line: 7, column: 1 }),
            what: "wrong".into(),
            hint: None,
            instead: "Ignored".into(),
        };
        assert_eq!(problem.to_string(), "/home/u/a\\nb.toml:7:1: wrong. Ignored.");
        problem.at = None;
        assert_eq!(problem.to_string(), "/home/u/a\\nb.toml: wrong. Ignored.");
        assert_eq!(problem.complaint(), "/home/u/a\\nb.toml: wrong.");
        assert_eq!(problem.brief(), "a\\nb.toml: wrong.");
    }
}
