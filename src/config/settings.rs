//! The list of settings: each key with its meaning, its form, its default and the field that it sets. Reading, the printed
//! config and the hint at the nearest key all go along this list; a new setting is a field in [`Config`] and an entry here.
//! Only `[[server]]`, of which there may be any number, has a list of its own, in `server.rs`.
//!
//! A default is not written down a second time: it is what the field holds in `Config::default()`.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::DeValue;

use super::value::{
    DETAILS, NEVER, Wrong, as_count, as_detail, as_hours, as_list, as_log_level, as_own_program, as_path,
    as_permissions, as_program, as_prompt, as_span, as_switch, as_terminal, as_wait, hours,
};
use super::{Config, Permissions, server, span};
use crate::core::alert::Detail;
use crate::core::time::Span;
use crate::system::log::LogLevel;

/// One key of the config.
pub(super) struct Setting {
    /// The table that it is in; empty at the top level.
    pub(super) table: &'static str,
    pub(super) key: &'static str,
    /// For the user: what it does.
    pub(super) meaning: &'static str,
    /// Keys of the same table that this one must not be above.
    pub(super) at_most: &'static [&'static str],
    pub(super) field: Field,
}

/// The field of the config that a setting sets, which is also the form that its value has. To read one through its
/// `&mut`, a copy of the config is made: settings are few and seldom read, and one accessor a field cannot disagree with
/// itself.
pub(super) enum Field {
    Span(fn(&mut Config) -> &mut Span),
    Count(fn(&mut Config) -> &mut usize),
    Folders(fn(&mut Config) -> &mut Vec<PathBuf>),
    Programs(fn(&mut Config) -> &mut Vec<String>),
    Terminal(fn(&mut Config) -> &mut Vec<String>),
    OwnProgram(fn(&mut Config) -> &mut Option<PathBuf>),
    /// What a session is told.
    Prompt(fn(&mut Config) -> &mut String),
    Permissions(fn(&mut Config) -> &mut Permissions),
    Switch(fn(&mut Config) -> &mut bool),
    /// A span after which something is done, if ever.
    Wait(fn(&mut Config) -> &mut Option<Span>),
    /// A part of the day.
    Hours(fn(&mut Config) -> &mut Option<(u16, u16)>),
    Detail(fn(&mut Config) -> &mut Detail),
    LogLevel(fn(&mut Config) -> &mut LogLevel),
}

const fn limit(key: &'static str, meaning: &'static str, field: fn(&mut Config) -> &mut Span) -> Setting {
    Setting { table: "limits", key, meaning, at_most: &[], field: Field::Span(field) }
}

const fn action(key: &'static str, meaning: &'static str, field: Field) -> Setting {
    Setting { table: "actions", key, meaning, at_most: &[], field }
}

const fn notice(key: &'static str, meaning: &'static str, field: Field) -> Setting {
    Setting { table: "notifications", key, meaning, at_most: &[], field }
}

const fn at_most(setting: Setting, at_most: &'static [&'static str]) -> Setting {
    Setting { at_most, ..setting }
}

