//! Makes a new tree of entries from the old one: which entries keep their numbers.

use super::appearance::Appearance;
use super::appearance::Wording;
use super::changes::Changes;
use super::entry::Entry;
use crate::tray::messages::Click;
use crate::tray::view::Item;

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
            None => {
                *self.last = self.last.checked_add(1).unwrap_or(1);
                (*self.last, appearance.label_with_age(self.how), Vec::new())
            }
        };
        let entries = self.entries(item.children(), children);
        Entry { number, id: item.id().cloned(), effect: item.effect().cloned(), sent_label, appearance, entries }
    }

    fn forget(&mut self, entries: impl Iterator<Item = Entry>) {
        for entry in entries {
            self.gone.extend(entry.click().map(|click| (entry.number, click)));
            self.forget(entry.entries.into_iter());
        }
    }
}

/// For each item, the index of the old entry whose number it keeps, if any. GNOME's extension first inserts new numbers
/// at their index among the old ones, including those that are gone, then removes the latter, and moves none. So
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
