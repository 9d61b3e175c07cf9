//! The appearance of an entry, and the dbusmenu properties that describe it.

use crate::tray::icon::badge;
use crate::tray::sni::property::{Properties, Property};
use crate::tray::sni::readers::Sign;
use crate::tray::view::{Item, Lead, Text, Worded};
use pilotlight_core::time::Moment;
use pilotlight_core::verdict::Status;

/// How entries are worded for a panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wording {
    /// The time that ages are counted to.
    pub(crate) now: Moment,
    /// What tells the status of a session in its row.
    pub(crate) sign: Sign,
    /// Whether the arrow of a submenu is kept apart from its label: Plasma 6.7 leaves no room between them.
    pub(crate) spaced: bool,
}

/// What keeps an arrow apart. Not a space, which would be cut off.
const SPACE: &str = "\u{a0}\u{a0}";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Appearance {
    pub(super) text: Option<Text>,
    pub(super) enabled: bool,
    /// A slot without a session: it is there, and not shown.
    pub(super) hidden: bool,
    pub(super) picture: Option<Status>,
    pub(super) entry_type: EntryType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryType {
    Standard,
    Separator,
    Submenu,
    /// Whether it is checked; `None` if the panel may have toggled it on its own.
    Check(Option<bool>),
}

impl EntryType {
    pub(super) const fn of(item: &Item) -> Self {
        match item {
            Item::Separator => Self::Separator,
            Item::Text(_) | Item::Action { .. } => Self::Standard,
            Item::Check { checked, .. } => Self::Check(Some(*checked)),
            Item::Submenu { .. } => Self::Submenu,
        }
    }
}

impl Appearance {
    pub(super) fn of(item: &Item) -> Self {
        let picture = if let Item::Submenu { picture, .. } = item { *picture } else { None };
        let (text, enabled) = (item.words().cloned(), item.is_enabled());
        Self { text, enabled, hidden: false, picture, entry_type: EntryType::of(item) }
    }

    /// That of a slot that no session needs.
    pub(super) const fn hidden() -> Self {
        Self { text: None, enabled: true, hidden: true, picture: None, entry_type: EntryType::Submenu }
    }

    /// The label, with its age as of now, and with a mark unless a picture is drawn beside it.
    pub(super) fn label(&self, how: Wording) -> Worded {
        self.text.as_ref().map(|text| self.worded(text, how)).unwrap_or_default()
    }

    /// The label if it has an age.
    pub(super) fn label_with_age(&self, how: Wording) -> Option<Worded> {
        self.text.as_ref().filter(|text| text.has_age()).map(|text| self.worded(text, how))
    }

    fn worded(&self, text: &Text, how: Wording) -> Worded {
        text.label(self.picture_for(how).is_some(), how.now)
    }

    fn picture_for(&self, how: Wording) -> Option<Status> {
        self.picture.filter(|_| how.sign == Sign::Picture)
    }

    pub(super) fn properties(&self, label: &Worded, how: Wording) -> Properties {
        let mut properties = Properties::new();
        if self.entry_type == EntryType::Separator {
            properties.insert("type", "separator".into());
            return properties;
        }
        let space = if how.spaced && self.entry_type == EntryType::Submenu { SPACE } else { "" };
        properties.insert("label", (escaped(&label.text) + space).into());
        if !self.enabled {
            properties.insert("enabled", false.into());
        }
        if self.hidden {
            properties.insert("visible", false.into());
        }
        if let Some(status) = self.picture_for(how) {
            properties.insert("icon-data", Property::Bytes(badge(status)));
        }
        // Without it, MATE's indicators keep reading out the first label that an entry had.
        properties.insert("accessible-desc", self.spoken(label).into());
        match self.entry_type {
            EntryType::Submenu => {
                properties.insert("children-display", "submenu".into());
            }
            EntryType::Check(checked) => {
                properties.insert("toggle-type", "checkmark".into());
                properties.insert("toggle-state", i32::from(checked == Some(true)).into());
            }
            EntryType::Standard | EntryType::Separator => {}
        }
        properties
    }

    /// The label for a screen reader: with the status in words instead of its mark.
    fn spoken(&self, label: &Worded) -> String {
        let words = label.text[label.words_at..].trim_start();
        let Some(Lead { status, unseen }) = self.text.as_ref().and_then(Text::lead) else { return words.to_owned() };
        format!("{}{}: {words}", if unseen { "new, " } else { "" }, status.name().replace('-', " "))
    }
}

/// Doubles underscores: a single one marks the next letter as a mnemonic.
fn escaped(text: &str) -> String {
    text.replace('_', "__")
}
