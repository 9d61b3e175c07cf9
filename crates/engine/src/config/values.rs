//! The settings as a value: a field for each key, and a struct for each table.

use std::path::{Path, PathBuf};

use pilotlight_agents::channel::endpoint::ServerSetting;
use pilotlight_core::alert::{self, Trigger};
use pilotlight_core::limits::Limits;
use pilotlight_core::time::Span;
use pilotlight_system::log::LogLevel;
use pilotlight_system::paths::{expand, program, user_home};

/// All settings. `settings.rs` explains each field at its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub homes: Homes,
    pub agents: Agents,
    pub limits: Limits,
    pub owners: Owners,
    pub list: List,
    pub actions: Actions,
    pub tray: Tray,
    pub notifications: Notifications,
    pub log: Log,
    /// Which use is made of an agent's service.
    pub service: ServiceUse,
    /// All on loopback, no two with the same address.
    pub servers: Vec<ServerSetting>,
    pub on_change: Vec<OnChange>,
    /// No two with the same name.
    pub hosts: Vec<HostSetting>,
}

impl Config {
    /// What holds where a setting cannot be read, and nothing says what it was before: the defaults, but for those that a
    /// user may have changed in order to show or do less.
    pub(crate) fn careful() -> Self {
        let mut config = Self::default();
        config.notifications.rules.detail = alert::Detail::None;
        config.actions.ask_servers = false;
        config.homes.discover = false;
        config.list.last_message = false;
        config.service = ServiceUse::Off;
        config
    }
}

/// `[[host]]`: another machine, whose sessions are shown here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSetting {
    /// What it is called here.
    pub name: String,
    pub reach: Reach,
}

/// How a host is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By the user's `ssh`.
    Ssh {
        /// What `ssh` connects to.
        to: String,
        /// Where Pilotlight is there.
        program: String,
        /// Whether it is asked how the last messages of its sessions begin.
        last_message: bool,
    },
    /// By these words, which run `pilotlight serve --stdio` there.
    Command(Vec<String>),
}

/// `[[on-change]]`: a command that is run when the status of a session changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnChange {
    /// What it is run for; at least one.
    pub triggers: Vec<Trigger>,
    /// The program, as written, and its arguments: [`pilotlight_system::paths::expand`] expands a leading `~`.
    pub run: Vec<String>,
}

impl OnChange {
    /// The program's name, for logs: the rest of the command may hold secrets.
    pub fn program_name(&self) -> String {
        let name = self.run.first().map(Path::new).and_then(Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The program's file, if there is one.
    pub fn program(&self) -> Option<PathBuf> {
        let written = Path::new(self.run.first()?);
        program(&expand(written, user_home().as_deref())?, std::env::var_os("PATH").as_deref())
    }
}

/// `[homes]`: which homes are watched, besides the usual ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes {
    /// As written: [`pilotlight_system::paths::homes`] expands a leading `~`.
    pub also: Vec<PathBuf>,
    /// Whether those that processes of agents use are watched, too.
    pub discover: bool,
}

impl Default for Homes {
    fn default() -> Self {
        Self { also: Vec::new(), discover: true }
    }
}

/// `[agents]`: whose sessions are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    /// The names of those that are switched off, in order.
    pub off: Vec<&'static str>,
}

impl Agents {
    /// Switches an agent on or off.
    pub(crate) fn set(&mut self, on: bool, agent: &'static str) {
        self.off.retain(|off| *off != agent);
        if !on {
            self.off.push(agent);
            self.off.sort_unstable();
        }
    }
}

/// `[owners]`: which processes count as Copilot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    pub names: Vec<String>,
}

/// `[list]`: which ended sessions are listed, and what is told of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    pub ended_for: Span,
    pub ended_most: usize,
    /// Whether the beginning of a session's last message is shown.
    pub last_message: bool,
}

impl Default for List {
    fn default() -> Self {
        Self { ended_for: Span::hours(24), ended_most: 10, last_message: true }
    }
}

/// `[tray]`: the look of the icon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tray {
    pub count: bool,
    pub high_contrast: bool,
}

/// `[actions]`: what clicks do, and what is done without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actions {
    /// The command line of the terminal, with `{command}` and `{folder}` as placeholders. Empty: a terminal is searched
    /// for.
    pub terminal: Vec<String>,
    /// As written: [`pilotlight_system::paths::expand`] expands a leading `~`. `None`: the one on `PATH`.
    pub program: Option<PathBuf>,
    pub permissions: Permissions,
    pub auto_reconnect: bool,
    pub resend: bool,
    /// `None`: a prompt of ours.
    pub continue_prompt: Option<String>,
    pub ask_servers: bool,
    pub bridge_untried: bool,
    pub hold_sub_agents: Span,
    pub scripts_may_answer: bool,
}

impl Default for Actions {
    fn default() -> Self {
        Self {
            terminal: Vec::new(),
            program: None,
            permissions: Permissions::default(),
            auto_reconnect: false,
            resend: false,
            continue_prompt: None,
            ask_servers: true,
            bridge_untried: false,
            hold_sub_agents: Span::ZERO,
            scripts_may_answer: false,
        }
    }
}

/// `[notifications]`: popups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifications {
    pub enabled: bool,
    pub rules: alert::Settings,
}

impl Default for Notifications {
    fn default() -> Self {
        Self { enabled: true, rules: alert::Settings::default() }
    }
}

/// `[log]`: our own log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    pub level: LogLevel,
}

/// What is done with permission requests of sessions that we are attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// The user is asked.
    #[default]
    Ask,
    /// Every one is approved, once.
    ApproveAll,
    /// We answer none; other clients may.
    Observe,
}

/// Which use is made of the service of an agent that runs its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceUse {
    /// It is asked when an order needs that.
    #[default]
    Ask,
    /// It is listened to all the time.
    Watch,
    /// None.
    Off,
}

impl ServiceUse {
    pub(crate) const ALL: [Self; 3] = [Self::Ask, Self::Watch, Self::Off];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Watch => "watch",
            Self::Off => "off",
        }
    }
}

impl Permissions {
    pub(crate) const ALL: [Self; 3] = [Self::Ask, Self::ApproveAll, Self::Observe];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::ApproveAll => "approve-all",
            Self::Observe => "observe",
        }
    }
}
