//! The user's settings: `config.toml`.
//!
//! A config error is never fatal. Each one is a [`Problem`] that says where, what and what holds instead: a wrong key
//! costs that key, which has its default then; for a file that is not TOML, the settings hold that were last valid, which
//! `last_valid.rs` saves. A setting that hides something is as it was last valid in both cases, and where that is unknown,
//! as careful as it can be ([`Config::careful`]). A typo must neither turn the watcher off nor show more than the user
//! allowed.
//!
//! `values.rs` holds the settings, `settings.rs` is the one list of their keys, and this file walks a document along it.
//! `form.rs` reads and writes the values, `span.rs` spans of time, and `server.rs`, `on_change.rs` and `host.rs` the tables
//! that may occur several times, with what they share in `tables.rs`. `problem.rs` describes what is wrong, in words that `printable.rs` makes
//! safe to show; `edit.rs` changes the text of a config; `nearest.rs` finds the key that was meant, and `printed.rs` prints settings.

pub mod edit;
mod form;
mod host;
pub mod last_valid;
mod nearest;
mod on_change;
mod printable;
mod printed;
mod problem;
mod server;
mod settings;
mod span;
mod tables;
#[cfg(test)]
mod tests;
mod values;

use pilotlight_system::plain_file::{self, Links, OpenError};
use std::io::{ErrorKind, Read};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

pub(crate) use self::form::{COMMAND, FOLDER};
pub use self::printed::print;
pub use self::printed::{changed, redacted, reference};
pub use self::problem::Problem;
pub use self::span::parse_or_zero as parse_span_or_zero;
pub use self::values::{Actions, HostSetting, Notifications, OnChange, Permissions, Reach, ServiceUse, Tray};
pub use self::values::{Config, List};

use self::form::Value;
use self::printable::shown;
use self::problem::{Instead, Problems};
use self::settings::{SETTINGS, SHORT, Setting, contradiction, table};

/// Larger files are refused. In bytes.
const LARGEST: u64 = 1024 * 1024;

/// Reads the config at `path`. A missing file is normal and no problem; one that cannot be used (unreadable, not a
/// plain file, over 1 MiB, not UTF-8, not TOML) is one problem. What cannot be read is as in `last_valid`, the settings
/// that were last valid.
pub fn load(path: &Path, last_valid: Option<&Config>) -> (Config, Vec<Problem>) {
    match read(path) {
        Ok(text) => parse_after(&text, path, last_valid),
        Err(what) => {
            let (config, instead) = fallback(last_valid);
            (config, vec![Problem { path: path.to_owned(), at: None, what, hint: None, instead }])
        }
    }
}

/// What holds if nothing can be read.
fn fallback(last_valid: Option<&Config>) -> (Config, Instead) {
    match last_valid {
        Some(config) => (config.clone(), Instead::LastValid),
        None => (Config::careful(), Instead::Careful),
    }
}

/// The text of the file, empty if it does not exist, or why it cannot be used.
pub fn read(path: &Path) -> Result<String, String> {
    let unreadable = |error| format!("cannot be read: {error}");
    let file = match plain_file::open(path, Links::Followed) {
        Ok((file, _)) => file,
        Err(OpenError::Io(error)) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        Err(OpenError::Io(error)) => return Err(unreadable(error)),
        Err(OpenError::NotAFile(what)) => return Err(format!("is {what}, not a file")),
    };
    let mut bytes = Vec::new();
    // Reading one byte more than allowed also catches a file that has grown since, or whose length is not known
    // beforehand.
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err("is larger than 1 MiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        format!("is not UTF-8 text (line {line})")
    })
}

/// Reads the text of a config; `path` only names the file in the problems. They are in the order of the file; of very
/// many, the first ones and the number of the others.
pub fn parse(text: &str, path: &Path) -> (Config, Vec<Problem>) {
    parse_after(text, path, None)
}

/// Like [`parse`]. What cannot be read is as in `last_valid`.
fn parse_after(text: &str, path: &Path, last_valid: Option<&Config>) -> (Config, Vec<Problem>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (fallback, instead) = fallback(last_valid);
    let mut reader = Reader {
        config: Config::default(),
        fallback,
        written: vec![None; SETTINGS.len()],
        meant: Vec::new(),
        report: Problems::new(text, path),
    };
    match DeTable::parse(text) {
        Ok(document) => {
            reader.document(document.get_ref());
            reader.keep_what_was_meant();
            reader.contradictions();
        }
        Err(error) => {
            let what = format!("not TOML: {}", shown(error.message()));
            reader.report.add(error.span().map(|span| span.start), what, instead);
            reader.config = reader.fallback;
        }
    }
    (reader.config, reader.report.into_problems())
}

