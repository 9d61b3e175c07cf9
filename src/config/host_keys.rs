//! The keys of `[[host]]`, and the forms of their values.

use super::form::{Form, Wrong, items, quoted, text, texts, wrong_program};

/// The name of the table.
pub(super) const TABLE: &str = "host";
/// How it is written.
pub(super) const HEAD: &str = "[[host]]";
/// The keys of a host, each with its form.
pub(super) const KEYS: [(&str, &str); 4] =
    [("name", NAME.text), ("ssh", SSH.text), ("program", PROGRAM.text), ("command", COMMAND.text)];
/// The program on the other machine, unless it is named.
pub(super) const PROGRAM_THERE: &str = "pilotlight";

/// Maximum length of a name, in characters: it follows each of its sessions.
const NAME_MAX: usize = 24;

pub(super) const NAME: Form<String> = Form {
    text: "a name of up to 24 letters, digits, \"-\", \"_\" and \".\", which its sessions are shown with",
    read: |value| {
        let text = text(value)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || text.len() > NAME_MAX || text.starts_with('-') || !text.chars().all(is_plain) {
            return Err(Wrong::new(value, "this is not one"));
        }
        Ok(text.to_owned())
    },
    show: |name| quoted(name),
};

/// What `ssh` is told to connect to. Nothing that it would take for an option, and nothing a shell would take apart.
pub(super) const SSH: Form<String> = Form {
    text: "a host as `ssh` takes it: a name of your ssh config, or \"user@address\"; its name, if left out",
    read: |value| {
        let text = text(value)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:%[]/".contains(c);
        if text.is_empty() || text.starts_with('-') || !text.chars().all(is_plain) {
            return Err(Wrong::new(value, "this is not one"));
        }
        Ok(text.to_owned())
    },
    show: |host| quoted(host),
};

/// It is passed through a shell there, which expands a leading `~`.
pub(super) const PROGRAM: Form<String> = Form {
    text: "where Pilotlight is on that machine, such as \"~/.local/bin/pilotlight\"; \"pilotlight\" on its PATH, if left out",
    read: |value| {
        let text = text(value)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+~".contains(c);
        if text.is_empty() || text.starts_with('-') || !text.chars().all(is_plain) {
            return Err(Wrong::new(value, "this is not one that needs no quotes in a shell"));
        }
        Ok(text.to_owned())
    },
    show: |program| quoted(program),
};

pub(super) const COMMAND: Form<Vec<String>> = Form {
    text: "instead of `ssh`: the words that run `pilotlight serve --stdio` there, such as \
           [\"docker\", \"exec\", \"-i\", \"box\", \"pilotlight\", \"serve\", \"--stdio\"]",
    read: |value| {
        let words = items(value, |item| {
            let text = text(item)?;
            if text.contains('\0') { Err(Wrong::new(item, "this has a null character")) } else { Ok(text.to_owned()) }
        })?;
        let Some(program) = words.first() else { return Err(Wrong::new(value, "it is empty")) };
        wrong_program(program).map_or(Ok(words), |why| Err(Wrong::new(value, why)))
    },
    show: |words| texts(words.iter().cloned()),
};
