//! The menu as a panel knows it: a tree of entries, each with a number. Pure: what is to be said on the bus comes out as values.
//!
//! An entry keeps its number, whatever its words, and another entry never gets that number. So a click that is still on its way
//! when the menu changes does what its entry said, or nothing. Among those that change places some get new numbers, because
//! GNOME's extension leaves a number that it knows where it was ([`kept`]).
//!
//! Places change only while the menu is closed: what stands under the pointer stays there. Meanwhile words change in place, and
//! what is gone is disabled.

mod looks;
#[cfg(test)]
mod tests;
mod told;

use told::Wanted;
pub(super) use told::{Properties, Property, Told};

use crate::core::time::Moment;
use crate::tray::view::{Item, ItemId, Text};
use looks::{Form, Looks};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number that stands for the whole menu.
pub(super) const ROOT: i32 = 0;

/// What changed without anything changing its place.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Entries by their numbers, with the properties that are other ones now.
    pub(super) set: Vec<(i32, Properties)>,
    /// The properties that are what they are where nothing is said.
    pub(super) unset: Vec<(i32, Vec<&'static str>)>,
}

/// The entries, and which numbers were given to them.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Shared with answers that are on their way to a panel.
    entries: Arc<Vec<Entry>>,
    last: i32,
}

#[derive(Clone, Debug)]
struct Entry {
    number: i32,
    /// Which item this is; none for words and lines.
    id: Option<ItemId>,
    looks: Looks,
    /// Its words as panels were last told of a change in them; none where time does not change them.
    said: Option<String>,
    entries: Vec<Self>,
}

impl Layout {
    /// Lays the menu out anew. Of an entry that keeps its number, what is other than it was is told: GNOME's extension reads the
    /// properties of new numbers alone.
    pub(super) fn lay_out(&mut self, items: &[Item], now: Moment, changes: &mut Changes) {
        let before = Arc::unwrap_or_clone(std::mem::take(&mut self.entries));
        self.entries = Arc::new(laid_out(items, before, &mut self.last, now, changes));
    }

    /// Takes the words of these items over, where they stand in the same places. False, and nothing is changed, where they do not.
    pub(super) fn reword(&mut self, items: &[Item], now: Moment, changes: &mut Changes) -> bool {
        let same = has_places_of(&self.entries, items);
        if same {
            reword(self.entries_mut(), items, now, changes);
        }
        same
    }

    /// Words the ages as they are true now.
    pub(super) fn renew(&mut self, now: Moment, changes: &mut Changes) {
        renew(self.entries_mut(), now, changes);
    }

    /// Takes over what can be while every entry stays where it is: the words of what is still there. The rest is disabled.
    pub(super) fn reword_in_place(&mut self, items: &[Item], now: Moment, changes: &mut Changes) {
        reword(self.entries_mut(), items, now, changes);
    }

    /// A panel was clicked on this entry: the item, where it is one that can be clicked now.
    pub(super) fn clicked(&mut self, number: i32) -> Option<ItemId> {
        let entry = find_mut(self.entries_mut(), number)?;
        let id = entry.id.clone().filter(|_| entry.looks.enabled && entry.looks.form != Form::Submenu);
        if let Form::Check(checked) = &mut entry.looks.form {
            *checked = None;
        }
        id
    }

    fn entries_mut(&mut self) -> &mut Vec<Entry> {
        Arc::make_mut(&mut self.entries)
    }

    /// Whether there is such an entry.
    pub(super) fn has(&self, number: i32) -> bool {
        number == ROOT || find(&self.entries, number).is_some()
    }

    /// The highest number that was given to an entry.
    pub(super) const fn last(&self) -> i32 {
        self.last
    }

    /// An entry with so many levels below it (all where that is negative), as `GetLayout` tells it; of entries up to the number
    /// `known`, nothing but their places.
    pub(super) fn tell(
        &self,
        (number, depth): (i32, i32),
        names: Vec<String>,
        known: Option<i32>,
        now: Moment,
    ) -> Option<Told> {
        let wanted = Wanted { names, known, now };
        self.has(number).then(|| Told { entries: Arc::clone(&self.entries), number, depth, wanted })
    }

    /// One property of an entry. `None`: there is no such entry; the inner one: it has no such property.
    pub(super) fn property(&self, number: i32, name: &str, now: Moment) -> Option<Option<Property>> {
        let entry = || find(&self.entries, number).map(|entry| entry.properties(now));
        let mut properties = if number == ROOT { told::of_root() } else { entry()? };
        Some(properties.remove(name))
    }

    /// The properties of these entries, or of all.
    pub(super) fn properties(&self, numbers: &[i32], names: &[String], now: Moment) -> Vec<(i32, Properties)> {
        let mut all = BTreeMap::new();
        gather(&self.entries, &mut all);
        let wanted = all.into_iter().filter(|(number, _)| numbers.is_empty() || numbers.contains(number));
        wanted.map(|(number, entry)| (number, chosen(entry.properties(now), names))).collect()
    }
}

impl Entry {
    fn properties(&self, now: Moment) -> Properties {
        self.looks.properties(&self.looks.label(now))
    }
}

/// Those of these names; all where none is named.
fn chosen(mut properties: Properties, names: &[String]) -> Properties {
    properties.retain(|name, _| names.is_empty() || names.iter().any(|wanted| wanted == name));
    properties
}