/// All settings, a table's together, the top level first: the order in which they are printed.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        table: "",
        key: "homes",
        meaning: "Further homes of Copilot to watch, beside COPILOT_HOME or ~/.copilot.",
        at_most: &[],
        field: Field::Folders(|c| &mut c.homes),
    },
    at_most(
        limit("fresh-quiet", "No tool used in this turn: `quiet` after this silence.", |c| &mut c.limits.fresh_quiet),
        &["fresh-stuck"],
    ),
    limit("fresh-stuck", "No tool used in this turn: `stuck` after this silence.", |c| &mut c.limits.fresh_stuck),
    at_most(
        limit(
            "thinking-quiet",
            "Tools used in this turn, none open (the model thinks): `quiet` after this silence.",
            |c| &mut c.limits.thinking_quiet,
        ),
        &["thinking-stuck"],
    ),
    limit("thinking-stuck", "Tools used in this turn, none open: `stuck` after this silence.", |c| {
        &mut c.limits.thinking_stuck
    }),
    at_most(
        limit("tool-quiet", "A tool is open: `quiet` after this silence.", |c| &mut c.limits.tool_quiet),
        &["tool-stuck", "tool-busy-stuck"],
    ),
    limit("tool-stuck", "A tool is open, its process unknown or using no CPU: `stuck` after this silence.", |c| {
        &mut c.limits.tool_stuck
    }),
    limit("tool-busy-stuck", "A tool is open and its process is busy: `stuck` (\"running long\") after this.", |c| {
        &mut c.limits.tool_busy_stuck
    }),
    limit("finishing", "How long the end of a turn that may yet go on stays `finishing`.", |c| &mut c.limits.finishing),
    limit("answered", "How long an answer may wait for the end of its turn before the turn counts as over.", |c| {
        &mut c.limits.answered
    }),
    limit(
        "resumed",
        "A turn that was resumed with pending work, or is older than its owner, and has nothing open: over after this.",
        |c| &mut c.limits.resumed,
    ),
    limit("ownerless", "A session that never had an owner counts as ended after this silence.", |c| {
        &mut c.limits.ownerless
    }),
    limit("crashed", "A crashed session is listed as `crashed` for this long, then as `ended`.", |c| {
        &mut c.limits.crashed
    }),
    limit("background-agent", "A sub-agent in the background that is silent for this long no longer counts.", |c| {
        &mut c.limits.background_agent
    }),
    Setting {
        table: "owners",
        key: "names",
        meaning: "File names of further programs that own sessions, beside `copilot` itself.",
        at_most: &[],
        field: Field::Programs(|c| &mut c.owners.names),
    },
    Setting {
        table: "list",
        key: "ended-for",
        meaning: "How long a session that ended stays listed.",
        at_most: &[],
        field: Field::Span(|c| &mut c.list.ended_for),
    },
    Setting {
        table: "list",
        key: "ended-most",
        meaning: "How many ended sessions are listed at most, the latest first.",
        at_most: &[],
        field: Field::Count(|c| &mut c.list.ended_most),
    },
    Setting {
        table: "tray",
        key: "count",
        meaning: "Show the number of sessions that need you on the icon.",
        at_most: &[],
        field: Field::Switch(|c| &mut c.tray.count),
    },
    Setting {
        table: "tray",
        key: "high-contrast",
        meaning: "Draw the icon in black and white; its shape still tells how things are, on a panel of any colour.",
        at_most: &[],
        field: Field::Switch(|c| &mut c.tray.high_contrast),
    },
    action(
        "terminal",
        "The terminal that sessions are opened in, word by word. Where no word is {command}, the command comes last; {folder} is \
         the session's folder. Empty: $TERMINAL, the desktop's, or a well-known one.",
        Field::Terminal(|c| &mut c.actions.terminal),
    ),
    action(
        "copilot",
        "The Copilot CLI that resumes sessions, in a terminal or a server of our own. Empty: `copilot`, found on PATH.",
        Field::OwnProgram(|c| &mut c.actions.copilot),
    ),
    action(
        "permissions",
        "What to do with permission requests in sessions that Pilotlight is attached to: ask you, approve all, or leave them to other clients.",
        Field::Permissions(|c| &mut c.actions.permissions),
    ),
    action(
        "auto-reconnect",
        "Reconnect unasked to sessions that lost their permissions, once the denied turn is over, at most twice each.",
        Field::Switch(|c| &mut c.actions.auto_reconnect),
    ),
    action(
        "resend",
        "After reconnecting unasked, have the session go on: with its last prompt if no tool ran since, else with `continue-prompt`.",
        Field::Switch(|c| &mut c.actions.resend),
    ),
    action(
        "continue-prompt",
        "The prompt that tells a session to go on where its last one must not be sent again, because a tool ran since.",
        Field::Prompt(|c| &mut c.actions.continue_prompt),
    ),
    action(
        "ask-servers",
        "Ask a session's server what it does before the session is called stuck, over a connection that attaches to nothing.",
        Field::Switch(|c| &mut c.actions.ask_servers),
    ),
    action(
        "bridge-untried",
        "Stop, answer and approve over the bridge also in versions of Copilot that it was not tried with.",
        Field::Switch(|c| &mut c.actions.bridge_untried),
    ),
    notice("enabled", "Show notifications at all.", Field::Switch(|c| &mut c.notifications.enabled)),
    notice(
        "needs-permission",
        "Notify when a session waits for a permission.",
        Field::Switch(|c| &mut c.notifications.rules.kinds.needs_permission),
    ),
    notice(
        "needs-input",
        "Notify when a session waits for an answer.",
        Field::Switch(|c| &mut c.notifications.rules.kinds.needs_input),
    ),
    notice(
        "permission-lost",
        "Notify when a session's tools are denied because nobody can be asked.",
        Field::Switch(|c| &mut c.notifications.rules.kinds.permission_lost),
    ),
    notice("stuck", "Notify when a session is stuck.", Field::Switch(|c| &mut c.notifications.rules.kinds.stuck)),
    notice(
        "crashed",
        "Notify when a session's owner is gone, with work still open.",
        Field::Switch(|c| &mut c.notifications.rules.kinds.crashed),
    ),
    notice(
        "failed",
        "Notify when a session's last turn ends in an error.",
        Field::Switch(|c| &mut c.notifications.rules.kinds.failed),
    ),
    notice("done", "Notify when a long turn is done.", Field::Switch(|c| &mut c.notifications.rules.kinds.done)),
    notice(
        "done-min",
        "A turn is long if it took at least this.",
        Field::Span(|c| &mut c.notifications.rules.done_min),
    ),
    notice("sound", "Popups may make a sound.", Field::Switch(|c| &mut c.notifications.rules.sound)),
    notice(
        "cooldown",
        "Do not notify twice about the same thing in a session within this.",
        Field::Span(|c| &mut c.notifications.rules.cooldown),
    ),
    notice(
        "escalate",
        "Notify once more about what still holds after this and was not dismissed.",
        Field::Wait(|c| &mut c.notifications.rules.escalate_after),
    ),
    notice(
        "quiet-hours",
        "No popups in this part of the day, which may go past midnight.",
        Field::Hours(|c| &mut c.notifications.rules.quiet_hours),
    ),
    notice(
        "detail",
        "What a popup shows: everything, only the session's name and what it does, or neither.",
        Field::Detail(|c| &mut c.notifications.rules.detail),
    ),
    notice(
        "permission-delay",
        "Show no popup for a permission that is given within this.",
        Field::Span(|c| &mut c.notifications.rules.permission_delay),
    ),
    notice(
        "after-start",
        "No popups for this long after the start.",
        Field::Span(|c| &mut c.notifications.rules.start_grace),
    ),
    notice(
        "after-sleep",
        "No popups for this long after the machine wakes up.",
        Field::Span(|c| &mut c.notifications.rules.wake_grace),
    ),
    Setting {
        table: "log",
        key: "level",
        meaning: "How much the tray writes to its log. `pilotlight explain ID --at` needs \"info\" or more.",
        at_most: &[],
        field: Field::LogLevel(|c| &mut c.log.level),
    },
];

