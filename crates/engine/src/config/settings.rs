//! The list of settings. Reading, the printed config and the hint at the nearest key are all driven by it: a new
//! setting is a field in [`Config`] and an entry here. Only `[[server]]`, which may occur any number of times, has its
//! own list in `server.rs`.
//!
//! Defaults are not repeated here: a setting's default is what its field holds in `Config::default()`.

use super::form::{self, Value, Wrong};
use super::values::Config;
use pilotlight_agents::adapter::{ADAPTERS, Adapter};
use pilotlight_core::limits::Limits;
use std::sync::LazyLock;

/// One key of the config. Its functions are given the key.
#[derive(Clone, Copy)]
pub(super) struct Setting {
    /// Its table; empty at the top level.
    pub(super) table: &'static str,
    pub(super) key: &'static str,
    /// What it does, for the user.
    pub(super) meaning: &'static str,
    /// What its value must be, for the user.
    pub(super) form: &'static str,
    set: fn(&mut Config, &'static str, &Value<'_>) -> Result<(), Wrong>,
    reset: fn(&mut Config, &'static str),
    copy: fn(&mut Config, &Config, &'static str),
    show: fn(&Config, &'static str) -> String,
}

impl Setting {
    /// The key with its table.
    pub(super) fn name(&self) -> String {
        name(self.table, self.key)
    }

    /// The default value as TOML.
    pub(super) fn default(&self) -> String {
        self.show(&Config::default())
    }

    /// Sets the field; leaves it unchanged if the value is wrong.
    pub(super) fn set(&self, config: &mut Config, value: &Value<'_>) -> Result<(), Wrong> {
        (self.set)(config, self.key, value)
    }

    /// Sets the field to its default.
    pub(super) fn reset(&self, config: &mut Config) {
        (self.reset)(config, self.key);
    }

    /// Sets the field to the value that it has in another config.
    pub(super) fn copy(&self, config: &mut Config, from: &Config) {
        (self.copy)(config, from, self.key);
    }

    /// The field's value as TOML.
    pub(super) fn show(&self, config: &Config) -> String {
        (self.show)(config, self.key)
    }
}

/// A key with its table.
pub(super) fn name(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// The table and the key that a list at the top level stands for: `homes = [...]` is short for `[homes] also = [...]`.
pub(super) const SHORT: (&str, &str) = ("homes", "also");

/// The table of this name, if it holds settings.
pub(super) fn table(name: &str) -> Option<&'static str> {
    SETTINGS.iter().map(|setting| setting.table).find(|&table| table == name && !table.is_empty())
}

/// Tables of entries `"key": FORM => field;`, each below a doc comment that is shown to the user.
macro_rules! settings {
    ($([$table:literal] $($(#[doc = $meaning:literal])+ $key:literal: $form:ident => $($field:ident).+;)+)+) => {
        &[$($(Setting {
            table: $table,
            key: $key,
            meaning: concat!($($meaning),+).trim_ascii_start(),
            form: form::$form.text,
            set: |config, _, value| {
                config.$($field).+ = (form::$form.read)(value)?;
                Ok(())
            },
            reset: |config, _| config.$($field).+ = Config::default().$($field).+,
            copy: |config, from, _| config.$($field).+.clone_from(&from.$($field).+),
            show: |config, _| (form::$form.show)(&config.$($field).+),
        }),+),+]
    };
}

/// All settings in the order in which they are printed: grouped by table, the top level first.
pub(super) static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    FIELDS.iter().copied().chain(ADAPTERS.iter().map(|adapter| switch(adapter.name(), meaning(*adapter)))).collect()
});

/// What the setting that switches an agent off means. Agents without a program of their own are those that hooks report.
fn meaning(adapter: &dyn Adapter) -> &'static str {
    match adapter.profile().program {
        "" => "Show the sessions that hooks report, by `pilotlight report`.",
        _ => "Show this agent's sessions. If false, Pilotlight does not read its folders either.",
    }
}

/// The setting that switches an agent off.
const fn switch(agent: &'static str, meaning: &'static str) -> Setting {
    Setting {
        table: "agents",
        key: agent,
        meaning,
        form: form::SWITCH.text,
        set: |config, agent, value| {
            config.agents.set((form::SWITCH.read)(value)?, agent);
            Ok(())
        },
        reset: |config, agent| config.agents.set(true, agent),
        copy: |config, from, agent| config.agents.set(!from.agents.off.contains(&agent), agent),
        show: |config, agent| (form::SWITCH.show)(&!config.agents.off.contains(&agent)),
    }
}

/// The settings that are a field each.
const FIELDS: &[Setting] = settings! {
    ["homes"]
    /// Further homes of agents to watch, besides the usual ones (COPILOT_HOME or ~/.copilot, and so on). Pilotlight
    /// recognises a home's agent by what the folder contains.
    "also": FOLDERS => homes.also;
    /// Also watch homes that your agents' processes name in their environment, and remember them. Linux only.
    "discover": SWITCH => homes.discover;

    ["limits"]
    /// No tool used in this turn: `quiet` after this silence.
    "fresh-quiet": SPAN => limits.fresh_quiet;
    /// No tool used in this turn: `stuck` after this silence.
    "fresh-stuck": SPAN => limits.fresh_stuck;
    /// Tools used in this turn, none running (the model thinks): `quiet` after this silence.
    "thinking-quiet": SPAN => limits.thinking_quiet;
    /// Tools used in this turn, none running: `stuck` after this silence.
    "thinking-stuck": SPAN => limits.thinking_stuck;
    /// The connection to the model is alive, but no text arrives: `stuck` after this silence, not after `fresh-stuck` or
    /// `thinking-stuck`.
    "kept-stuck": SPAN => limits.kept_stuck;
    /// A tool is running: `quiet` after this silence.
    "tool-quiet": SPAN => limits.tool_quiet;
    /// A tool is running, and its process is unknown or uses no CPU: `stuck` after this silence.
    "tool-stuck": SPAN => limits.tool_stuck;
    /// A tool is running, and its process is busy: `stuck`, worded "running long", after this silence.
    "tool-busy-stuck": SPAN => limits.tool_busy_stuck;
    /// After an answer: show `finishing` for at most this long, while the turn may still go on.
    "finishing": SPAN => limits.finishing;
    /// This long after an answer, the turn counts as over, even if nothing says that it has ended.
    "answered": SPAN => limits.answered;
    /// After a resume in a new process, the previous turn counts as over after this silence, unless a tool or request of it
    /// is still open.
    "resumed": SPAN => limits.resumed;
    /// If no process of a session was ever seen, the session counts as ended after this silence.
    "ownerless": SPAN => limits.ownerless;
    /// A crashed session is listed as `crashed` for this long, then as `ended`.
    "crashed": SPAN => limits.crashed;
    /// A sub-agent in the background that is silent for this long no longer keeps its session `working`.
    "background-agent": SPAN => limits.background_agent;

    ["owners"]
    /// File names of further programs that run Copilot's sessions, besides `copilot` itself.
    "names": PROGRAMS => owners.names;

    ["list"]
    /// How long a session that ended stays listed.
    "ended-for": SPAN => list.ended_for;
    /// How many ended sessions are listed at most, the latest first.
    "ended-most": COUNT => list.ended_most;
    /// Show the beginning of a session's last message: in details, in its submenu, in popups, and in JSON with
    /// `--messages`.
    "last-message": SWITCH => list.last_message;

    ["tray"]
    /// Show the number of sessions that need you on the icon.
    "count": SWITCH => tray.count;
    /// Draw the icon in black and white; its shape still shows the state, on a panel of any colour.
    "high-contrast": SWITCH => tray.high_contrast;

    ["actions"]
    /// The command that opens a terminal, as a list of words. {command} stands for what runs in the terminal, and is added
    /// at the end if it is left out. {folder} is the session's folder. Empty: $TERMINAL, the desktop's, or a well-known one.
    "terminal": TERMINAL => actions.terminal;
    /// The Copilot CLI that resumes sessions, in a terminal or in a server that Pilotlight starts. Empty: `copilot`, found on PATH.
    "copilot": OWN_PROGRAM => actions.program;
    /// What to do with permission requests in a server's session that you reconnected: ask you, approve all, or leave
    /// them to other programs.
    "permissions": PERMISSIONS => actions.permissions;
    /// Without asking you, reconnect each session that lost its permissions: when the denied turn is over, at most two
    /// times each.
    "auto-reconnect": SWITCH => actions.auto_reconnect;
    /// After `auto-reconnect`, let the session continue: with its last prompt if no tool ran since, else with
    /// `continue-prompt`.
    "resend": SWITCH => actions.resend;
    /// The prompt that lets a session continue, if a tool ran since its last prompt. Empty: Pilotlight's own.
    "continue-prompt": PROMPT => actions.continue_prompt;
    /// Before a session is called stuck, ask its server what it does. This does not attach to the session.
    "ask-servers": SWITCH => actions.ask_servers;
    /// Stop, answer and approve over the bridge in untested versions of Copilot and Claude Code too.
    "bridge-untried": SWITCH => actions.bridge_untried;
    /// Let scripts, timers and the desktop's shortcuts approve and answer. Careful: an agent's own tools can do so then, too.
    /// If false, Pilotlight asks you.
    "scripts-may-answer": SWITCH => actions.scripts_may_answer;

    ["claude-code"]
    /// How long a sub-agent's request is held for you to answer it here, over the bridge. The terminal shows its dialog only
    /// after that.
    "hold-sub-agents": HOLD => actions.hold_sub_agents;

    ["codex"]
    /// How to use Codex's daemon, one process that runs the sessions of all terminals connected to it. "ask": connect only
    /// when you approve, deny or stop something. "watch": also watch what its sessions ask. "off": never connect. Pilotlight
    /// neither starts the daemon nor keeps it alive.
    "daemon": SERVICE => service;

    ["notifications"]
    /// Show notifications at all.
    "enabled": SWITCH => notifications.enabled;
    /// Notify when a session waits for a permission.
    "needs-permission": SWITCH => notifications.rules.kinds.needs_permission;
    /// Notify when a session waits for an answer.
    "needs-input": SWITCH => notifications.rules.kinds.needs_input;
    /// Notify when a session's tools are denied because nobody can be asked.
    "permission-lost": SWITCH => notifications.rules.kinds.permission_lost;
    /// Notify when a session is stuck.
    "stuck": SWITCH => notifications.rules.kinds.stuck;
    /// Notify when a session's process is gone, with work still open.
    "crashed": SWITCH => notifications.rules.kinds.crashed;
    /// Notify when a session's last turn ends in an error.
    "failed": SWITCH => notifications.rules.kinds.failed;
    /// Notify when a long turn is done.
    "done": SWITCH => notifications.rules.kinds.done;
    /// A turn is long if it took at least this.
    "done-min": SPAN => notifications.rules.done_min;
    /// Popups may make a sound.
    "sound": SWITCH => notifications.rules.sound;
    /// Do not notify twice about the same thing in a session within this.
    "cooldown": SPAN => notifications.rules.cooldown;
    /// Notify once more after this, if nothing has changed and the popup was not dismissed.
    "escalate": WAIT => notifications.rules.escalate_after;
    /// No popups in this part of the day, which may go past midnight.
    "quiet-hours": HOURS => notifications.rules.quiet_hours;
    /// What popups show, and what the commands in `[[on-change]]` are told. "full": everything. "title": the session's name
    /// and status, but not what it wants to run or asks. "none": not even the name.
    "detail": DETAIL => notifications.rules.detail;
    /// Show no popup for a permission request that is answered within this.
    "permission-delay": SPAN => notifications.rules.permission_delay;
    /// Delay a session's popup by this while its terminal has the focus.
    "focus-delay": WAIT => notifications.rules.focus_delay;
    /// For this long after Pilotlight starts, no popups about what began earlier.
    "after-start": SPAN => notifications.rules.start_grace;
    /// No popups for this long after the machine wakes up.
    "after-sleep": SPAN => notifications.rules.wake_grace;

    ["log"]
    /// How much the tray writes to its log. "info" and "debug" include each change of a status.
    "level": LOG_LEVEL => log.level;
};

/// Two keys of `[limits]` of which the first is above the second and must not be: a session cannot be `stuck` before it is
/// `quiet`.
pub(super) fn contradiction(limits: &Limits) -> Option<[&'static str; 2]> {
    let pairs = [
        (["fresh-quiet", "fresh-stuck"], limits.fresh_quiet > limits.fresh_stuck),
        (["thinking-quiet", "thinking-stuck"], limits.thinking_quiet > limits.thinking_stuck),
        (["tool-quiet", "tool-stuck"], limits.tool_quiet > limits.tool_stuck),
        (["tool-quiet", "tool-busy-stuck"], limits.tool_quiet > limits.tool_busy_stuck),
    ];
    pairs.into_iter().find_map(|(keys, is_wrong)| is_wrong.then_some(keys))
}
