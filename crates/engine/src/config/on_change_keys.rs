//! The keys of `[[on-change]]`, and the forms of their values.

use super::form::{Form, Wrong, command, items, text, texts};
use super::printable::shown;
use pilotlight_core::alert::Occasion;

/// The name of the table.
pub(super) const TABLE: &str = "on-change";
/// How it is written.
pub(super) const HEAD: &str = "[[on-change]]";
/// The keys of a command, each with its form.
pub(super) const KEYS: [(&str, &str); 2] = [("status", STATUS.text), ("run", RUN.text)];

pub(super) const STATUS: Form<Vec<Occasion>> = Form {
    text: "a list of statuses, such as [\"needs-permission\", \"idle\"], and of \"done\" for a long turn",
    read: |value| {
        let occasions = items(value, |item| {
            let text = text(item)?;
            let occasion = Occasion::all().find(|occasion| occasion.name() == text);
            occasion.ok_or_else(|| Wrong::new(item, format!("\"{}\" is none", shown(text))))
        })?;
        if occasions.is_empty() { Err(Wrong::new(value, "it is empty")) } else { Ok(occasions) }
    },
    show: |occasions| texts(occasions.iter().map(|occasion| occasion.name().to_owned())),
};

pub(super) const RUN: Form<Vec<String>> = Form {
    text: "a list of words, the first of which is a program on PATH, absolute or beginning with ~/",
    read: command,
    show: |words| texts(words.iter().cloned()),
};
