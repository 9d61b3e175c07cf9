//! How an entry looks, and the properties by which a panel is told so.

use super::{Properties, Property};
use crate::core::fleet::mark;
use crate::core::time::Moment;
use crate::core::verdict::Status;
use crate::tray::icon::badge;
use crate::tray::view::{Item, NEWS, Text};

/// How an entry looks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Looks {
    pub(super) text: Option<Text>,
    pub(super) enabled: bool,
    pub(super) picture: Option<Status>,
    pub(super) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Line,
    Submenu,
    /// Whether it has its check mark; none when a panel may have changed that by itself.
    Check(Option<bool>),
}

impl Looks {
    pub(super) fn of(item: &Item) -> Self {
        let (picture, form) = match item {
            Item::Separator => (None, Form::Line),
            Item::Text(_) | Item::Action { .. } => (None, Form::Plain),
            Item::Check { checked, .. } => (None, Form::Check(Some(*checked))),
            Item::Submenu { picture, .. } => (*picture, Form::Submenu),
        };
        Self { text: item.words().cloned(), enabled: item.is_enabled(), picture, form }
    }

    /// Its words as they are true now.
    pub(super) fn label(&self, now: Moment) -> String {
        self.text.as_ref().map(|text| text.at(now)).unwrap_or_default()
    }

    /// The same, where time changes them.
    pub(super) fn said(&self, now: Moment) -> Option<String> {
        self.text.as_ref().filter(|text| text.has_age()).map(|text| text.at(now))
    }

    pub(super) fn properties(&self, label: &str) -> Properties {
        let mut properties = Properties::new();
        if self.form == Form::Line {
            properties.insert("type", "separator".into());
            return properties;
        }
        properties.insert("label", escaped(label).into());
        if !self.enabled {
            properties.insert("enabled", false.into());
        }
        if let Some(status) = self.picture {
            properties.insert("icon-data", Property::Bytes(badge(status)));
        }
        // Without it, MATE's indicators go on saying the first words that an entry had.
        let spoken = self.picture.map_or_else(|| label.trim_start().to_owned(), |status| spoken(status, label));
        properties.insert("accessible-desc", spoken.into());
        match self.form {
            Form::Submenu => {
                properties.insert("children-display", "submenu".into());
            }
            Form::Check(checked) => {
                properties.insert("toggle-type", "checkmark".into());
                properties.insert("toggle-state", i32::from(checked == Some(true)).into());
            }
            Form::Plain | Form::Line => {}
        }
        properties
    }
}

/// A row for a screen reader: the status in words where the mark is.
fn spoken(status: Status, label: &str) -> String {
    let words = label.strip_prefix(mark(status).0).unwrap_or(label).trim_start();
    let (news, words) = words.strip_prefix(NEWS).map_or(("", words), |words| ("new, ", words));
    format!("{news}{}: {words}", status.name().replace('-', " "))
}

/// An underline marks the letter behind it as a key of the menu; two of them are one.
fn escaped(text: &str) -> String {
    text.replace('_', "__")
}
