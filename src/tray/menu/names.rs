//! How much of a session's name the menu must show: what sets it apart from the others.

use crate::tray::details::Source;
use crate::tray::view::RowName;
use pilotlight_core::fleet::{LABEL_DISTINCT_WIDTH, Label};
use pilotlight_core::text::{NAME_MAX, fit, plain};
use std::collections::HashMap;
use unicode_width::UnicodeWidthStr;

/// A name is shown in at least so many columns, if it is that wide.
pub(super) const NAME_MIN_WIDTH: usize = 24;

/// The names of the sessions in the menu.
pub(super) struct Names<'a> {
    /// How many sessions are in each folder.
    folders: HashMap<&'a str, usize>,
    /// All are in one folder, and their titles set them apart.
    has_one_folder: bool,
    /// The columns that each name must have, so that it does not read like another.
    least: HashMap<&'a Label, usize>,
}

impl<'a> Names<'a> {
    /// The names of these sessions.
    pub(super) fn of(sources: impl Iterator<Item = &'a Source<'a>>) -> Self {
        let labels: Vec<_> = sources.map(|source| &source.row.label).collect();
        let mut folders = HashMap::new();
        for label in &labels {
            *folders.entry(&*label.who).or_insert(0) += 1;
        }
        let has_one_folder = folders.len() == 1 && labels.len() > 1 && labels.iter().all(|label| label.title.is_some());
        let mut names = Self { folders, has_one_folder, least: HashMap::new() };
        names.least = names.least_columns(&labels);
        names
    }

    /// The columns in which the text of each label differs from those of all others.
    fn least_columns(&self, labels: &[&'a Label]) -> HashMap<&'a Label, usize> {
        let mut texts: Vec<_> = labels.iter().map(|label| (self.text(label), *label)).collect();
        texts.sort_unstable_by(|(a, one), (b, other)| (a, &one.agent).cmp(&(b, &other.agent)));
        let mut least: HashMap<_, _> = labels.iter().map(|label| (*label, NAME_MIN_WIDTH)).collect();
        for pair in texts.windows(2) {
            let [(a, one), (b, other)] = pair else { continue };
            // What differs, which may be two columns wide, and the mark of a cut.
            let differ = shared_columns(a, b) + 3;
            for (text, label) in [(a, one), (b, other)] {
                // Only the agent tells apart what has the same folder and title.
                let columns = if a == b { text.width() + label.mark().width() } else { differ };
                let least = least.entry(label).or_default();
                *least = columns.clamp(*least, LABEL_DISTINCT_WIDTH.max(*least));
            }
        }
        least
    }

    /// A session's folder and title, or its title alone, if all are in one folder.
    fn text(&self, label: &Label) -> String {
        match &label.title {
            Some(title) if self.has_one_folder => plain(title, NAME_MAX).into(),
            _ => label.without_agent().cut(usize::MAX),
        }
    }

    /// The name in a session's row: without its folder, if all share that.
    pub(super) fn in_row(&self, label: &Label) -> RowName {
        let (who, whole) = (plain(&label.who, NAME_MAX), self.text(label));
        let is_enough = !self.is_shared(label) && whole.starts_with(&*who);
        RowName { alone: if is_enough { who.len() } else { 0 }, whole, mark: label.mark(), least: self.least(label) }
    }

    /// The name in an entry of one line that says what it does to the session, in at most so many columns.
    pub(super) fn in_action(&self, label: &Label, columns: usize) -> String {
        match &label.title {
            Some(title) if self.is_shared(label) && (self.has_one_folder || columns < NAME_MIN_WIDTH) => {
                fit(&plain(title, NAME_MAX), columns)
            }
            Some(_) if self.is_shared(label) => label.cut(columns),
            _ => fit(&plain(&label.who, NAME_MAX), columns),
        }
    }

    /// The columns that a session's name must have, so that it does not read like another.
    pub(super) fn least(&self, label: &Label) -> usize {
        self.least.get(label).copied().unwrap_or(LABEL_DISTINCT_WIDTH)
    }

    fn is_shared(&self, label: &Label) -> bool {
        self.folders.get(&*label.who).is_some_and(|n| *n > 1)
    }
}

/// The width of what two texts begin with.
fn shared_columns(a: &str, b: &str) -> usize {
    let shared = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum();
    a[..shared].width()
}
