//! What is written into our log of the sessions: each change of a status with its reason, and nothing that a session wrote.

use super::{Engine, Key, Round};
use crate::core::redact::redacted;
use crate::core::text::is_uuid;
use crate::system::log::story::{NONE, STATUS};

/// Whether changes of status are logged at all.
pub(super) fn logs() -> bool {
    tracing::enabled!(tracing::Level::INFO)
}

impl Engine {
    /// Notes the statuses that changed.
    pub(super) fn log_changes(&mut self, round: &Round) {
        if !logs() {
            return;
        }
        for key in &round.removed {
            self.log_end(key);
        }
        for key in &round.changed {
            if self.fleet.get(key).is_some_and(|entry| self.logged.get(key) != Some(&entry.verdict.status)) {
                self.log_status(key);
            }
        }
    }

    /// Notes every status: of what was so before nothing was logged, nobody can tell whether it stayed so.
    pub(super) fn log_anew(&mut self) {
        let gone: Vec<_> = self.logged.keys().filter(|key| self.fleet.get(key).is_none()).cloned().collect();
        for key in gone {
            self.log_end(&key);
        }
        for key in self.fleet.keys().collect::<Vec<_>>() {
            self.log_status(&key);
        }
    }

    fn log_end(&mut self, key: &Key) {
        if let Some(was) = self.logged.remove(key).filter(|_| is_uuid(&key.1)) {
            tracing::info!(tag = STATUS, session = %key.1, was = was.name(), is = NONE, "its folder is gone");
        }
    }

    fn log_status(&mut self, key: &Key) {
        let Some(entry) = self.fleet.get(key) else { return };
        let is = entry.verdict.status;
        let was = self.logged.insert(key.clone(), is);
        // What has no form of an id was named by somebody else than Copilot.
        if !is_uuid(&key.1) {
            return;
        }
        // The same judgement, on facts without a word of the session's.
        let (row, _) = redacted(entry.session()).row(self.clock.now(), &self.config.limits);
        let was = was.map_or(NONE, |was| was.name());
        tracing::info!(tag = STATUS, session = %key.1, was, is = is.name(), "{}", row.because);
    }
}
