//! What a source of file events reports: what must be read again, and why a folder is not watched.

use pilotlight_core::session::{HomeId, Key};
use std::collections::HashSet;
use std::path::PathBuf;

/// What must be read again.
#[derive(Debug, Default)]
pub struct Hints {
    /// Session folders in which something changed.
    pub folders: HashSet<Key>,
    /// Homes whose list of sessions changed, by index.
    pub homes: HashSet<HomeId>,
    /// Homes whose terminals updated their record of open sessions, by index.
    pub opened: HashSet<HomeId>,
    /// Processes of agents that wrote to their logs, and the home that these are in, by index.
    pub logs: HashSet<(HomeId, u32)>,
    /// Processes that may name another session than before, or say that it does something else, with their homes.
    pub named: HashSet<(HomeId, u32)>,
    /// Whether a folder or link in a home's path changed: the home may have been replaced or removed.
    pub routes: bool,
    /// Whether a program that is watched was opened, as whoever starts it does, or replaced.
    pub started: bool,
    /// Whether the file of sessions seen by the user was written.
    pub seen: bool,
    /// Whether the settings file was written.
    pub config: bool,
    /// Whether a socket that is served was removed or replaced.
    pub sockets: bool,
    /// Whether everything must be read again, because events were lost.
    pub all: bool,
    /// Whether the events were available without waiting.
    pub at_once: bool,
    /// Folders that were moved or removed: whatever has their names now is not watched.
    pub gone: HashSet<PathBuf>,
}

impl Hints {
    /// Whether there is any hint.
    pub(super) fn any(&self) -> bool {
        self.all
            || self.seen
            || self.config
            || self.sockets
            || self.routes
            || self.started
            || !self.folders.is_empty()
            || !self.homes.is_empty()
            || !self.opened.is_empty()
            || !self.logs.is_empty()
            || !self.named.is_empty()
    }
}

/// Why a folder is not watched.
pub(super) enum Refusal {
    /// The system has no more watches to give.
    Full,
    /// The folder is no longer there.
    Gone,
    /// Another error, in the system's words.
    Other(String),
}
