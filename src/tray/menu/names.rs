//! How much of a session's name the menu must show: what sets it apart from the others.

use crate::core::fleet::{LABEL_DISTINCT_WIDTH, Label};
use crate::core::text::{NAME_MAX, fit, plain};
use crate::tray::details::Source;
use crate::tray::view::RowName;
use std::collections::HashMap;

/// The names of the sessions in the menu.
pub(super) struct Names<'a> {
    /// How many sessions are in each folder.
    folders: HashMap<&'a str, usize>,
    /// All are in one folder, and their titles set them apart.
    has_one_folder: bool,
}

impl<'a> Names<'a> {
    /// The names of these sessions.
    pub(super) fn of(sources: impl Iterator<Item = &'a Source<'a>>) -> Self {
        let (mut folders, mut all_titled) = (HashMap::new(), true);
        for Source { row, .. } in sources {
            *folders.entry(row.label.head()).or_insert(0) += 1;
            all_titled &= row.label.title.is_some();
        }
        let has_one_folder = all_titled && folders.len() == 1 && folders.values().all(|n| *n > 1);
        Self { folders, has_one_folder }
    }

    /// The name in a session's row: without its folder, if all share that.
    pub(super) fn in_row(&self, label: &Label) -> RowName {
        if let (true, Some(title)) = (self.has_one_folder, &label.title) {
            return RowName { whole: plain(title, NAME_MAX).into(), alone: 0 };
        }
        let (who, whole) = (plain(label.head(), NAME_MAX), label.cut(usize::MAX));
        let is_enough = !self.is_shared(label) && whole.starts_with(&*who);
        RowName { whole, alone: if is_enough { who.len() } else { 0 } }
    }

    /// The name in an entry of one line that says what it does to the session, in at most so many columns.
    pub(super) fn in_action(&self, label: &Label, columns: usize) -> String {
        match &label.title {
            Some(title) if self.is_shared(label) && (self.has_one_folder || columns < LABEL_DISTINCT_WIDTH) => {
                fit(&plain(title, NAME_MAX), columns)
            }
            Some(_) if self.is_shared(label) => label.cut(columns),
            _ => fit(&plain(label.head(), NAME_MAX), columns),
        }
    }

    fn is_shared(&self, label: &Label) -> bool {
        self.folders.get(label.head()).is_some_and(|n| *n > 1)
    }
}
