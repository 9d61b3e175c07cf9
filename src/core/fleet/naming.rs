//! What a session is called.
//!
//! Scripts have its *name*: its title, else its folder. People are shown its *label*, the folder first: that is what they
//! know, and what makes an approval safe. Labels are cut wherever there is little room, so what tells two of them apart
//! stands at their beginning: no two read alike up to [`TOLD_APART`].

use super::{Row, Session};
use crate::core::text::{NAME_MAX, fit, legible, plain};
use serde::{Serialize, Serializer};
use std::collections::{HashMap, HashSet};
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// Any two labels differ within so many columns: nobody may cut one shorter who shows nothing else that tells sessions apart.
pub const TOLD_APART: usize = 24;
/// A folder, a branch and a title, in characters.
const LABEL_MAX: usize = 3 * NAME_MAX + 10;
/// An id is shortened to no less than this.
const SHORTEST: usize = 4;
/// What is shown of an id's end, where its beginning is another's, too.
const TAIL: usize = 8;

/// What people are shown for a session: `billing-api · Write the migration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label {
    /// Its folder, with what else it takes to tell it from others: `billing-api (main)`. Never blank.
    pub who: String,
    /// Its title, where it has one that says more.
    pub title: Option<Box<str>>,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.title {
            Some(title) => write!(f, "{} · {title}", self.who),
            None => f.write_str(&self.who),
        }
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Label {
    /// As much of it as so many columns show, fit to be shown.
    pub fn cut(&self, columns: usize) -> String {
        fit(&plain(&self.to_string(), LABEL_MAX), columns)
    }
}

impl Session {
    /// Its name, which is its title, else its folder's name, else the first part of its id; and its label, which is its folder and
    /// its title, as far as it has them, else the same part.
    pub(super) fn names(&self) -> (String, Label) {
        let named = |name: &str, who: &str, title| (name.to_owned(), Label { who: who.to_owned(), title });
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
        self.about.name.as_deref().and_then(|text| legible(text, NAME_MAX))
    }

    fn folder(&self) -> Option<Box<str>> {
        self.cwd().and_then(folder_name).and_then(|text| legible(text, NAME_MAX))
    }

    fn id_shown(&self) -> Box<str> {
        legible(short_id(&self.id), NAME_MAX).unwrap_or_else(|| "unnamed".into())
    }
}

/// Tells rows apart that read alike: their names, by their folder, then the branch, then the short id; and their labels.
pub fn distinguish(rows: &mut [Row]) {
    tell_names_apart(rows);
    tell_labels_apart(rows);
}

fn tell_names_apart(rows: &mut [Row]) {
    let additions: [fn(&Row) -> Option<String>; 4] = [
        |row| row.cwd.as_deref().and_then(folder_name).and_then(|folder| legible(folder, NAME_MAX)).map(Into::into),
        |row| row.branch.as_deref().and_then(|branch| legible(branch, NAME_MAX)).map(Into::into),
        |row| Some(plain(short_id(&row.id), NAME_MAX).into()),
        |row| Some(plain(&row.id, NAME_MAX).into()),
    ];
    for addition in additions {
        for group in alike(rows.iter().map(|row| row.name.clone())) {
            let added: Vec<_> = group.iter().map(|&index| addition(&rows[index])).collect();
            if added.iter().all(|one| *one == added[0]) {
                continue; // it would not tell them apart
            }
            for (&index, added) in group.iter().zip(added) {
                if let Some(added) = added.filter(|added| *added != rows[index].name) {
                    rows[index].name = format!("{} · {added}", rows[index].name);
                }
            }
        }
    }
}

/// The branch, and where that does not tell them apart the id, stand right behind the folder, which gives way to the id.
fn tell_labels_apart(rows: &mut [Row]) {
    let cut = |row: &Row| row.label.cut(TOLD_APART);
    let folders: Vec<_> = rows.iter().map(|row| row.label.who.clone()).collect();
    for group in alike(rows.iter().map(cut)) {
        let branches: HashSet<_> = group.iter().map(|&index| &rows[index].branch).collect();
        if branches.len() > 1 {
            for index in group {
                if let Some(branch) = rows[index].branch.as_deref().and_then(|text| legible(text, NAME_MAX)) {
                    rows[index].label.who = format!("{} ({branch})", folders[index]);
                }
            }
        }
    }
    for group in alike(rows.iter().map(cut)) {
        for (index, id) in told_apart(rows, &group) {
            rows[index].label.who = with_id(&folders[index], rows[index].branch.as_deref(), &id);
        }
    }
}

/// The rows that read alike, each group by their indices.
fn alike(texts: impl Iterator<Item = String>) -> Vec<Vec<usize>> {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, text) in texts.enumerate() {
        groups.entry(text).or_default().push(index);
    }
    let mut groups: Vec<_> = groups.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    groups
}

/// As much of their ids as tells these rows apart: the first part, else the end.
fn told_apart(rows: &[Row], group: &[usize]) -> Vec<(usize, String)> {
    let parts: [fn(&str) -> String; 2] = [
        |id| plain(short_id(id), TAIL).into(),
        |id| {
            let from = id.char_indices().rev().nth(TAIL - 1).map_or(0, |(at, _)| at);
            format!("…{}", plain(&id[from..], TAIL))
        },
    ];
    let of =
        |part: fn(&str) -> String| -> Vec<_> { group.iter().map(|&index| (index, part(&rows[index].id))).collect() };
    let differ = |ids: &Vec<(usize, String)>| ids.iter().map(|(_, id)| id).collect::<HashSet<_>>().len() == ids.len();
    let [first, end] = parts.map(of);
    if differ(&first) { first } else { end }
}

/// The folder with the id, and with the branch too where there is room for all of it.
fn with_id(folder: &str, branch: Option<&str>, id: &str) -> String {
    let whole = branch.and_then(|text| legible(text, NAME_MAX)).map(|branch| format!("{folder} ({branch}, {id})"));
    whole.filter(|whole| whole.width() <= TOLD_APART).unwrap_or_else(|| {
        let room = TOLD_APART.saturating_sub(id.width() + " ()".len());
        format!("{} ({id})", fit(folder, room))
    })
}

/// Every id that there is, for shortening each as far as it still names one session.
pub struct ShortIds<'a>(Vec<&'a str>);

impl<'a> ShortIds<'a> {
    /// Among these; the same id may come twice, from two homes.
    pub(crate) fn new(ids: impl Iterator<Item = &'a str>) -> Self {
        let mut ids: Vec<_> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        Self(ids)
    }

    /// The shortest beginning of an id that no other shares.
    pub(crate) fn of<'b>(&self, id: &'b str) -> &'b str {
        let at = self.0.partition_point(|other| *other < id);
        let next = self.0[at..].iter().find(|other| **other != id);
        let neighbours = self.0[..at].last().into_iter().chain(next);
        let shared = neighbours.map(|other| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()).max();
        let length = shared.map_or(0, |shared| shared + 1).max(SHORTEST);
        &id[..(length..id.len()).find(|&end| id.is_char_boundary(end)).unwrap_or(id.len())]
    }
}

/// The part of an id that people read out.
pub fn short_id(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

/// The last part of a path of either system.
fn folder_name(path: &str) -> Option<&str> {
    path.rsplit(['/', '\\']).find(|part| !part.is_empty())
}
