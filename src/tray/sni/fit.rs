//! A menu that fits the size that a panel gave it. Pure.
//!
//! Panels that are built on GTK do not enlarge a menu once it is on the screen, and ask for its new entries only then: it
//! would have to be scrolled. They are told beforehand that it is out of date, but not while it may be open, which they do
//! not report either. In a menu that is opened again within that time, the entries at its end make room for the sessions,
//! until it no longer counts as open.

use crate::tray::view::{Item, ItemId, Kind};

/// The number of the list of entries at the end, apart from those of the menu itself.
const LIST: u8 = 60;

/// How high a menu is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) entries: usize,
    pub(super) separators: usize,
}

impl Size {
    pub(super) fn of(items: &[Item]) -> Self {
        let separators = items.iter().filter(|item| matches!(item, Item::Separator)).count();
        Self { entries: items.len() - separators, separators }
    }

    /// How many entries must go so that a menu of this size has room. A separator takes at most the room of an entry.
    fn excess(self, items: &[Item]) -> usize {
        let new = Self::of(items);
        (new.entries + new.separators.saturating_sub(self.separators)).saturating_sub(self.entries)
    }
}

/// These items in a menu of this size, if they fit it with some of those after the last separator in a submenu, and not
/// as they are.
pub(super) fn fit(items: &[Item], size: Size) -> Option<Vec<Item>> {
    let excess = Some(size.excess(items)).filter(|excess| *excess > 0)?;
    let end = items.iter().rposition(|item| matches!(item, Item::Separator))? + 1;
    // The submenu takes an entry, too.
    let start = items.len().checked_sub(excess + 1).filter(|start| end <= *start)?;
    let more = Item::submenu(ItemId::own(Kind::Fold(LIST)), "More", items[start..].to_vec());
    Some(items[..start].iter().cloned().chain([more]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tray::view::Effect;
    use pilotlight_core::time::Moment;

    fn shown(items: &[Item]) -> Vec<String> {
        items.iter().map(|item| item.words().map_or("-".into(), |text| text.at(Moment::default()))).collect()
    }

    #[test]
    fn case_246_in_a_menu_that_gtk_cannot_enlarge_the_last_entries_make_room() {
        let action = |kind, text: &str| Item::action(ItemId::own(kind), text, Effect::Refresh);
        let items = [
            Item::text("1 needs you"),
            Item::Separator,
            action(Kind::Headline, "a"),
            action(Kind::Remedy, "mend a"),
            Item::Separator,
            action(Kind::LiveTable, "Settings"),
            action(Kind::Seen, "Notifications"),
            action(Kind::Quit, "Quit"),
        ];
        let fits = |entries, separators| fit(&items, Size { entries, separators });
        assert_eq!(fits(6, 2), None, "as they are");
        let less = fits(5, 2).unwrap();
        assert_eq!(shown(&less), ["1 needs you", "-", "a", "mend a", "-", "Settings", "More"]);
        assert_eq!(shown(less[6].children()), ["Notifications", "Quit"]);
        assert_eq!(shown(fits(4, 2).unwrap()[5].children()), ["Settings", "Notifications", "Quit"]);
        assert_eq!((fits(6, 1), fits(5, 1)), (fits(5, 2), fits(4, 2)), "separators take room");
        assert_eq!((fits(3, 2), fits(4, 1)), (None, None), "it is scrolled");
    }
}
