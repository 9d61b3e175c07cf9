//! What the user has set: `config.toml`.
//!
//! A config is never fatal. Whatever is wrong with it is a [`Problem`] that says where, what and what now holds instead;
//! a wrong key costs that key, a file that is no TOML costs the whole file, and the program runs with defaults for what
//! it lost. A watcher that stays dark because of a typo would be worse than one that watches with the usual limits.
//!
//! `settings.rs` is the one list of keys; this file walks a document along it, `field.rs` and `value.rs` read the values, and
//! `nearest.rs` finds the key that was meant. `server.rs` is for
//! the tables that there may be several of. `span.rs` reads and words spans of time, `problem.rs` words what went wrong,
//! `printed.rs` writes settings down.
//!
//! May import: core, system, agent.

mod field;
mod nearest;
mod printed;
mod problem;
mod server;
mod settings;
mod span;
#[cfg(test)]
mod tests;
mod value;

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

pub use self::printed::print;
pub(crate) use self::printed::{changed, reference};
pub(crate) use self::problem::{Position, Problem};
pub(crate) use self::span::parse as parse_span;
pub(crate) use self::value::{COMMAND, FOLDER};

use self::nearest::nearest;
use self::problem::{ALL, Report, shown};
use self::settings::{SETTINGS, Setting, table};
use crate::agent::copilot::server::servers::ServerSetting;
use crate::core::alert;
use crate::core::limits::Limits;
use crate::core::time::Span;
use crate::system::log::LogLevel;

/// A larger file is no config: it is refused before it is read. In bytes.
const LARGEST: u64 = 1024 * 1024;

/// Everything that can be set. What each field means, and its default, is said once, in the list of settings that
/// [`print()`] shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `homes`: further homes of Copilot, as written: a leading `~` is not expanded yet ([`crate::system::paths::homes`] does).
    pub homes: Vec<PathBuf>,
    /// `[limits]`.
    pub limits: Limits,
    /// `[owners]`.
    pub owners: Owners,
    /// `[list]`.
    pub list: List,
    /// `[actions]`.
    pub actions: Actions,
    /// `[tray]`.
    pub tray: Tray,
    /// `[notifications]`.
    pub notifications: Notifications,
    /// `[log]`.
    pub log: Log,
    /// `[[server]]`: each with another address, all on loopback.
    pub servers: Vec<ServerSetting>,
}

/// `[owners]`: which processes count as Copilot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// `names`: file names of further programs that own sessions, beside `copilot` itself.
    pub names: Vec<String>,
}

/// `[list]`: which ended sessions are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// `ended-for`: how long an ended session stays listed.
    pub ended_for: Span,
    /// `ended-most`: how many ended sessions are listed at most, the latest first.
    pub ended_most: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { ended_for: Span::hours(24), ended_most: 10 }
    }
}

/// `[tray]`: how the icon looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tray {
    /// `count`: whether the icon carries the number of sessions that need the user.
    pub count: bool,
    /// `high-contrast`: whether it is black and white.
    pub high_contrast: bool,
}

/// `[actions]`: what a click leads to, and what is done without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actions {
    /// `terminal`: the words of the terminal that sessions are opened in, with [`COMMAND`] and [`FOLDER`] as placeholders.
    /// Empty: it is found.
    pub terminal: Vec<String>,
    /// `copilot`: the Copilot CLI, as written: a leading `~` is not expanded yet ([`crate::system::paths::expand`] does). `None`: it
    /// is looked for on `PATH`.
    pub copilot: Option<PathBuf>,
    /// `permissions`.
    pub permissions: Permissions,
    /// `auto-reconnect`: whether sessions are reconnected without a click.
    pub auto_reconnect: bool,
    /// `resend`: whether a reconnection without a click has the session go on: by its last prompt, where no tool ran since,
    /// else by `continue_prompt`.
    pub resend: bool,
    /// `continue-prompt`: what a session is told that is to go on, where its last prompt must not be sent again.
    pub continue_prompt: String,
    /// `ask-servers`: whether a session's server is asked what it does before the session is called stuck.
    pub ask_servers: bool,
    /// `bridge-untried`: whether the bridge obeys in releases of Copilot that it was not tried with.
    pub bridge_untried: bool,
}

impl Default for Actions {
    fn default() -> Self {
        Self {
            terminal: Vec::new(),
            copilot: None,
            permissions: Permissions::default(),
            auto_reconnect: false,
            resend: false,
            continue_prompt:
                "Permissions can be given again in this session. Go on from where you stopped; before you repeat \
                              a step, check whether it was done."
                    .into(),
            ask_servers: true,
            bridge_untried: false,
        }
    }
}

/// `[notifications]`: what is told beside the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifications {
    /// `enabled`: whether there are any.
    pub enabled: bool,
    /// All other keys.
    pub rules: alert::Settings,
}

impl Default for Notifications {
    fn default() -> Self {
        Self { enabled: true, rules: alert::Settings::default() }
    }
}

/// `[log]`: what we say of ourselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// `level`: how much is written to the log.
    pub level: LogLevel,
}

/// What becomes of the permission requests of sessions that we are attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// The user is asked.
    #[default]
    Ask,
    /// Every one is approved, once.
    ApproveAll,
    /// We answer none: another client may.
    Observe,
}

impl Permissions {
    /// Every policy.
    pub(crate) const ALL: [Self; 3] = [Self::Ask, Self::ApproveAll, Self::Observe];

    /// Its word in the config.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::ApproveAll => "approve-all",
            Self::Observe => "observe",
        }
    }
}

