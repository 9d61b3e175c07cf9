//! The keys of `[[on-change]]`, and the forms of their values.

use super::form::{Form, Wrong, command, items, text, texts};
use super::printable::shown;
use pilotlight_core::alert::Trigger;

/// The name of the table.
pub(super) const TABLE: &str = "on-change";
/// How it is written.
pub(super) const HEAD: &str = "[[on-change]]";
/// The keys of a command, each with its form.
pub(super) const KEYS: [(&str, &str); 2] = [("status", STATUS.text), ("run", RUN.text)];

pub(super) const STATUS: Form<Vec<Trigger>> = Form {
    text: "a list of statuses, such as [\"needs-permission\", \"idle\"], and of \"done\" for a long turn",
    read: |value| {
        let triggers = items(value, |item| {
            let text = text(item)?;
            let trigger = Trigger::all().find(|trigger| trigger.name() == text);
            trigger.ok_or_else(|| Wrong::new(item, format!("\"{}\" is none", shown(text))))
        })?;
        if triggers.is_empty() { Err(Wrong::new(value, "it is empty")) } else { Ok(triggers) }
    },
    show: |triggers| texts(triggers.iter().map(|trigger| trigger.name().to_owned())),
};

pub(super) const RUN: Form<Vec<String>> = Form {
    text: "a list of words, the first of which is a program on PATH, absolute or beginning with ~/",
    read: command,
    show: |words| texts(words.iter().cloned()),
};