/// A walk through one document.
struct Reader<'t> {
    config: Config,
    /// What a setting that cannot be read is taken from.
    fallback: Config,
    /// The names and tables that unknown keys were probably meant to be.
    meant: Vec<(String, String)>,
    /// Where each of [`SETTINGS`] is set, as an offset into the text; `None` where its default holds.
    written: Vec<Option<usize>>,
    report: Problems<'t>,
}

impl Reader<'_> {
    fn document(&mut self, document: &DeTable<'_>) {
        for (key, value) in document {
            if key.get_ref() == server::TABLE {
                self.config.servers = server::read(key.span().start, value, &mut self.report);
            } else if key.get_ref() == on_change::TABLE {
                self.config.on_change = on_change::read(key.span().start, value, &mut self.report);
            } else if key.get_ref() == host::TABLE {
                self.config.hosts = host::read(key.span().start, value, &mut self.report);
            } else if key.get_ref() == SHORT.0 && !matches!(value.get_ref(), DeValue::Table(_)) {
                self.setting_named(SHORT.0, SETTINGS.iter().position(|s| (s.table, s.key) == SHORT), key, value);
            } else if let Some(table) = table(key.get_ref()) {
                let DeValue::Table(entries) = value.get_ref() else {
                    let kind = value.get_ref().type_str();
                    let what = format!("`{table}` must be a table, written `[{table}]`; this is of type {kind}");
                    self.report.add(Some(key.span().start), what, "It is ignored");
                    continue;
                };
                for (key, value) in entries {
                    self.setting(table, key, value);
                }
            } else {
                self.setting("", key, value);
            }
        }
    }

    fn setting(&mut self, table: &'static str, key: &Spanned<DeString<'_>>, value: &Value<'_>) {
        let index = SETTINGS.iter().position(|s| s.table == table && s.key == key.get_ref());
        let name = index.map(|index| SETTINGS[index].name()).unwrap_or_default();
        if !self.setting_named(&name, index, key, value)
            && let Some(meant) = self.report.unknown_key(table, key)
        {
            self.meant.push((table.to_owned(), meant));
        }
    }

    /// Reads the setting at this index, which the document calls `name`. Returns false if there is none.
    fn setting_named(
        &mut self,
        name: &str,
        index: Option<usize>,
        key: &Spanned<DeString<'_>>,
        value: &Value<'_>,
    ) -> bool {
        let Some(index) = index else { return false };
        let setting = &SETTINGS[index];
        match setting.set(&mut self.config, value) {
            Ok(()) => self.written[index] = Some(key.span().start),
            Err(wrong) => {
                let wrong = wrong.of(name, setting.form);
                self.keep(setting);
                let value = setting.show(&self.config);
                let is_default = value == setting.default();
                let instead = match is_default {
                    true => format!("The default, {value}, is used"),
                    false => format!("Until you repair it, {value} is used"),
                };
                self.report.add(Some(wrong.at), wrong.what, instead);
            }
        }
        true
    }

    /// Keeps the settings that unknown keys were probably meant to set: with a typo in its name, a setting that hides
    /// something must not end.
    fn keep_what_was_meant(&mut self) {
        for (table, meant) in std::mem::take(&mut self.meant) {
            let is_meant = |setting: &Setting| {
                setting.name() == meant
                    || setting.table == table && setting.key == meant
                    || !setting.table.is_empty() && format!("[{}]", setting.table) == meant
            };
            for (index, setting) in SETTINGS.iter().enumerate() {
                if self.written[index].is_none() && is_meant(setting) {
                    self.keep(setting);
                }
            }
        }
    }

    /// Keeps a setting that cannot be read as it was, if it may hide something. Any other has its default.
    fn keep(&mut self, setting: &Setting) {
        if setting.show(&Config::careful()) != setting.default() {
            setting.copy(&mut self.config, &self.fallback);
        }
    }

    /// Resets limits that contradict each other to their defaults, until all agree: a default can contradict a third
    /// limit.
    fn contradictions(&mut self) {
        while let Some(keys) = contradiction(&self.config.limits) {
            // In the list of settings, a `quiet` is before its `stuck`.
            let both = || SETTINGS.iter().enumerate().filter(|(_, s)| s.table == "limits" && keys.contains(&s.key));
            let values = both().map(|(index, setting)| {
                let origin = if self.written[index].is_some() { "" } else { ", its default" };
                format!("`{}` ({}{origin})", setting.name(), setting.show(&self.config))
            });
            let what = values.collect::<Vec<_>>().join(" is above ");
            let defaults: Vec<_> = both().map(|(_, setting)| setting.default()).collect();
            let at = both().find_map(|(index, _)| self.written[index]);
            self.report.add(at, what, format!("Both get their defaults, {}", defaults.join(" and ")));
            for (index, setting) in both() {
                setting.reset(&mut self.config);
                self.written[index] = None;
            }
        }
    }
}
