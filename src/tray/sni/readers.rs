//! What tells the status of a session in its row: a picture where the panel draws one, else a mark in the text. Never
//! both, and never neither.
//!
//! Which panels draw it is known from their sources, and they are recognised by what they ask for. The Qt client of
//! dbusmenu (Plasma, LXQt) reads one level at a time with all properties, and draws the picture of every entry. So does
//! the GTK client (XFCE, MATE's indicators, Cinnamon, waybar), which asks for the whole menu with a fixed list of
//! properties. GNOME's extension asks for types only ([`SentTypes`](super::sent_types::SentTypes)), and draws no picture
//! next to an entry that has a submenu, which rows are. MATE's notification area asks for pictures by name, but GTK hides
//! them there; it also takes the tooltip for markup, and shows none that is not. Of any other reader it is not known, so it
//! gets marks.

use super::property::ROOT;
use super::sent_types::TYPE_PROPERTIES;

/// The properties that the GTK client asks for in a layout. It asks for all others, pictures too, by entry.
pub(super) const GTK_PROPERTIES: [&str; 6] =
    ["type", "label", "visible", "enabled", "children-display", "accessible-desc"];
/// The properties that MATE's notification area asks for.
pub(super) const MATE_PROPERTIES: [&str; 12] = [
    "accessible-desc",
    "children-display",
    "disposition",
    "enabled",
    "icon-data",
    "icon-name",
    "label",
    "shortcut",
    "toggle-type",
    "toggle-state",
    "type",
    "visible",
];
/// How many readers are remembered; more than one is rare.
const READERS_MAX: usize = 8;

/// What tells the status of a session in its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sign {
    /// The mark at the start of its text.
    #[default]
    Mark,
    /// The picture beside it.
    Picture,
}

impl Sign {
    /// The sign for the panel that asks for a layout of this parent and depth with these properties. `None` if that does
    /// not tell which panel it is.
    fn of_layout((parent, depth): (i32, i32), names: &[String]) -> Option<Self> {
        match depth {
            1 if names.is_empty() => Some(Self::Picture),
            -1 if parent == ROOT && names == TYPE_PROPERTIES => Some(Self::Mark),
            -1 if names == GTK_PROPERTIES => Some(Self::Picture),
            _ => None,
        }
    }
}

/// The readers that are known, by their bus names.
#[derive(Debug, Default)]
pub(super) struct Readers {
    known: Vec<(String, Sign)>,
    /// The last one that takes tooltips for markup.
    of_markup: Option<String>,
    /// The sign of the last panel that was recognised, for what is sent to all.
    panel: Sign,
}

impl Readers {
    /// The sign for a reader that asks for a layout.
    pub(super) fn of_layout(&mut self, name: &str, scope: (i32, i32), names: &[String]) -> Sign {
        let Some(sign) = Sign::of_layout(scope, names) else { return self.sign_of(name) };
        self.panel = sign;
        match self.known.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = sign,
            None => {
                if self.known.len() == READERS_MAX {
                    self.known.remove(0);
                }
                self.known.push((name.into(), sign));
            }
        }
        sign
    }

    /// Whether a reader that asks for these properties of a layout is found out to take tooltips for markup.
    pub(super) fn turns_out_to_read_markup(&mut self, name: &str, names: &[String]) -> bool {
        let is_new = names == MATE_PROPERTIES && !self.reads_markup(name);
        if is_new {
            self.of_markup = Some(name.into());
        }
        is_new
    }

    /// Whether the reader with this name takes tooltips for markup.
    pub(super) fn reads_markup(&self, name: &str) -> bool {
        self.of_markup.as_deref() == Some(name)
    }

    /// The sign for a reader with this name.
    pub(super) fn sign_of(&self, name: &str) -> Sign {
        self.known.iter().find(|(known, _)| known == name).map(|(_, sign)| *sign).unwrap_or_default()
    }

    /// The sign for what is sent to all.
    pub(super) const fn panel(&self) -> Sign {
        self.panel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_210_panels_that_draw_pictures_are_recognised_by_what_they_ask_for() {
        let mut readers = Readers::default();
        let mut reads = |name: &str, scope, names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            (readers.of_layout(name, scope, &names), readers.sign_of(name), readers.panel())
        };
        let (mark, picture) = (Sign::Mark, Sign::Picture);
        assert_eq!(reads("other", (ROOT, -1), &[]), (mark, mark, mark));
        assert_eq!(reads("plasma", (ROOT, 1), &[]), (picture, picture, picture));
        assert_eq!(reads("plasma", (7, 1), &[]), (picture, picture, picture));
        assert_eq!(reads("gnome", (ROOT, -1), &TYPE_PROPERTIES), (mark, mark, mark));
        assert_eq!(reads("xfce", (ROOT, -1), &GTK_PROPERTIES), (picture, picture, picture));
        assert_eq!(reads("notification area", (ROOT, -1), &MATE_PROPERTIES), (mark, mark, picture));
        // Who is not recognised is not taken for the panel.
        assert_eq!(reads("other", (ROOT, -1), &["label", "type"]), (mark, mark, picture));
        // A reader that is known stays what it is, whatever else it asks for.
        assert_eq!(reads("xfce", (3, 0), &["label"]), (picture, picture, picture));
        for n in 0..READERS_MAX {
            reads(&n.to_string(), (ROOT, 1), &[]);
        }
        assert_eq!(readers.sign_of("xfce"), mark, "few are remembered");
    }

    #[test]
    fn case_247_a_panel_that_takes_tooltips_for_markup_is_recognised() {
        let mut readers = Readers::default();
        let names: Vec<_> = MATE_PROPERTIES.iter().map(|&name| name.to_owned()).collect();
        assert!(!readers.reads_markup("mate"));
        assert!(readers.turns_out_to_read_markup("mate", &names), "it must read the tooltip again");
        assert!(!readers.turns_out_to_read_markup("mate", &names) && readers.reads_markup("mate"));
        assert!(!readers.turns_out_to_read_markup("plasma", &[]) && !readers.reads_markup("plasma"));
    }
}
