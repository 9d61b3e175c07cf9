//! Makes a new tree of entries from the old one: which entries keep their numbers.

use super::appearance::{Appearance, EntryType, Wording};
use super::changes::Changes;
use super::entry::{Entry, goes_into_slot};
use crate::tray::messages::Click;
use crate::tray::view::Item;
use std::collections::HashSet;

/// A new tree in the making.
pub(super) struct Rebuild<'a> {
    /// The highest number given out so far.
    pub(super) last: &'a mut i32,
    /// What the entries did that are gone.
    pub(super) gone: &'a mut Vec<(i32, Click)>,
    pub(super) how: Wording,
    pub(super) changes: &'a mut Changes,
}

impl Rebuild<'_> {
    /// The new entries of the menu itself for a panel that adds each new one only once it is idle, on the screen, where it
    /// pushes the others down. The rows right before the last separator are slots: the number of a submenu means nothing
    /// that can be clicked, so each position keeps its own, whatever session is there. Slots that no session needs are
    /// hidden. There are `least` of them, at least.
    pub(super) fn with_slots(&mut self, items: &[Item], mut old: Vec<Entry>, least: usize) -> Vec<Entry> {
        let (first, end) = slots(items, |item| matches!(item, Item::Separator), is_slot);
        let is_separator = |entry: &Entry| entry.appearance.entry_type == EntryType::Separator;
        let (numbers, last): (Vec<_>, _) = (old.iter().map(|entry| entry.number).collect(), *self.last);
        let (old_first, old_end) = slots(&old, is_separator, Entry::is_slot);
        let footer = old.split_off(old_end);
        let mut known = old.split_off(old_first).into_iter();
        let mut entries = self.entries(&items[..first], old);
        for item in &items[first..end] {
            let known = known.next();
            entries.push(self.entry(item, known));
        }
        let spare = least.saturating_sub(end - first);
        for _ in 0..known.len().max(spare) {
            let known = known.next();
            entries.push(self.hidden(known));
        }
        entries.extend(self.entries(&items[end..], footer));
        self.renumber_moved(entries, &numbers, last)
    }

    /// Gives new numbers to the entries behind one that is gone and one that is new. The panel would move them at once, to
    /// their places in a menu that has the new one, which it adds later. `numbers` are those of the old entries, `last` is
    /// the highest one given out before.
    fn renumber_moved(&mut self, entries: Vec<Entry>, numbers: &[i32], last: i32) -> Vec<Entry> {
        let is_kept = |number: &i32| entries.iter().any(|entry| entry.number == *number);
        let stay: HashSet<_> = numbers.iter().copied().take_while(is_kept).collect();
        let new = entries.iter().position(|entry| entry.number > last).unwrap_or(entries.len());
        let renumbered = entries.into_iter().enumerate().map(|(at, entry)| {
            let is_moved = entry.number <= last && !stay.contains(&entry.number);
            if is_moved && at > new { self.renumbered(entry) } else { entry }
        });
        renumbered.collect()
    }

    fn renumbered(&mut self, mut entry: Entry) -> Entry {
        self.gone.extend(entry.click().map(|click| (entry.number, click)));
        entry.number = self.next_number();
        entry.entries = entry.entries.into_iter().map(|inner| self.renumbered(inner)).collect();
        entry
    }

    /// Adds hidden slots to entries that were built without.
    pub(super) fn add_slots(&mut self, entries: &mut Vec<Entry>, least: usize) {
        let is_separator = |entry: &Entry| entry.appearance.entry_type == EntryType::Separator;
        let (first, end) = slots(entries, is_separator, Entry::is_slot);
        let hidden: Vec<_> = (end - first..least).map(|_| self.hidden(None)).collect();
        entries.splice(end..end, hidden);
    }

    /// A slot that no session needs.
    fn hidden(&mut self, known: Option<Entry>) -> Entry {
        let appearance = Appearance::hidden();
        let number = match known {
            Some(entry) => {
                if entry.appearance != appearance {
                    self.changes.record(&entry, &appearance, self.how);
                }
                self.forget(entry.entries.into_iter());
                entry.number
            }
            None => self.next_number(),
        };
        Entry { number, id: None, effect: None, sent_label: None, appearance, entries: Vec::new() }
    }

    fn next_number(&mut self) -> i32 {
        *self.last = self.last.checked_add(1).unwrap_or(1);
        *self.last
    }

    /// The new entries for these items, in the place of the old ones.
    pub(super) fn entries(&mut self, items: &[Item], old: Vec<Entry>) -> Vec<Entry> {
        let kept = keep_numbers(&old, items);
        let mut old: Vec<_> = old.into_iter().map(Some).collect();
        let known: Vec<_> = kept.into_iter().map(|at| old.get_mut(at?)?.take()).collect();
        self.forget(old.into_iter().flatten());
        items.iter().zip(known).map(|(item, known)| self.entry(item, known)).collect()
    }

    fn entry(&mut self, item: &Item, known: Option<Entry>) -> Entry {
        let appearance = Appearance::of(item);
        let (number, sent_label, children) = match known {
            Some(entry) if entry.appearance == appearance => (entry.number, entry.sent_label, entry.entries),
            Some(entry) => {
                self.changes.record(&entry, &appearance, self.how);
                (entry.number, appearance.label_with_age(self.how), entry.entries)
            }
            None => (self.next_number(), appearance.label_with_age(self.how), Vec::new()),
        };
        let entries = self.entries(item.children(), children);
        Entry { number, id: item.id().cloned(), effect: item.effect().cloned(), sent_label, appearance, entries }
    }

    pub(super) fn forget(&mut self, entries: impl Iterator<Item = Entry>) {
        for entry in entries {
            self.gone.extend(entry.click().map(|click| (entry.number, click)));
            self.forget(entry.entries.into_iter());
        }
    }
}

/// Where the slots begin and end in a list: right before its last separator.
fn slots<T>(all: &[T], is_separator: impl Fn(&T) -> bool, is_slot: impl Fn(&T) -> bool) -> (usize, usize) {
    let end = all.iter().rposition(is_separator).unwrap_or(0);
    let first = all[..end].iter().rposition(|one| !is_slot(one)).map_or(0, |before| before + 1);
    (first, end)
}

/// Whether an item goes into a slot: the row of a session, or of those that are folded.
fn is_slot(item: &Item) -> bool {
    matches!(item, Item::Submenu { id, .. } if goes_into_slot(id))
}

/// For each item, the index of the old entry whose number it keeps, if any. GNOME's extension (up to AppIndicator 59) first
/// inserts new numbers at their index among the old ones, including those that are gone, then removes the latter, and moves none. So
/// entries that keep their numbers must keep their order, and no entry in front of a new one may be gone.
fn keep_numbers(old: &[Entry], items: &[Item]) -> Vec<Option<usize>> {
    let mut kept = vec![None; items.len()];
    let (mut first, mut end) = (items.len(), old.len());
    while first > 0
        && let Some(at) = old[..end].iter().rposition(|entry| entry.may_be(&items[first - 1]))
    {
        (first, end) = (first - 1, at);
        kept[first] = Some(at);
    }
    let mut next = 0;
    for (kept, item) in kept.iter_mut().zip(&items[..first]) {
        if next < end && old[next].may_be(item) {
            *kept = Some(next);
            next += 1;
        }
    }
    kept
}
