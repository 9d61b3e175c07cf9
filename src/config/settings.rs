//! The list of settings: each key with its meaning, its form, its default and the field that it sets. Reading, the printed
//! config and the hint at the nearest key all go along this list; a new setting is a field in [`Config`] and an entry here.
//! Only `[[server]]`, of which there may be any number, has a list of its own, in `server.rs`.
//!
//! A default is not written down a second time: it is what the field holds in `Config::default()`.

use super::Config;
use super::field::Field;
use crate::core::time::Span;

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

/// A key with its table.
pub(super) fn name(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}
