//! The one table of the agents.

use super::tail::Dialect;
use crate::system::watcher::WatchPlan;
use std::path::Path;

/// An agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wing {
    /// GitHub Copilot.
    Copilot,
}

impl Wing {
    /// All of them.
    pub(crate) const ALL: &[Self] = &[Self::Copilot];

    /// The agent whose home this is, by what is in it.
    pub(crate) fn of_home(_home: &Path) -> Self {
        Self::Copilot
    }

    /// The agent whose log begins so.
    pub(crate) const fn of_log(_start: &[u8]) -> Self {
        Self::Copilot
    }

    /// The folder of the user's home that is its home, unless another is named.
    pub(crate) const fn home_name(self) -> &'static str {
        match self {
            Self::Copilot => super::copilot::HOME_NAME,
        }
    }

    /// The variable that names another home.
    pub(crate) const fn home_variable(self) -> &'static str {
        match self {
            Self::Copilot => super::copilot::resume::HOME,
        }
    }

    /// The folder of a home that holds its sessions.
    pub(crate) const fn sessions_folder(self) -> &'static str {
        match self {
            Self::Copilot => super::copilot::store::SESSIONS,
        }
    }

    /// How it writes its logs.
    pub(crate) const fn dialect(self) -> &'static Dialect {
        match self {
            Self::Copilot => &super::copilot::dialect::DIALECT,
        }
    }

    /// What there is to watch in a home.
    pub(crate) const fn watch_plan(self) -> &'static WatchPlan {
        match self {
            Self::Copilot => &super::copilot::watch_plan::WATCH_PLAN,
        }
    }
}
