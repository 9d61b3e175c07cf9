//! The one table of the agents.

use crate::system::watcher::WatchPlan;
use std::path::Path;

/// An agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wing {
    /// GitHub Copilot.
    Copilot,
}

impl Wing {
    /// The agent whose home this is, by what is in it.
    pub(crate) fn of_home(_home: &Path) -> Self {
        Self::Copilot
    }

    /// The folder of a home that holds its sessions.
    pub(crate) const fn sessions_folder(self) -> &'static str {
        match self {
            Self::Copilot => super::copilot::store::SESSIONS,
        }
    }

    /// What there is to watch in a home.
    pub(crate) const fn watch_plan(self) -> &'static WatchPlan {
        match self {
            Self::Copilot => &super::copilot::watch_plan::WATCH_PLAN,
        }
    }
}
