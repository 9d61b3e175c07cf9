//! One entry of the layout, with those below it.

use super::appearance::Appearance;
use crate::core::time::Moment;
use crate::tray::sni::property::Properties;
use crate::tray::view::ItemId;
use std::collections::BTreeMap;

/// An entry of the menu.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The dbusmenu item id.
    pub(super) number: i32,
    /// The item of the view; `None` for text and separators.
    pub(super) id: Option<ItemId>,
    pub(super) appearance: Appearance,
    /// The label that panels were last sent; `None` if it has no age.
    pub(super) sent_label: Option<String>,
    pub(super) entries: Vec<Self>,
}

impl Entry {
    pub(super) fn properties(&self, now: Moment) -> Properties {
        self.appearance.properties(&self.appearance.label(now))
    }
}

/// The entry with this number, at any level.
pub(super) fn find(entries: &[Entry], number: i32) -> Option<&Entry> {
    entries.iter().find_map(|entry| if entry.number == number { Some(entry) } else { find(&entry.entries, number) })
}

/// The entry with this number, at any level, to be changed.
pub(super) fn find_mut(entries: &mut [Entry], number: i32) -> Option<&mut Entry> {
    entries.iter_mut().find_map(|entry| match entry.number == number {
        true => Some(entry),
        false => find_mut(&mut entry.entries, number),
    })
}

/// Collects the entries of all levels, by number.
pub(super) fn collect<'a>(entries: &'a [Entry], all: &mut BTreeMap<i32, &'a Entry>) {
    for entry in entries {
        all.insert(entry.number, entry);
        collect(&entry.entries, all);
    }
}
