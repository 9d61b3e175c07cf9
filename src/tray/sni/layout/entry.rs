//! One entry of the layout, with those below it.

use super::appearance::Wording;
use super::appearance::{Appearance, EntryType};
use crate::tray::messages::Click;
use crate::tray::sni::property::Properties;
use crate::tray::view::{Effect, Item, ItemId, Kind, Worded};
use std::collections::BTreeMap;

/// An entry of the menu.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The dbusmenu item id.
    pub(super) number: i32,
    /// The item of the view; `None` for text and separators.
    pub(super) id: Option<ItemId>,
    /// What a click does, if it does anything.
    pub(super) effect: Option<Effect>,
    pub(super) appearance: Appearance,
    /// The label that panels were last sent; `None` if it has no age.
    pub(super) sent_label: Option<Worded>,
    pub(super) entries: Vec<Self>,
}

impl Entry {
    pub(super) fn properties(&self, how: Wording) -> Properties {
        self.appearance.properties(&self.appearance.label(how), how)
    }

    /// Whether it may be this item, and does the same. Text and separators have no ids, so any two of a type match.
    pub(super) fn may_be(&self, item: &Item) -> bool {
        let does_same = match (&self.effect, item.effect()) {
            (Some(one), Some(other)) => one.is_same_as(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.id.as_ref() == item.id() && does_same && self.has_type_of(item)
    }

    /// Whether it is a fold that does not hold what this item holds. Its label says what it holds, so it stays as well.
    pub(super) fn counts_what_it_keeps(&self, item: &Item) -> bool {
        let is_fold = self.id.as_ref().is_some_and(|id| matches!(id.kind, Kind::Fold(_)));
        is_fold && !may_be(&self.entries, item.children())
    }

    /// Whether it is a slot for the row of a session ([`Rebuild::with_slots`](super::rebuild::Rebuild::with_slots)).
    pub(super) fn is_slot(&self) -> bool {
        let is_submenu = self.appearance.entry_type == EntryType::Submenu;
        is_submenu && self.id.as_ref().is_none_or(goes_into_slot)
    }

    /// Panels create a different kind of widget for each type, and do not change it later.
    fn has_type_of(&self, item: &Item) -> bool {
        std::mem::discriminant(&self.appearance.entry_type) == std::mem::discriminant(&EntryType::of(item))
    }

    /// A click on it, if it can be clicked.
    pub(super) fn click(&self) -> Option<Click> {
        let (id, effect) = (self.id.clone()?, self.effect.clone()?);
        self.appearance.enabled.then_some(Click::Item(id, effect))
    }
}

/// Whether the submenu with this id goes into a slot: the row of a session, or of those that are folded.
pub(super) const fn goes_into_slot(id: &ItemId) -> bool {
    matches!((&id.session, id.kind), (Some(_), Kind::Row) | (None, Kind::Fold(_)))
}

/// Whether these entries may be these items, at this level.
pub(super) fn may_be(entries: &[Entry], items: &[Item]) -> bool {
    entries.len() == items.len() && entries.iter().zip(items).all(|(entry, item)| entry.may_be(item))
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