/// The table of this name, if settings are in one.
pub(super) fn table(name: &str) -> Option<&'static str> {
    SETTINGS.iter().map(|setting| setting.table).find(|&table| table == name && !table.is_empty())
}

impl Setting {
    /// The key with its table.
    pub(super) fn name(&self) -> String {
        name(self.table, self.key)
    }
}

fn name(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

impl Field {
    /// What a value of this form is, for the user.
    pub(super) fn form(&self) -> &'static str {
        match self {
            Self::Span(_) => "a span of time, such as \"90s\" or \"1h30m\", or an integer of seconds",
            Self::Count(_) => "an integer, 0 or more",
            Self::Folders(_) => "a list of folders, each absolute or beginning with ~/",
            Self::Programs(_) => "a list of file names of programs",
            Self::Terminal(_) => {
                "a list of words, the first of which is a program on PATH, absolute or beginning with ~/"
            }
            Self::Prompt(_) => "a text that is not blank",
            Self::OwnProgram(_) => "the path of a program, absolute or beginning with ~/, or \"\"",
            Self::Permissions(_) => "\"ask\", \"approve-all\" or \"observe\"",
            Self::Switch(_) => "true or false",
            Self::Wait(_) => "a span of time, such as \"90s\" or \"1h30m\", or \"0s\" for never",
            Self::Hours(_) => "two times of the day, such as \"22:00-07:00\", or \"\"",
            Self::Detail(_) => "\"full\", \"title\" or \"none\"",
            Self::LogLevel(_) => "\"error\", \"warn\", \"info\" or \"debug\"",
        }
    }

    /// Sets the field from the value in a document; leaves it as it was if the value is wrong.
    pub(super) fn set(&self, config: &mut Config, value: &Spanned<DeValue<'_>>) -> Result<(), Wrong> {
        match self {
            Self::Span(field) => *field(config) = as_span(value)?,
            Self::Count(field) => *field(config) = as_count(value)?,
            Self::Folders(field) => *field(config) = as_list(value, as_path)?,
            Self::Programs(field) => *field(config) = as_list(value, as_program)?,
            Self::Terminal(field) => *field(config) = as_terminal(value)?,
            Self::OwnProgram(field) => *field(config) = as_own_program(value)?,
            Self::Prompt(field) => *field(config) = as_prompt(value)?,
            Self::Permissions(field) => *field(config) = as_permissions(value)?,
            Self::Switch(field) => *field(config) = as_switch(value)?,
            Self::Wait(field) => *field(config) = as_wait(value)?,
            Self::Hours(field) => *field(config) = as_hours(value)?,
            Self::Detail(field) => *field(config) = as_detail(value)?,
            Self::LogLevel(field) => *field(config) = as_log_level(value)?,
        }
        Ok(())
    }

    /// Sets the field back to its default.
    pub(super) fn reset(&self, config: &mut Config) {
        let mut default = Config::default();
        match self {
            Self::Span(field) => *field(config) = *field(&mut default),
            Self::Count(field) => *field(config) = *field(&mut default),
            Self::Folders(field) => field(config).clone_from(field(&mut default)),
            Self::Programs(field) | Self::Terminal(field) => field(config).clone_from(field(&mut default)),
            Self::OwnProgram(field) => field(config).clone_from(field(&mut default)),
            Self::Prompt(field) => field(config).clone_from(field(&mut default)),
            Self::Permissions(field) => *field(config) = *field(&mut default),
            Self::Switch(field) => *field(config) = *field(&mut default),
            Self::Wait(field) => *field(config) = *field(&mut default),
            Self::Hours(field) => *field(config) = *field(&mut default),
            Self::Detail(field) => *field(config) = *field(&mut default),
            Self::LogLevel(field) => *field(config) = *field(&mut default),
        }
    }

    /// The field's value as TOML writes it.
    pub(super) fn show(&self, config: &Config) -> String {
        let mut config = config.clone();
        let list = |texts: Vec<String>| toml::Value::from(texts).to_string();
        match self {
            Self::Span(field) => format!("\"{}\"", span::text(*field(&mut config))),
            Self::Count(field) => field(&mut config).to_string(),
            Self::Folders(field) => list(field(&mut config).iter().map(|p| p.to_string_lossy().into_owned()).collect()),
            Self::Programs(field) | Self::Terminal(field) => list(std::mem::take(field(&mut config))),
            Self::Prompt(field) => toml::Value::from(field(&mut config).clone()).to_string(),
            Self::OwnProgram(field) => {
                let path = field(&mut config).take().unwrap_or_default();
                toml::Value::from(&*path.to_string_lossy()).to_string()
            }
            Self::Permissions(field) => format!("\"{}\"", field(&mut config).word()),
            Self::Switch(field) => field(&mut config).to_string(),
            Self::Wait(field) => format!("\"{}\"", field(&mut config).map_or(NEVER.into(), span::text)),
            Self::Hours(field) => format!("\"{}\"", hours(*field(&mut config))),
            Self::LogLevel(field) => format!("\"{}\"", field(&mut config).word()),
            Self::Detail(field) => {
                let detail = *field(&mut config);
                format!("\"{}\"", DETAILS.iter().find(|(one, _)| *one == detail).map_or("", |(_, word)| word))
            }
        }
    }

    /// The field's value, if it is a span of time.
    pub(super) fn span(&self, config: &Config) -> Option<Span> {
        match self {
            Self::Span(field) => Some(*field(&mut config.clone())),
            _ => None,
        }
    }
}

