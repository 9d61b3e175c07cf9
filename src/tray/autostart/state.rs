//! Whether this program is started at login, and the menu entry that shows and changes it.

use crate::tray::view::{COLUMNS, Effect, Item, ItemId, Kind};
use pilotlight_core::text::{lines, plain};
use unicode_width::UnicodeWidthStr;

/// Maximum length of a note in the menu, in characters.
const NOTE_MAX: usize = 96;

/// Whether this program is started at login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether it is.
    pub on: bool,
    /// Whether the menu can change it.
    pub can_change: bool,
    /// What the check mark does not show: why it is not started although there is an entry, or what else starts it.
    pub note: Option<String>,
    /// The line that the user has to add, where nothing reads desktop entries.
    pub line: Option<StartLine>,
}

/// A line that has a window manager start this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartLine {
    /// The window manager's name.
    pub of: &'static str,
    pub text: String,
    /// Where it belongs.
    pub file: String,
}

impl State {
    /// On, and the menu can change it.
    pub(crate) const fn on() -> Self {
        Self { on: true, can_change: true, note: None, line: None }
    }

    /// Off, and the menu can change it.
    pub(crate) const fn off() -> Self {
        Self { on: false, can_change: true, note: None, line: None }
    }

    /// The same, with a note.
    pub(super) fn because(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// The menu entry. A note that does not fit goes below it.
    pub(crate) fn items(&self) -> Vec<Item> {
        if let Some(line) = &self.line {
            let text = format!("Start at login: copy the line for {}", line.of);
            return vec![Item::action(
                ItemId::own(Kind::StartAtLogin),
                text,
                Effect::CopyStartLine(Box::new(line.clone())),
            )];
        }
        let (id, effect) = (ItemId::own(Kind::StartAtLogin), Effect::StartAtLogin(!self.on));
        let note = self.note.as_ref().map(|note| plain(note, NOTE_MAX));
        let whole = note.as_ref().map(|note| format!("Start at login ({note})")).filter(|text| text.width() <= COLUMNS);
        let below = note.filter(|_| whole.is_none());
        let text = whole.unwrap_or_else(|| "Start at login".into()).into();
        let below = below.iter().flat_map(|note| lines(note, COLUMNS - 2, 2));
        let below = below.map(|line| Item::text(format!("  {line}")));
        [Item::Check { id, text, enabled: self.can_change, checked: self.on, effect }]
            .into_iter()
            .chain(below)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::time::Moment;

    #[test]
    fn the_menu_entry_shows_the_state_and_its_note() {
        let shows = |state: &State| {
            let items = state.items();
            let Item::Check { enabled, checked, effect, .. } = &items[0] else { panic!("{items:?}") };
            let words = items.iter().filter_map(Item::words).map(|text| text.at(Moment::default())).collect::<Vec<_>>();
            (words, *enabled, *checked, effect.clone())
        };
        assert_eq!(shows(&State::on()), (vec!["Start at login".into()], true, true, Effect::StartAtLogin(false)));
        let off = State::off().because("its entry starts /old/pilot");
        let words = vec!["Start at login (its entry starts /old/pilot)".into()];
        assert_eq!(shows(&off), (words, true, false, Effect::StartAtLogin(true)));
        let long = State::off().because("its entry starts a program that is not there any more");
        let words = ["Start at login", "  its entry starts a program that is not there", "  any more"];
        assert_eq!(shows(&long).0, words);
    }
}
