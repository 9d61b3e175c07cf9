//! Processes that have a session open without a lock: when they are looked for, and what follows from what is found.

use super::{Engine, Key};
use crate::core::action::Action;
use crate::core::fleet::Session;
use crate::watch::opened::noted;
use std::path::Path;

impl Engine {
    /// Looks at all processes, and has it looked anew into the sessions that other processes have open now than did before.
    pub(super) fn look_at_processes(&mut self) {
        let followed = self.homes.iter().enumerate().filter(|(home, _)| !self.retired.contains(home));
        let roots: Vec<_> = followed.map(|(_, root)| root.clone()).collect();
        let found = self.openers.look(&roots, &self.config.owners.names, self.clock.now().wall);
        let before = std::mem::replace(&mut self.openings, found);
        let differing = self.openings.differing(&before);
        let keys: Vec<Key> = differing
            .into_iter()
            .filter_map(|(root, id)| Some((self.homes.iter().position(|home| home == root)?, id.into())))
            .collect();
        for key in keys {
            if self.fleet.folder(&key).is_some() || self.history.contains(&key) {
                self.agenda.urgent(key);
            }
        }
    }

    /// The terminals of a home noted what they have open: unless that is as it was, a process may have opened or closed a
    /// session.
    pub(super) fn noted_anew(&mut self, home: usize) {
        let Some(folder) = self.homes.get(home).and_then(|root| root.parent()) else { return };
        let noted = noted(folder);
        if self.noted.get(&home) != Some(&noted) {
            self.noted.insert(home, noted);
            self.look_at_processes();
        }
    }

    /// Why a session is not resumed now: a Copilot that has just started may be about to open it, and does not say yet which
    /// it will.
    pub(super) fn is_being_opened(&self, key: &Key, action: Action, session: &Session) -> Option<String> {
        let makes_an_owner = matches!(action, Action::Resume | Action::Reconnect | Action::Resend);
        if !makes_an_owner || session.runner().live().is_some() {
            return None;
        }
        let root: &Path = self.homes.get(key.0)?;
        let opener = self.openings.opener(root, &key.1)?;
        Some(format!(
            "process {} has just started and may be about to open it, which shows in a few seconds: try again then",
            opener.pid
        ))
    }
}