/// The known key, or table, that `key` in `table` most likely stands for; `None` where none is like it. A key of another
/// table is named with its table.
pub(super) fn nearest(table: &str, key: &str) -> Option<String> {
    /// Below this, likeness is chance. 1 is the same text.
    const LIKE: f64 = 0.8;
    /// What a key of another table must be more alike by than one of the same.
    const ELSEWHERE: f64 = 0.05;
    // Slips of style are none of substance; and the comparison is quadratic, so a key of hostile length is cut.
    let key = key.chars().take(60).collect::<String>().to_lowercase().replace(['_', ' '], "-");
    let servers = server::KEYS.iter().map(|&(key, _)| (server::TABLE, key));
    let keys =
        SETTINGS.iter().map(|setting| (setting.table, setting.key)).chain(servers).map(|(its_table, its_key)| {
            let name = name(its_table, its_key);
            let alike = strsim::jaro_winkler(its_key, &key).max(strsim::jaro_winkler(&name, &key));
            if its_table == table { (alike, its_key.to_owned()) } else { (alike - ELSEWHERE, name) }
        });
    let headed =
        SETTINGS.iter().filter(|setting| !setting.table.is_empty()).map(|s| (s.table, format!("[{}]", s.table)));
    let tables = headed.chain([(server::TABLE, server::HEAD.to_owned())]).map(|(its_name, shown)| {
        let far = if table.is_empty() { 0.0 } else { ELSEWHERE };
        (strsim::jaro_winkler(its_name, &key) - far, shown)
    });
    let (alike, name) = keys.chain(tables).max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    (alike > LIKE).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_the_one_that_was_meant() {
        for (table, key, meant) in [
            ("limits", "fresh-qiet", Some("fresh-quiet")),
            ("limits", "fresh_quiet", Some("fresh-quiet")),
            ("limits", "Tool-Busy-Stuck", Some("tool-busy-stuck")),
            ("limits", "thinkin-stuck", Some("thinking-stuck")),
            ("limits", "background-agents", Some("background-agent")),
            ("limits", "crash", Some("crashed")),
            ("list", "ended-max", Some("ended-most")),
            ("owners", "name", Some("names")),
            ("", "home", Some("homes")),
            ("", "limit", Some("[limits]")),
            ("", "owner", Some("[owners]")),
            ("", "fresh-quiet", Some("limits.fresh-quiet")),
            ("", "limits.fresh-quiet", Some("limits.fresh-quiet")),
            ("list", "fresh-stuck", Some("limits.fresh-stuck")),
            ("limits", "homes", Some("homes")),
            ("limits", "colour", None),
            ("", "terminal", Some("actions.terminal")),
            ("", "servers", Some("[[server]]")),
            ("server", "adress", Some("address")),
            ("server", "token_file", Some("token-file")),
            ("actions", "autoreconnect", Some("auto-reconnect")),
            ("actions", "permission", Some("permissions")),
            ("", "x", None),
            ("", "", None),
        ] {
            assert_eq!(nearest(table, key).as_deref(), meant, "{table}.{key}");
        }
    }
}