/// Reads the config at `path`. A missing file is the usual case and no problem; one that cannot be used (unreadable, not
/// a plain file, over 1 MiB, not UTF-8, no TOML) is one problem, and everything has its default.
///
/// What is no plain file is not even opened: opening a FIFO would wait for its writer.
pub(crate) fn load(path: &Path) -> (Config, Vec<Problem>) {
    match read(path) {
        Ok(Some(text)) => parse(&text, path),
        Ok(None) => (Config::default(), Vec::new()),
        Err(what) => (Config::default(), vec![Problem { path: path.to_owned(), at: None, what, instead: ALL.into() }]),
    }
}

/// The text of the file; `None` where there is none.
fn read(path: &Path) -> Result<Option<String>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    if about.is_dir() {
        return Err("is a folder, not a file".to_owned());
    }
    if !about.is_file() {
        return Err("is not a plain file".to_owned());
    }
    let mut bytes = Vec::new();
    // One byte more than allowed: a file that grew since, or whose length is not known beforehand, is caught all the same.
    File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err("is larger than 1 MiB".to_owned());
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        format!("is not UTF-8 text (line {line})")
    })
}

/// Reads the text of a config. `path` only says in the problems which file it is. The problems come in the order of the
/// file; of very many, the first ones and a count.
pub fn parse(text: &str, path: &Path) -> (Config, Vec<Problem>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut report = Report::new(text, path);
    let config = match DeTable::parse(text) {
        Ok(document) => {
            let mut reader = Reader { config: Config::default(), written: vec![None; SETTINGS.len()], report };
            reader.document(document.get_ref());
            reader.contradictions();
            report = reader.report;
            reader.config
        }
        Err(error) => {
            let what = shown(error.message());
            report.add(error.span().map(|span| span.start), format!("not TOML: {what}"), ALL);
            Config::default()
        }
    };
    (config, report.into_problems())
}

/// A walk through one document.
struct Reader<'t> {
    config: Config,
    /// Where each of [`SETTINGS`] was set, as an offset into the text; `None` where its default holds.
    written: Vec<Option<usize>>,
    report: Report<'t>,
}

impl Reader<'_> {
    fn document(&mut self, document: &DeTable<'_>) {
        for (key, value) in document {
            if key.get_ref() == server::TABLE {
                self.config.servers = server::read(key.span().start, value, &mut self.report);
                continue;
            }
            let Some(table) = table(key.get_ref()) else {
                self.setting("", key, value);
                continue;
            };
            if let DeValue::Table(entries) = value.get_ref() {
                for (key, value) in entries {
                    self.setting(table, key, value);
                }
            } else {
                let kind = value.get_ref().type_str();
                let what = format!("`{table}` must be a table, written `[{table}]`; this is of type {kind}");
                self.report.add(Some(key.span().start), what, "It is ignored");
            }
        }
    }

    fn setting(&mut self, table: &'static str, key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>) {
        let Some(index) = SETTINGS.iter().position(|s| s.table == table && s.key == key.get_ref()) else {
            let name =
                if table.is_empty() { shown(key.get_ref()) } else { format!("{table}.{}", shown(key.get_ref())) };
            let hint = nearest(table, key.get_ref()).map_or(String::new(), |key| format!(", did you mean `{key}`?"));
            self.report.add(Some(key.span().start), format!("unknown key `{name}`{hint}"), "It is ignored");
            return;
        };
        let setting = &SETTINGS[index];
        match setting.field.set(&mut self.config, value) {
            Ok(()) => self.written[index] = Some(key.span().start),
            Err(wrong) => {
                let default = setting.field.show(&Config::default());
                let (name, form) = (setting.name(), setting.field.form());
                let what = format!("`{name}` must be {form}; {}", wrong.what);
                self.report.add(Some(wrong.at), what, format!("The default, {default}, is used"));
            }
        }
    }

    /// A session cannot be `stuck` before it is `quiet`. Where two limits say so, both go back to their defaults; as this
    /// can bring one of them into conflict with a third, it is looked at until all agree, as the defaults do.
    fn contradictions(&mut self) {
        while let Some((lower, upper)) = self.contradiction() {
            let (before, defaults) = (self.config.clone(), Config::default());
            let said = |index: usize, setting: &Setting| {
                let origin = if self.written[index].is_some() { "" } else { ", its default" };
                format!("`{}` ({}{origin})", setting.name(), setting.field.show(&before))
            };
            let (low, high) = (&SETTINGS[lower], &SETTINGS[upper]);
            let (low_default, high_default) = (low.field.show(&defaults), high.field.show(&defaults));
            let what = format!("{} is above {}", said(lower, low), said(upper, high));
            let instead = format!("Both have their defaults, {low_default} and {high_default}");
            self.report.add(self.written[lower].or(self.written[upper]), what, instead);
            for (index, setting) in [(lower, low), (upper, high)] {
                setting.field.reset(&mut self.config);
                self.written[index] = None;
            }
        }
    }

    /// The first two settings of which the one is above the other and must not be.
    fn contradiction(&self) -> Option<(usize, usize)> {
        SETTINGS.iter().enumerate().find_map(|(lower, low)| {
            let upper = low.at_most.iter().find_map(|&key| {
                let upper = SETTINGS.iter().position(|s| s.table == low.table && s.key == key)?;
                (low.field.span(&self.config)? > SETTINGS[upper].field.span(&self.config)?).then_some(upper)
            })?;
            Some((lower, upper))
        })
    }
}
