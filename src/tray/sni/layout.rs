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

pub(super) use told::{Properties, Property, Told};

use crate::core::time::Moment;
use crate::tray::view::{Item, ItemId, Text};
use looks::{Form, Looks};
use std::collections::BTreeMap;

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
    entries: Vec<Entry>,
    last: i32,
}

#[derive(Debug)]
struct Entry {
    number: i32,
    /// Which item this is; none for words and lines.
    id: Option<ItemId>,
    looks: Looks,
    /// Its words as panels were last told of a change in them.
    said: String,
    entries: Vec<Self>,
}

impl Layout {
    /// Lays the menu out anew. Of an entry that keeps its number, what is other than it was is told: GNOME's extension reads the
    /// properties of new numbers alone.
    pub(super) fn lay_out(&mut self, items: &[Item], now: Moment, changes: &mut Changes) {
        let before = std::mem::take(&mut self.entries);
        self.entries = laid_out(items, before, &mut self.last, now, changes);
    }

    /// Takes the words of these items over, where they stand in the same places. False, and nothing is changed, where they do not.
    pub(super) fn reword(&mut self, items: &[Item], now: Moment, changes: &mut Changes) -> bool {
        let same = has_places_of(&self.entries, items);
        if same {
            reword(&mut self.entries, items, now, changes);
        }
        same
    }

    /// Words the ages as they are true now.
    pub(super) fn renew(&mut self, now: Moment, changes: &mut Changes) {
        renew(&mut self.entries, now, changes);
    }

    /// Takes over what can be while every entry stays where it is: the words of what is still there. The rest is disabled.
    pub(super) fn reword_in_place(&mut self, items: &[Item], now: Moment, changes: &mut Changes) {
        reword(&mut self.entries, items, now, changes);
    }

    /// A panel was clicked on this entry: the item, where it is one that can be clicked now.
    pub(super) fn clicked(&mut self, number: i32) -> Option<ItemId> {
        let entry = find_mut(&mut self.entries, number)?;
        let id = entry.id.clone().filter(|_| entry.looks.enabled && entry.looks.form != Form::Submenu);
        if let Form::Check(checked) = &mut entry.looks.form {
            *checked = None;
        }
        id
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
        names: &[String],
        known: Option<i32>,
        now: Moment,
    ) -> Option<Told> {
        let wanted = Wanted { names, known, now };
        if number == ROOT {
            let mut properties = Properties::new();
            properties.insert("children-display", "submenu".into());
            let (properties, below) = (chosen(properties, names), wanted.below(&self.entries, depth));
            return Some(Told { number, properties, below });
        }
        let entry = find(&self.entries, number)?;
        let (properties, below) = (wanted.of(entry), wanted.below(&entry.entries, depth));
        Some(Told { number, properties, below })
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

/// What somebody wants to know of entries.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    names: &'a [String],
    known: Option<i32>,
    now: Moment,
}

impl Wanted<'_> {
    fn of(self, entry: &Entry) -> Properties {
        match self.known {
            Some(known) if entry.number <= known => Properties::new(),
            _ => chosen(entry.properties(self.now), self.names),
        }
    }

    fn below(self, entries: &[Entry], depth: i32) -> Vec<Told> {
        if depth == 0 {
            return Vec::new();
        }
        let told = |entry: &Entry| Told {
            number: entry.number,
            properties: self.of(entry),
            below: self.below(&entry.entries, depth.saturating_sub(1).max(-1)),
        };
        entries.iter().map(told).collect()
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
                let said = looks.label(now);
                changes.note(entry.number, (&entry.looks, &entry.said), (&looks, &said));
                (entry.number, said, entry.entries)
            }
            None => {
                *last = last.checked_add(1).unwrap_or(1);
                (*last, looks.label(now), Vec::new())
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
            let said = looks.label(now);
            changes.note(entry.number, (&entry.looks, &entry.said), (&looks, &said));
            (entry.looks, entry.said) = (looks, said);
        }
        if let Some(item) = item {
            reword(&mut entry.entries, item.children(), now, changes);
        }
    }
}

fn renew(entries: &mut [Entry], now: Moment, changes: &mut Changes) {
    for entry in entries {
        if entry.looks.text.as_ref().is_some_and(Text::has_age) {
            let said = entry.looks.label(now);
            changes.note(entry.number, (&entry.looks, &entry.said), (&entry.looks, &said));
            entry.said = said;
        }
        renew(&mut entry.entries, now, changes);
    }
}

impl Changes {
    fn note(&mut self, number: i32, (before, said): (&Looks, &str), (now, says): (&Looks, &str)) {
        let (mut set, before_set) = (now.properties(says), before.properties(said));
        let unset: Vec<_> = before_set.keys().copied().filter(|name| !set.contains_key(name)).collect();
        let unsure = matches!(before.form, Form::Check(None));
        set.retain(|name, value| before_set.get(name) != Some(value) || (unsure && *name == "toggle-state"));
        if !set.is_empty() {
            self.set.push((number, set));
        }
        if !unset.is_empty() {
            self.unset.push((number, unset));
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
