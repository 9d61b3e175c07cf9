//! `[[on-change]]`: commands that are run when the status of a session changes, a table each.
//!
//! A command may hold the address of a webhook, which is a secret, so no problem quotes its words. Anything wrong with
//! one drops the whole command: run for something else, or with other arguments, it could do harm.

use toml::de::DeTable;

use super::form::{Value, Wrong};
use super::on_change_keys::{HEAD, KEYS, RUN, STATUS, TABLE};
use super::problem::Report;
use super::tables;
use super::values::OnChange;
use pilotlight_core::alert::Trigger;

/// Reads all commands. A wrong one is reported and left out.
pub(super) fn read(key: usize, value: &Value<'_>, report: &mut Report<'_>) -> Vec<OnChange> {
    let mut commands = Vec::new();
    for (at, table) in tables::read(TABLE, HEAD, key, value, report) {
        match read_one(at, table, report) {
            Ok(command) => commands.push(command),
            Err(wrong) => report.add(Some(wrong.at), wrong.what, "This command is ignored"),
        }
    }
    commands
}

fn read_one(at: usize, table: &DeTable<'_>, report: &mut Report<'_>) -> Result<OnChange, Wrong> {
    tables::report_unknown(TABLE, &KEYS, table, report);
    let triggers = tables::value(TABLE, table, "status", &STATUS)?.unwrap_or_else(Trigger::usual);
    let run = tables::value(TABLE, table, "run", &RUN)?;
    let run = run.ok_or_else(|| Wrong { at, what: "a command needs a `run`".into() })?;
    Ok(OnChange { triggers, run })
}

/// The commands as TOML, after an explanation of the keys.
pub(super) fn print(commands: &[OnChange]) -> String {
    let mut out = format!(
        "\n# Commands that are run when the status of a session changes, by the rules of notifications, a table each:\n\
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
