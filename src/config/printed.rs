//! The settings as text: printed with what holds now, as a new file to begin with, and in a word for a bug report.

use super::field::Field;
use super::settings::SETTINGS;
use super::{Config, server};

/// The settings that differ from their defaults: each one's name and its value; `None` for values that hold names or paths.
pub(crate) fn changed(config: &Config) -> Vec<(String, Option<String>)> {
    let default = Config::default();
    let differs = |field: &Field| field.show(config) != field.show(&default);
    let value = |field: &Field| match field {
        Field::Folders(_) | Field::Programs(_) | Field::Terminal(_) | Field::OwnProgram(_) | Field::Prompt(_) => None,
        _ => Some(field.show(config)),
    };
    let settings = SETTINGS.iter().filter(|setting| differs(&setting.field));
    let mut changed: Vec<_> = settings.map(|setting| (setting.name(), value(&setting.field))).collect();
    if !config.servers.is_empty() {
        changed.push((server::HEAD.to_owned(), Some(config.servers.len().to_string())));
    }
    changed
}

/// A whole `config.toml` with every key at its present value, each with its meaning, form and default before it. Reading it
/// gives `config` back.
pub fn print(config: &Config) -> String {
    let mut out = String::from("# Pilotlight's settings. A key that is left out has its default.\n");
    let (mut table, default) = ("", Config::default());
    for setting in SETTINGS {
        if setting.table != table {
            table = setting.table;
            out += &format!("\n[{table}]");
        }
        let field = &setting.field;
        let (meaning, form, default) = (setting.meaning, field.form(), field.show(&default));
        out +=
            &format!("\n# {meaning}\n# Takes {form}. Default: {default}\n{} = {}\n", setting.key, field.show(config));
    }
    out + &server::print(&config.servers)
}

/// What a new config begins as: every key at its default and commented out, so that nothing is set until the user does.
pub(crate) fn reference() -> String {
    let printed = print(&Config::default());
    let line = |line: &str| match line {
        "" => "\n".to_owned(),
        kept if kept.starts_with(['#', '[']) => format!("{kept}\n"),
        key => format!("# {key}\n"),
    };
    printed.lines().map(line).collect()
}
