//! The dbusmenu layout: a tree of entries, each with a number, which is its dbusmenu item id. Pure: signals and replies
//! come out as values.
//!
//! An entry keeps its number while it does the same, and no other entry ever gets that number. What an entry did is
//! remembered after it is gone. So a click does what its entry said when it was pressed, whatever the menu has become
//! since. Some of the entries that move get new numbers, because GNOME's extension never moves a number that it knows
//! (`rebuild`).
//!
//! The structure changes only while the menu is closed, so that nothing moves under the pointer. While it is open,
//! labels change in place, and entries that are gone stay as they were: a click on one says what became of it.

mod appearance;
mod changes;
mod entry;
mod rebuild;
mod reply;
#[cfg(test)]
mod tests;

pub(super) use reply::LayoutReply;

use super::fit::Size;
use super::property::{Properties, Property, ROOT, filtered, root_properties};
use crate::tray::messages::Click;
use crate::tray::view::{Item, Text};
pub(super) use appearance::Wording;
use appearance::{Appearance, EntryType};
pub(super) use changes::{ChangedNames, Changes};
use entry::{Entry, collect, find, find_mut};
use rebuild::Rebuild;
use reply::PropertyFilter;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many entries that are gone are remembered, at least.
const GONE_MAX: usize = 1000;

/// The tree of entries, and the numbers given out so far.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Shared with replies that are being sent.
    entries: Arc<Vec<Entry>>,
    last_number: i32,
    /// What the entries did that are gone, in the order in which they went.
    gone: Vec<(i32, Click)>,
    /// How many rows have slots, at least; `None` for a panel that needs none.
    slots: Option<usize>,
}

impl Layout {
    /// Rebuilds the tree. Changed properties of entries that keep their numbers go into `changes`: GNOME's extension
    /// reads the properties of new numbers only.
    pub(super) fn rebuild(&mut self, items: &[Item], how: Wording, changes: &mut Changes) {
        let old = Arc::unwrap_or_clone(std::mem::take(&mut self.entries));
        let before = self.gone.len();
        let mut rebuild = Rebuild { last: &mut self.last_number, gone: &mut self.gone, how, changes };
        let entries = match self.slots {
            Some(least) => rebuild.with_slots(items, old, least),
            None => rebuild.entries(items, old),
        };
        self.entries = Arc::new(entries);
        // Those that went just now may still be on the screen.
        self.gone.drain(..before.min(self.gone.len().saturating_sub(GONE_MAX)));
    }

    /// Builds the tree anew: no entry keeps its number. For a panel that may still be adding the entries of its last layout,
    /// and would mix these up with those of the next one.
    pub(super) fn rebuild_anew(&mut self, items: &[Item], how: Wording) {
        let old = Arc::unwrap_or_clone(std::mem::take(&mut self.entries));
        let changes = &mut Changes::default();
        Rebuild { last: &mut self.last_number, gone: &mut self.gone, how, changes }.forget(old.into_iter());
        self.rebuild(items, how, changes);
    }

    /// Gives rows slots from now on, at least so many: for a panel that adds new entries on the screen.
    pub(super) fn use_slots(&mut self, least: usize, how: Wording) {
        if self.slots.replace(least).is_none() {
            let entries = Arc::make_mut(&mut self.entries);
            let (gone, changes) = (&mut self.gone, &mut Changes::default());
            Rebuild { last: &mut self.last_number, gone, how, changes }.add_slots(entries, least);
        }
    }

    /// Whether panels were sent exactly these items.
    pub(super) fn shows(&self, items: &[Item]) -> bool {
        are_items(&self.entries, items)
    }

    /// How high the menu is that panels were sent.
    pub(super) fn size(&self) -> Size {
        let shown: Vec<_> = shown(&self.entries).map(|entry| entry.appearance.entry_type).collect();
        let separators = shown.iter().filter(|one| **one == EntryType::Separator).count();
        Size { entries: shown.len() - separators, separators }
    }

    /// Updates the entries if these items have the same structure. Otherwise changes nothing and returns false.
    pub(super) fn try_update(&mut self, items: &[Item], how: Wording, changes: &mut Changes) -> bool {
        let same = has_structure_of(&self.entries, items);
        if same {
            update(self.entries_mut(), items, how, changes);
        }
        same
    }

    /// Updates the ages in the labels.
    pub(super) fn refresh_ages(&mut self, how: Wording, changes: &mut Changes) {
        refresh_ages(self.entries_mut(), how, changes);
    }

    /// Updates the entries that these items still contain, without moving any. The others stay as they are.
    pub(super) fn update_in_place(&mut self, items: &[Item], how: Wording, changes: &mut Changes) {
        update(self.entries_mut(), items, how, changes);
    }

    /// Handles a click on an entry. Returns the click on what it does, or did before it was gone.
    pub(super) fn clicked(&mut self, number: i32) -> Option<Click> {
        let Some(entry) = find_mut(self.entries_mut(), number) else {
            let gone = self.gone.iter().find(|(gone, _)| *gone == number);
            return gone.map(|(_, click)| click.clone());
        };
        if let EntryType::Check(checked) = &mut entry.appearance.entry_type {
            *checked = None;
        }
        entry.click()
    }

