//! `[[on-change]]`: commands that are run when the status of a session changes, a table each.
//!
//! A command may hold the address of a webhook, which is a secret, so no problem quotes its words. Anything wrong with
//! one drops the whole command: run for something else, or with other arguments, it could do harm.

use toml::de::DeTable;

use super::form::{Form, Value, Wrong, command, items, text, texts};
use super::printable::shown;
use super::problem::Problems;
use super::tables;
use super::values::OnChange;
use pilotlight_core::alert::Trigger;

/// The name of the table.
pub(super) const TABLE: &str = "on-change";
/// How it is written.
pub(super) const HEAD: &str = "[[on-change]]";
/// The keys of a command, each with its form.
pub(super) const KEYS: [(&str, &str); 2] = [("status", STATUS.text), ("run", RUN.text)];

const STATUS: Form<Vec<Trigger>> = Form {
    text: "a list of statuses, such as [\"needs-permission\", \"idle\"], or \"done\" for a long turn that ended",
    read: |value| {
        let triggers = items(value, |item| {
            let text = text(item)?;
            let trigger = Trigger::all().find(|trigger| trigger.name() == text);
            trigger.ok_or_else(|| Wrong::new(item, format!("\"{}\" is not a status", shown(text))))
        })?;
        if triggers.is_empty() { Err(Wrong::new(value, "it is empty")) } else { Ok(triggers) }
    },
    show: |triggers| texts(triggers.iter().map(|trigger| trigger.name().to_owned())),
};

const RUN: Form<Vec<String>> = Form {
    text: "a list of words, the first of which is a program on PATH, absolute or beginning with ~/",
    read: command,
    show: |words| texts(words.iter().cloned()),
};

/// Reads all commands. A wrong one is reported and left out.
pub(super) fn read(key: usize, value: &Value<'_>, report: &mut Problems<'_>) -> Vec<OnChange> {
    let mut commands = Vec::new();
    for (at, table) in tables::read(TABLE, HEAD, key, value, report) {
        match read_one(at, table, report) {
            Ok(command) => commands.push(command),
            Err(wrong) => report.add(Some(wrong.at), wrong.what, "This command is ignored"),
        }
    }
    commands
}

fn read_one(at: usize, table: &DeTable<'_>, report: &mut Problems<'_>) -> Result<OnChange, Wrong> {
    tables::report_unknown(TABLE, &KEYS, table, report);
    let triggers = tables::value(TABLE, table, "status", &STATUS)?.unwrap_or_else(Trigger::usual);
    let run = tables::value(TABLE, table, "run", &RUN)?;
    let run = run.ok_or_else(|| Wrong { at, what: "a command needs a `run`".into() })?;
    Ok(OnChange { triggers, run })
}

/// The commands as TOML, after an explanation of the keys.
pub(super) fn print(commands: &[OnChange]) -> String {
    let mut out = format!(
        "\n# Commands to run when the status of a session changes, a table each. Each runs when a popup\n# for that status would be due, even if popups are off:\n\
         # {HEAD}\n"
    );
    out += &tables::explained(&KEYS);
    out += &format!(
        "# The session is on its standard input, as JSON. Default of status: {}\n",
        (STATUS.show)(&Trigger::usual())
    );
    for OnChange { triggers, run } in commands {
        out += &format!("\n{HEAD}\nstatus = {}\nrun = {}\n", (STATUS.show)(triggers), (RUN.show)(run));
    }
    out
}
