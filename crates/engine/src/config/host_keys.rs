//! The keys of `[[host]]`, and the forms of their values.

use super::form::{Form, Value, Wrong, command, quoted, text, texts};

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
    read: |value| match plain(value, "-_.", NAME_MAX, "this is not one")? {
        name if name.chars().all(|c| c == '.') => Err(Wrong::new(value, "this has nothing but dots")),
        name => Ok(name),
    },
    show: |name| quoted(name),
};

/// What `ssh` is told to connect to. Nothing that it would take for an option, and nothing a shell would take apart.
pub(super) const SSH: Form<String> = Form {
    text: "a host as `ssh` takes it: a name of your ssh config, or \"user@address\"; its name, if left out",
    read: |value| plain(value, "-_.@:%[]/", usize::MAX, "this is not one"),
    show: |host| quoted(host),
};

/// It is passed through a shell there, which expands a leading `~`.
pub(super) const PROGRAM: Form<String> = Form {
    text: "where Pilotlight is on that machine, such as \"~/.local/bin/pilotlight\"; \"pilotlight\" on its PATH, if left out",
    read: |value| plain(value, "-_./+~", usize::MAX, "this is not one that needs no quotes in a shell"),
    show: |program| quoted(program),
};

pub(super) const COMMAND: Form<Vec<String>> = Form {
    text: "instead of `ssh`: the words that run `pilotlight serve --stdio` there, such as \
           [\"docker\", \"exec\", \"-i\", \"box\", \"pilotlight\", \"serve\", \"--stdio\"]",
    read: command,
    show: |words| texts(words.iter().cloned()),
};

/// Text of letters, digits and these signs, which begins like no option.
fn plain(value: &Value<'_>, signs: &str, max: usize, wrong: &'static str) -> Result<String, Wrong> {
    let text = text(value)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    if text.is_empty() || text.len() > max || text.starts_with('-') || !text.chars().all(is_plain) {
        return Err(Wrong::new(value, wrong));
    }
    Ok(text.to_owned())
}