    fn entries_mut(&mut self) -> &mut Vec<Entry> {
        Arc::make_mut(&mut self.entries)
    }

    /// Whether there ever was an entry with this number.
    pub(super) const fn was_given(&self, number: i32) -> bool {
        ROOT <= number && number <= self.last_number
    }

    /// Whether there is an entry with this number.
    pub(super) fn contains(&self, number: i32) -> bool {
        number == ROOT || find(&self.entries, number).is_some()
    }

    /// The submenus right below an entry, by their numbers.
    pub(super) fn submenus_of(&self, number: i32) -> Vec<i32> {
        let entries = find(&self.entries, number).map_or(&**self.entries, |entry| &entry.entries);
        let submenus = entries.iter().filter(|entry| entry.appearance.entry_type == EntryType::Submenu);
        submenus.map(|entry| entry.number).collect()
    }

    /// The highest number of an entry that there is now.
    pub(super) fn newest(&self) -> i32 {
        newest(&self.entries)
    }

    /// The highest number given out so far.
    pub(super) const fn last_number(&self) -> i32 {
        self.last_number
    }

    /// The reply to `GetLayout`: an entry with `depth` levels below it, or all of them if that is negative. Entries up
    /// to the number `known` are sent without properties, but for those of these names.
    pub(super) fn reply(
        &self,
        (number, depth): (i32, i32),
        names: Vec<String>,
        known: (Option<i32>, ChangedNames),
        how: Wording,
    ) -> Option<LayoutReply> {
        self.contains(number).then(|| {
            let filter = PropertyFilter::new(&self.entries, names, known, how);
            LayoutReply { entries: Arc::clone(&self.entries), number, depth, filter }
        })
    }

    /// One property of an entry. `None` if there is no such entry, `Some(None)` if it has no such property.
    pub(super) fn property(&self, number: i32, name: &str, how: Wording) -> Option<Option<Property>> {
        let entry = || find(&self.entries, number).map(|entry| entry.properties(how));
        let mut properties = if number == ROOT { root_properties() } else { entry()? };
        Some(properties.remove(name))
    }

    /// The properties of these entries; of all if none is named.
    pub(super) fn properties(&self, numbers: &[i32], names: &[String], how: Wording) -> Vec<(i32, Properties)> {
        let mut all = BTreeMap::new();
        collect(&self.entries, &mut all);
        let wanted = all.into_iter().filter(|(number, _)| numbers.is_empty() || numbers.contains(number));
        wanted.map(|(number, entry)| (number, filtered(entry.properties(how), names))).collect()
    }
}

fn newest(entries: &[Entry]) -> i32 {
    entries.iter().map(|entry| entry.number.max(newest(&entry.entries))).max().unwrap_or(ROOT)
}

fn has_structure_of(entries: &[Entry], items: &[Item]) -> bool {
    let has_structure =
        |(entry, item): (&Entry, &Item)| entry.may_be(item) && has_structure_of(&entry.entries, item.children());
    shown(entries).count() == items.len() && shown(entries).zip(items).all(has_structure)
}

fn are_items(entries: &[Entry], items: &[Item]) -> bool {
    let is_item = |(entry, item): (&Entry, &Item)| {
        entry.id.as_ref() == item.id()
            && entry.effect.as_ref() == item.effect()
            && entry.appearance == Appearance::of(item)
            && are_items(&entry.entries, item.children())
    };
    shown(entries).count() == items.len() && shown(entries).zip(items).all(is_item)
}

/// The entries without hidden slots.
fn shown(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| !entry.appearance.hidden)
}

fn update(entries: &mut [Entry], items: &[Item], how: Wording, changes: &mut Changes) {
    // Before the first entry that moved, text without an id is matched by its index: this keeps the header up to date.
    let unmoved = entries.iter().zip(items).take_while(|(entry, item)| entry.may_be(item)).count();
    for (at, entry) in entries.iter_mut().enumerate() {
        let item = match &entry.id {
            _ if at < unmoved => items.get(at),
            Some(_) => items.iter().find(|item| entry.may_be(item)),
            // This text cannot be matched, so it stays.
            None => None,
        };
        let Some(item) = item else { continue };
        let appearance = Appearance::of(item);
        if appearance != entry.appearance && !entry.counts_what_it_keeps(item) {
            changes.record(entry, &appearance, how);
            (entry.sent_label, entry.appearance) = (appearance.label_with_age(how), appearance);
        }
        if entry.effect.as_ref() != item.effect() {
            entry.effect = item.effect().cloned();
        }
        update(&mut entry.entries, item.children(), how, changes);
    }
}

fn refresh_ages(entries: &mut [Entry], how: Wording, changes: &mut Changes) {
    for entry in entries {
        if entry.appearance.text.as_ref().is_some_and(Text::has_age) {
            changes.record(entry, &entry.appearance, how);
            entry.sent_label = entry.appearance.label_with_age(how);
        }
        refresh_ages(&mut entry.entries, how, changes);
    }
}
