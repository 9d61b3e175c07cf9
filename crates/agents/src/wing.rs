//! The one table of the agents.

use super::claude_code;
use super::codex;
use super::copilot;
use super::profile::Profile;
use super::reported;
use super::runners::RoleOf;
#[cfg(target_os = "linux")]
use super::runners::Runner;
#[cfg(test)]
use super::sundial;
use super::tail::Dialect;
use pilotlight_core::agent::Agent;
use std::path::Path;

/// An agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wing {
    /// GitHub Copilot.
    Copilot,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Any other, by its own hook's reports.
    Reported,
    /// A made-up one.
    #[cfg(test)]
    Sundial,
}

impl Wing {
    /// All of them, the [`FIRST`](Self::FIRST) one first.
    pub const ALL: &[Self] = &[
        Self::Copilot,
        Self::ClaudeCode,
        Self::Codex,
        Self::Reported,
        #[cfg(test)]
        Self::Sundial,
    ];

    /// Whose a home is that tells nothing else.
    pub const FIRST: Self = Self::Copilot;

    /// What is the same about all its homes.
    pub const fn profile(self) -> &'static Profile {
        match self {
            Self::Copilot => &copilot::profile::PROFILE,
            Self::ClaudeCode => &claude_code::profile::PROFILE,
            Self::Codex => &codex::profile::PROFILE,
            Self::Reported => &reported::PROFILE,
            #[cfg(test)]
            Self::Sundial => &sundial::PROFILE,
        }
    }

    /// What it knows of a process by its program and its command line, where its processes show which sessions they run:
    /// `None` for one that runs none.
    pub(super) const fn role(self) -> Option<RoleOf> {
        match self {
            Self::ClaudeCode => Some(claude_code::running::role),
            Self::Codex => Some(codex::running::role),
            Self::Copilot | Self::Reported => None,
            #[cfg(test)]
            Self::Sundial => None,
        }
    }

    /// Completes what a process of it shows: which sessions it claims, and which logs it has open.
    #[cfg(target_os = "linux")]
    pub(super) fn complete(self, runner: &mut Runner) {
        match self {
            Self::ClaudeCode => claude_code::running::complete(runner),
            Self::Codex => codex::running::complete(runner),
            Self::Copilot | Self::Reported => {}
            #[cfg(test)]
            Self::Sundial => {}
        }
    }

    /// How it writes its logs, if they are made of lines.
    pub(crate) const fn dialect(self) -> Option<&'static Dialect> {
        match self {
            Self::Copilot => Some(&copilot::dialect::DIALECT),
            Self::ClaudeCode => Some(&claude_code::dialect::DIALECT),
            Self::Codex => Some(&codex::dialect::DIALECT),
            Self::Reported => None,
            #[cfg(test)]
            Self::Sundial => None,
        }
    }

    /// The agent, as the core knows it.
    pub const fn agent(self) -> Agent {
        Agent::Known(&self.profile().names)
    }

    /// The agent whose home this is, by what is in it. The later ones are asked first: what tells of an earlier one may
    /// be in a later one's home, too, such as a folder `sessions`.
    pub(crate) fn of_home(home: &Path) -> Self {
        let told = Self::ALL.iter().skip(1).rfind(|wing| (wing.profile().is_home)(home));
        told.copied().unwrap_or(Self::FIRST)
    }
}

/// The agent of this name: one with a wing, or one that reports name so. `None` if nothing of the name is visible.
pub fn agent_named(name: &str) -> Option<Agent> {
    let wing = Wing::ALL.iter().find(|wing| !wing.profile().home.is_empty() && wing.profile().names.name == name);
    wing.map(|wing| wing.agent()).or_else(|| Agent::reported(name))
}

/// Whose the log is that begins so, and how it is written. `None` if that does not tell. The first agent is asked first.
pub fn log_of(start: &[u8]) -> Option<(Wing, &'static Dialect)> {
    let mut dialects = Wing::ALL.iter().filter_map(|wing| Some((*wing, wing.dialect()?)));
    dialects.find(|(_, dialect)| (dialect.is_start)(start))
}

/// How the first agent writes its logs.
pub const FIRST_DIALECT: &Dialect = match Wing::FIRST.dialect() {
    Some(dialect) => dialect,
    None => panic!("a log that tells nothing is read as one of the first agent"), // seen when this is compiled
};
