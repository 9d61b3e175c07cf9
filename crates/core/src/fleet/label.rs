//! What a session is called.
//!
//! Scripts get its *name*: its title, else its folder. People see its *label*, which starts with the folder: that is
//! what they recognize, and what makes an approval safe. The title follows. Labels are truncated to fit, and no two are
//! equal within [`LABEL_DISTINCT_WIDTH`]: where folder and title do not tell sessions apart by then, the branch or the id
//! stands right after the folder.

use crate::session::Session;
use crate::text::{NAME_MAX, fit, legible, plain};
use serde::{Serialize, Serializer};
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// Any two labels differ within this many columns. Do not truncate a label further unless something else shown
/// distinguishes the sessions.
pub const LABEL_DISTINCT_WIDTH: usize = 30;
/// Widest folder to which a branch, an id or a machine is added, with that, in columns.
pub(super) const FOLDER_WIDTH: usize = 24;
/// Maximum length of a label, in characters: a folder, a branch and a title.
const LABEL_MAX: usize = 3 * NAME_MAX + 10;
/// Minimum length of a shortened id.
const SHORT_ID_MIN: usize = 4;

/// A session's name for people: `billing-api · Write the migration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label {
    /// Its folder, with whatever is needed to distinguish it from others: `billing-api (main)`. Never blank.
    pub who: String,
    /// Its title, if it has one that adds to the folder.
    pub title: Option<Box<str>>,
    /// The mark of its agent, where sessions of several agents are listed: `Claude`. It stands at the end, and only where
    /// there is room for all of the label.
    pub agent: Option<Box<str>>,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.who)?;
        if let Some(title) = &self.title {
            write!(f, " · {title}")?;
        }
        f.write_str(&self.mark())
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Label {
    /// What the label ends with, where sessions of several agents are listed: ` (Claude)`.
    pub fn mark(&self) -> String {
        self.agent.as_deref().map(|agent| format!(" ({agent})")).unwrap_or_default()
    }

    /// The same without the agent, for a place next to that.
    pub fn without_agent(&self) -> Self {
        Self { agent: None, ..self.clone() }
    }

    /// The label truncated to `columns`, safe to display. The agent is the first to be left out, then the title is cut.
    pub fn cut(&self, columns: usize) -> String {
        let of = |label: &Self| plain(&label.to_string(), LABEL_MAX);
        let whole = of(self);
        if self.agent.is_none() || whole.width() <= columns {
            return fit(&whole, columns);
        }
        fit(&of(&self.without_agent()), columns)
    }
}

impl Session {
    /// Returns its name (its title, else its folder's name, else the first part of its id) and its label (its folder
    /// and title as available, else the same part of its id).
    pub(super) fn names(&self) -> (String, Label) {
        let named = |name: &str, who: &str, title| (name.to_owned(), Label { who: who.to_owned(), title, agent: None });
        match (self.folder(), self.title()) {
            (Some(folder), Some(title)) if title != folder => named(&title, &folder, Some(title.clone())),
            (Some(only), _) | (None, Some(only)) => named(&only, &only, None),
            (None, None) => {
                let id = self.id_shown();
                named(&id, &id, None)
            }
        }
    }

    fn title(&self) -> Option<Box<str>> {
        self.observed.about.name.as_deref().and_then(|text| legible(text, NAME_MAX))
    }

    fn folder(&self) -> Option<Box<str>> {
        self.cwd().and_then(folder_name).and_then(|text| legible(text, NAME_MAX))
    }

    fn id_shown(&self) -> Box<str> {
        legible(short_id(&self.id), NAME_MAX).unwrap_or_else(|| "unnamed".into())
    }
}

/// All known ids, for shortening each to a unique prefix.
pub struct ShortIds<'a>(Vec<&'a str>);

impl<'a> ShortIds<'a> {
    /// Collects the ids. The same id may occur twice, from two homes.
    pub fn new(ids: impl Iterator<Item = &'a str>) -> Self {
        let mut ids: Vec<_> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        Self(ids)
    }

    /// The shortest prefix of an id that no other id shares.
    pub fn of<'b>(&self, id: &'b str) -> &'b str {
        let at = self.0.partition_point(|other| *other < id);
        let next = self.0[at..].iter().find(|other| **other != id);
        let neighbours = self.0[..at].last().into_iter().chain(next);
        let shared = neighbours.map(|other| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()).max();
        let length = shared.map_or(0, |shared| shared + 1).max(SHORT_ID_MIN);
        &id[..(length..id.len()).find(|&end| id.is_char_boundary(end)).unwrap_or(id.len())]
    }
}

/// The first part of an id, which is what people use to refer to it.
pub fn short_id(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

/// The last component of a Unix or Windows path.
pub(super) fn folder_name(path: &str) -> Option<&str> {
    path.rsplit(['/', '\\']).find(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_whole_where_there_is_room() {
        let (who, title) = ("f".repeat(NAME_MAX), "t".repeat(NAME_MAX));
        let label = Label { who: format!("{who} ({who})"), agent: None, title: Some(title.into()) };
        assert_eq!(label.cut(1000), label.to_string());
        assert_eq!(label.cut(10), format!("{}…", "f".repeat(9)));
    }

    #[test]
    fn case_667_an_agent_stands_at_the_end_where_there_is_room() {
        let label = |title: Option<&str>| Label {
            who: "web-shop".into(),
            title: title.map(Into::into),
            agent: Some("Claude".into()),
        };
        assert_eq!(label(None).to_string(), "web-shop (Claude)");
        let titled = label(Some("Fix the tests"));
        assert_eq!(titled.to_string(), "web-shop · Fix the tests (Claude)");
        assert_eq!(titled.cut(33), titled.to_string());
        assert_eq!(titled.cut(32), "web-shop · Fix the tests");
        assert_eq!(titled.cut(20), "web-shop · Fix the …");
        assert_eq!(titled.without_agent().to_string(), "web-shop · Fix the tests");
    }

    #[test]
    fn an_id_is_shortened_to_what_no_other_shares() {
        let shorten = |ids: &[&str], id| ShortIds::new(ids.iter().copied()).of(id).to_owned();
        let ids = ["aaaa1111-0000", "aaaa1122-0000", "bbbb0000-0000", "bbcc0000-0000"];
        for (id, short) in ids.into_iter().zip(["aaaa111", "aaaa112", "bbbb", "bbcc"]) {
            assert_eq!(shorten(&ids, id), short);
        }
        assert_eq!(shorten(&["x"], "x"), "x", "a short id is left whole");
        let twice = ["aaaa1111", "aaaa1111", "cccc1111"];
        assert_eq!(shorten(&twice, "aaaa1111"), "aaaa", "the same session in two homes");
        let longer = ["abcde", "abcdef"];
        assert_eq!((shorten(&longer, "abcde"), shorten(&longer, "abcdef")), ("abcde".into(), "abcdef".into()));
        assert_eq!(shorten(&["ééé", "éèé"], "ééé"), "éé", "never inside a character");
    }
}
