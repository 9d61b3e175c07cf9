//! The dbusmenu layout: a tree of entries, each with a number, which is its dbusmenu item id. Pure: signals and replies
//! come out as values.
//!
//! An entry keeps its number when its label changes, and no other entry ever gets that number. So a click that is in
//! flight when the menu changes does what its entry said, or nothing. Some of the entries that move get new numbers,
//! because GNOME's extension never moves a number that it knows ([`keep_numbers`]).
//!
//! The structure changes only while the menu is closed, so that nothing moves under the pointer. While it is open,
//! labels change in place, and entries that are gone are disabled.

mod appearance;
mod entry;
mod reply;
#[cfg(test)]
mod tests;

pub(super) use reply::LayoutReply;

use super::property::{Properties, Property, ROOT, filtered, root_properties};
use crate::core::time::Moment;
use crate::tray::view::{Item, ItemId, Text};
use appearance::{Appearance, EntryType};
use entry::{Entry, collect, find, find_mut};
use reply::PropertyFilter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changed properties, as `ItemsPropertiesUpdated` sends them.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Properties with new values, by entry.
    pub(super) set: Vec<(i32, Properties)>,
    /// Properties that have their default value again, by entry.
    pub(super) unset: Vec<(i32, Vec<&'static str>)>,
}

/// The tree of entries, and the numbers given out so far.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Shared with replies that are being sent.
    entries: Arc<Vec<Entry>>,
    last_number: i32,
}

impl Layout {
    /// Rebuilds the tree. Changed properties of entries that keep their numbers go into `changes`: GNOME's extension
    /// reads the properties of new numbers only.
    pub(super) fn rebuild(&mut self, items: &[Item], now: Moment, changes: &mut Changes) {
        let old = Arc::unwrap_or_clone(std::mem::take(&mut self.entries));
        self.entries = Arc::new(rebuilt(items, old, &mut self.last_number, now, changes));
    }

    /// Updates the entries if these items have the same structure. Otherwise changes nothing and returns false.
    pub(super) fn try_update(&mut self, items: &[Item], now: Moment, changes: &mut Changes) -> bool {
        let same = has_structure_of(&self.entries, items);
        if same {
            update(self.entries_mut(), items, now, changes);
        }
        same
    }

    /// Updates the ages in the labels.
    pub(super) fn refresh_ages(&mut self, now: Moment, changes: &mut Changes) {
        refresh_ages(self.entries_mut(), now, changes);
    }

    /// Updates the entries that these items still contain and disables the others, without moving any.
    pub(super) fn update_in_place(&mut self, items: &[Item], now: Moment, changes: &mut Changes) {
        update(self.entries_mut(), items, now, changes);
    }

    /// Handles a click on an entry. Returns its item, if that can be clicked now.
    pub(super) fn clicked(&mut self, number: i32) -> Option<ItemId> {
        let entry = find_mut(self.entries_mut(), number)?;
        let id =
            entry.id.clone().filter(|_| entry.appearance.enabled && entry.appearance.entry_type != EntryType::Submenu);
        if let EntryType::Check(checked) = &mut entry.appearance.entry_type {
            *checked = None;
        }
        id
    }

    fn entries_mut(&mut self) -> &mut Vec<Entry> {
        Arc::make_mut(&mut self.entries)
    }

    /// Whether there is an entry with this number.
    pub(super) fn contains(&self, number: i32) -> bool {
        number == ROOT || find(&self.entries, number).is_some()
    }

    /// The highest number given out so far.
    pub(super) const fn last_number(&self) -> i32 {
        self.last_number
    }

    /// The reply to `GetLayout`: an entry with `depth` levels below it, or all of them if that is negative. Entries up
    /// to the number `known` are sent without properties.
    pub(super) fn reply(
        &self,
        (number, depth): (i32, i32),
        names: Vec<String>,
        known: Option<i32>,
        now: Moment,
    ) -> Option<LayoutReply> {
        let filter = PropertyFilter { names, known, now };
        self.contains(number).then(|| LayoutReply { entries: Arc::clone(&self.entries), number, depth, filter })
    }

    /// One property of an entry. `None` if there is no such entry, `Some(None)` if it has no such property.
    pub(super) fn property(&self, number: i32, name: &str, now: Moment) -> Option<Option<Property>> {
        let entry = || find(&self.entries, number).map(|entry| entry.properties(now));
        let mut properties = if number == ROOT { root_properties() } else { entry()? };
        Some(properties.remove(name))
    }

    /// The properties of these entries; of all if none is named.
    pub(super) fn properties(&self, numbers: &[i32], names: &[String], now: Moment) -> Vec<(i32, Properties)> {
        let mut all = BTreeMap::new();
        collect(&self.entries, &mut all);
        let wanted = all.into_iter().filter(|(number, _)| numbers.is_empty() || numbers.contains(number));
        wanted.map(|(number, entry)| (number, filtered(entry.properties(now), names))).collect()
    }
}