/// Which of the entries of before each item is, where it keeps its number. GNOME's extension puts a number that is new at its
/// place among the old ones, those that are gone included, then takes these away, and moves none. So what it knows already must
/// stand in the order of before; and where something new follows, nothing in front of it may be gone.
fn kept(before: &[Entry], items: &[Item]) -> Vec<Option<usize>> {
    let mut kept = vec![None; items.len()];
    let (mut first, mut end) = (items.len(), before.len());
    while first > 0
        && let Some(at) = before[..end].iter().rposition(|entry| stands_for(entry, &items[first - 1]))
    {
        (first, end) = (first - 1, at);
        kept[first] = Some(at);
    }
    let mut next = 0;
    for (kept, item) in kept.iter_mut().zip(&items[..first]) {
        if next < end && stands_for(&before[next], item) {
            *kept = Some(next);
            next += 1;
        }
    }
    kept
}

fn laid_out(items: &[Item], before: Vec<Entry>, last: &mut i32, now: Moment, changes: &mut Changes) -> Vec<Entry> {
    let kept = kept(&before, items);
    let mut before: Vec<_> = before.into_iter().map(Some).collect();
    let known: Vec<_> = kept.into_iter().map(|at| before.get_mut(at?)?.take()).collect();
    let lay = |(item, known): (&Item, Option<Entry>)| {
        let looks = Looks::of(item);
        let (number, said, below) = match known {
            Some(entry) if entry.looks == looks => (entry.number, entry.said, entry.entries),
            Some(entry) => {
                changes.note(&entry, &looks, now);
                (entry.number, looks.said(now), entry.entries)
            }
            None => {
                *last = last.checked_add(1).unwrap_or(1);
                (*last, looks.said(now), Vec::new())
            }
        };
        let entries = laid_out(item.children(), below, last, now, changes);
        Entry { number, id: item.id().cloned(), said, looks, entries }
    };
    items.iter().zip(known).map(lay).collect()
}

fn has_places_of(entries: &[Entry], items: &[Item]) -> bool {
    entries.len() == items.len()
        && entries
            .iter()
            .zip(items)
            .all(|(entry, item)| stands_for(entry, item) && has_places_of(&entry.entries, item.children()))
}

/// Whether the entry is this item, as far as that can be told: words and lines have no ids.
fn stands_for(entry: &Entry, item: &Item) -> bool {
    entry.id.as_ref() == item.id() && same_form(entry, item)
}

/// Panels make another kind of widget of each form, and do not change it later.
fn same_form(entry: &Entry, item: &Item) -> bool {
    std::mem::discriminant(&entry.looks.form) == std::mem::discriminant(&Looks::of(item).form)
}

fn reword(entries: &mut [Entry], items: &[Item], now: Moment, changes: &mut Changes) {
    // Up to the first that changed places, words without an id are those at the same place: the header is one of these.
    let unmoved = entries.iter().zip(items).take_while(|(entry, item)| stands_for(entry, item)).count();
    for (at, entry) in entries.iter_mut().enumerate() {
        let item = match &entry.id {
            _ if at < unmoved => items.get(at),
            Some(id) => items.iter().find(|item| item.id() == Some(id)).filter(|item| same_form(entry, item)),
            // Which words they were is not known: they stay.
            None => continue,
        };
        let looks = item.map_or_else(|| Looks { enabled: false, ..entry.looks.clone() }, Looks::of);
        if looks != entry.looks {
            changes.note(entry, &looks, now);
            (entry.said, entry.looks) = (looks.said(now), looks);
        }
        if let Some(item) = item {
            reword(&mut entry.entries, item.children(), now, changes);
        }
    }
}

fn renew(entries: &mut [Entry], now: Moment, changes: &mut Changes) {
    for entry in entries {
        if entry.looks.text.as_ref().is_some_and(Text::has_age) {
            changes.note(entry, &entry.looks, now);
            entry.said = entry.looks.said(now);
        }
        renew(&mut entry.entries, now, changes);
    }
}

impl Changes {
    /// An entry looks like this now.
    fn note(&mut self, Entry { number, looks: before, said, .. }: &Entry, looks: &Looks, now: Moment) {
        let said = said.clone().unwrap_or_else(|| before.label(now));
        let (mut set, before_set) = (looks.properties(&looks.label(now)), before.properties(&said));
        let unset: Vec<_> = before_set.keys().copied().filter(|name| !set.contains_key(name)).collect();
        let unsure = matches!(before.form, Form::Check(None));
        set.retain(|name, value| before_set.get(name) != Some(value) || (unsure && *name == "toggle-state"));
        if !set.is_empty() {
            self.set.push((*number, set));
        }
        if !unset.is_empty() {
            self.unset.push((*number, unset));
        }
    }

    /// Whether there is anything to say.
    pub(super) const fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }
}

fn find(entries: &[Entry], number: i32) -> Option<&Entry> {
    entries.iter().find_map(|entry| if entry.number == number { Some(entry) } else { find(&entry.entries, number) })
}

fn find_mut(entries: &mut [Entry], number: i32) -> Option<&mut Entry> {
    entries.iter_mut().find_map(|entry| match entry.number == number {
        true => Some(entry),
        false => find_mut(&mut entry.entries, number),
    })
}

fn gather<'a>(entries: &'a [Entry], all: &mut BTreeMap<i32, &'a Entry>) {
    for entry in entries {
        all.insert(entry.number, entry);
        gather(&entry.entries, all);
    }
}
