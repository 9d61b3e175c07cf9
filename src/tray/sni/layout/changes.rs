//! What changed of entries that keep their numbers.

use super::appearance::Wording;
use super::appearance::{Appearance, EntryType};
use super::entry::Entry;
use crate::tray::sni::property::Properties;
use std::collections::{BTreeMap, BTreeSet};

/// The names of changed properties, by entry.
pub(crate) type ChangedNames = BTreeMap<i32, BTreeSet<&'static str>>;

/// Changed properties, as `ItemsPropertiesUpdated` sends them.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Properties with new values, by entry.
    pub(crate) set: Vec<(i32, Properties)>,
    /// Properties that have their default value again, by entry.
    pub(crate) unset: Vec<(i32, Vec<&'static str>)>,
}

impl Changes {
    /// Records how the properties of an entry change with a new appearance.
    pub(super) fn record(&mut self, entry: &Entry, appearance: &Appearance, how: Wording) {
        let Entry { number, appearance: old, sent_label, .. } = entry;
        let old_label = sent_label.clone().unwrap_or_else(|| old.label(how));
        let (mut set, old_set) = (appearance.properties(&appearance.label(how), how), old.properties(&old_label, how));
        let unset: Vec<_> = old_set.keys().copied().filter(|name| !set.contains_key(name)).collect();
        let unknown_state = matches!(old.entry_type, EntryType::Check(None));
        set.retain(|name, value| old_set.get(name) != Some(value) || (unknown_state && *name == "toggle-state"));
        if !set.is_empty() {
            self.set.push((*number, set));
        }
        if !unset.is_empty() {
            self.unset.push((*number, unset));
        }
    }

    /// Adds the names of what changed, for replies that have it.
    pub(crate) fn add_names(self, names: &mut ChangedNames) {
        for (number, set) in self.set {
            names.entry(number).or_default().extend(set.into_keys());
        }
        for (number, unset) in self.unset {
            names.entry(number).or_default().extend(unset);
        }
    }

    /// Whether nothing changed.
    pub(crate) const fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }
}
