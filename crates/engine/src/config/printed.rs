//! The settings as text: with their present values, as a new file to start from, and for a bug report.

use super::settings::SETTINGS;
use super::values::Config;
use super::{host, on_change, server};

/// Settings whose values may hold names or paths, which a bug report must not show.
pub(super) const PRIVATE: [&str; 5] =
    ["homes.also", "owners.names", "actions.terminal", "actions.copilot", "actions.continue-prompt"];

/// The settings that differ from their defaults, each with its name and value. Without servers and commands.
pub fn changed(config: &Config) -> Vec<(String, String)> {
    let values = SETTINGS.iter().map(|setting| (setting, setting.show(config)));
    let changed = values.filter(|(setting, value)| *value != setting.default());
    changed.map(|(setting, value)| (setting.name(), value)).collect()
}

/// The settings that differ from their defaults, for a bug report: a line each, without the values of [`PRIVATE`] ones.
pub fn redacted(config: &Config) -> Vec<String> {
    let value = |name: &str, value| if PRIVATE.contains(&name) { "…".to_owned() } else { value };
    let mut lines: Vec<_> =
        changed(config).into_iter().map(|(name, shown)| format!("{name} = {}", value(&name, shown))).collect();
    if !config.servers.is_empty() {
        lines.push(format!("{} = {}", server::HEAD, config.servers.len()));
    }
    if !config.on_change.is_empty() {
        lines.push(format!("{} = {}", on_change::HEAD, config.on_change.len()));
    }
    if !config.hosts.is_empty() {
        lines.push(format!("{} = {}", host::HEAD, config.hosts.len()));
    }
    lines
}

/// A whole `config.toml` with every key at its present value, preceded by its meaning, form and default. Reading it
/// returns `config` again.
pub fn print(config: &Config) -> String {
    printed(config, "")
}

/// The text of a new config: every key at its default and commented out, so that nothing is set until the user sets it.
pub fn reference() -> String {
    printed(&Config::default(), "# ")
}

/// Every key, after `before`.
fn printed(config: &Config, before: &str) -> String {
    let mut out = String::from("# Pilotlight's settings. A key that is left out has its default.\n");
    let mut table = "";
    for setting in SETTINGS.iter() {
        if setting.table != table {
            table = setting.table;
            out += &format!("\n[{table}]");
        }
        let (key, meaning, form) = (setting.key, setting.meaning, setting.form);
        let (default, value) = (setting.default(), setting.show(config));
        out += &format!("\n# {meaning}\n# Takes {form}. Default: {default}\n{before}{key} = {value}\n");
    }
    out + &server::print(&config.servers) + &on_change::print(&config.on_change) + &host::print(&config.hosts)
}