/// For each item, the index of the old entry whose number it keeps, if any. GNOME's extension first inserts new numbers
/// at their index among the old ones, including those that are gone, then removes the latter, and moves none. So
/// entries that keep their numbers must keep their order, and no entry in front of a new one may be gone.
fn keep_numbers(old: &[Entry], items: &[Item]) -> Vec<Option<usize>> {
    let mut kept = vec![None; items.len()];
    let (mut first, mut end) = (items.len(), old.len());
    while first > 0
        && let Some(at) = old[..end].iter().rposition(|entry| matches(entry, &items[first - 1]))
    {
        (first, end) = (first - 1, at);
        kept[first] = Some(at);
    }
    let mut next = 0;
    for (kept, item) in kept.iter_mut().zip(&items[..first]) {
        if next < end && matches(&old[next], item) {
            *kept = Some(next);
            next += 1;
        }
    }
    kept
}

fn rebuilt(items: &[Item], old: Vec<Entry>, last: &mut i32, now: Moment, changes: &mut Changes) -> Vec<Entry> {
    let kept = keep_numbers(&old, items);
    let mut old: Vec<_> = old.into_iter().map(Some).collect();
    let known: Vec<_> = kept.into_iter().map(|at| old.get_mut(at?)?.take()).collect();
    let build = |(item, known): (&Item, Option<Entry>)| {
        let appearance = Appearance::of(item);
        let (number, sent_label, children) = match known {
            Some(entry) if entry.appearance == appearance => (entry.number, entry.sent_label, entry.entries),
            Some(entry) => {
                changes.record(&entry, &appearance, now);
                (entry.number, appearance.label_with_age(now), entry.entries)
            }
            None => {
                *last = last.checked_add(1).unwrap_or(1);
                (*last, appearance.label_with_age(now), Vec::new())
            }
        };
        let entries = rebuilt(item.children(), children, last, now, changes);
        Entry { number, id: item.id().cloned(), sent_label, appearance, entries }
    };
    items.iter().zip(known).map(build).collect()
}

fn has_structure_of(entries: &[Entry], items: &[Item]) -> bool {
    entries.len() == items.len()
        && entries
            .iter()
            .zip(items)
            .all(|(entry, item)| matches(entry, item) && has_structure_of(&entry.entries, item.children()))
}

/// Whether the entry may be this item. Text and separators have no ids, so any two of a type match.
fn matches(entry: &Entry, item: &Item) -> bool {
    entry.id.as_ref() == item.id() && has_type_of(entry, item)
}

/// Panels create a different kind of widget for each type, and do not change it later.
fn has_type_of(entry: &Entry, item: &Item) -> bool {
    std::mem::discriminant(&entry.appearance.entry_type) == std::mem::discriminant(&EntryType::of(item))
}

fn update(entries: &mut [Entry], items: &[Item], now: Moment, changes: &mut Changes) {
    // Before the first entry that moved, text without an id is matched by its index: this keeps the header up to date.
    let unmoved = entries.iter().zip(items).take_while(|(entry, item)| matches(entry, item)).count();
    for (at, entry) in entries.iter_mut().enumerate() {
        let item = match &entry.id {
            _ if at < unmoved => items.get(at),
            Some(id) => items.iter().find(|item| item.id() == Some(id)).filter(|item| has_type_of(entry, item)),
            // This text cannot be matched, so it stays.
            None => continue,
        };
        let disabled = || Appearance { enabled: false, ..entry.appearance.clone() };
        let appearance = item.map_or_else(disabled, Appearance::of);
        if appearance != entry.appearance {
            changes.record(entry, &appearance, now);
            (entry.sent_label, entry.appearance) = (appearance.label_with_age(now), appearance);
        }
        if let Some(item) = item {
            update(&mut entry.entries, item.children(), now, changes);
        }
    }
}

fn refresh_ages(entries: &mut [Entry], now: Moment, changes: &mut Changes) {
    for entry in entries {
        if entry.appearance.text.as_ref().is_some_and(Text::has_age) {
            changes.record(entry, &entry.appearance, now);
            entry.sent_label = entry.appearance.label_with_age(now);
        }
        refresh_ages(&mut entry.entries, now, changes);
    }
}

impl Changes {
    /// Records how the properties of an entry change with a new appearance.
    fn record(&mut self, entry: &Entry, appearance: &Appearance, now: Moment) {
        let Entry { number, appearance: old, sent_label, .. } = entry;
        let old_label = sent_label.clone().unwrap_or_else(|| old.label(now));
        let (mut set, old_set) = (appearance.properties(&appearance.label(now)), old.properties(&old_label));
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

    /// Whether nothing changed.
    pub(super) const fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }
}
