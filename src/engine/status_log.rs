//! What is written into our log of the sessions: each change of a status with its reason, and nothing that a session wrote.

use super::{Engine, Fleet, Key, Round};
use crate::core::limits::Limits;
use crate::core::redact::redacted;
use crate::core::text::is_uuid;
use crate::core::time::Moment;
use crate::core::verdict::Status;
use crate::system::log::story::{NONE, STATUS};
use std::collections::HashMap;

/// Whether changes of status are logged at all.
pub(super) fn logs() -> bool {
    tracing::enabled!(tracing::Level::INFO)
}

/// The statuses that stand in our log.
#[derive(Default)]
pub(super) struct StatusLog(HashMap<Key, Status>);

impl StatusLog {
    /// Notes the statuses that changed.
    fn note(&mut self, fleet: &Fleet, round: &Round, now: Moment, limits: &Limits) {
        for key in &round.removed {
            self.end(key);
        }
        for key in &round.changed {
            if fleet.get(key).is_some_and(|entry| self.0.get(key) != Some(&entry.verdict.status)) {
                self.status(key, fleet, now, limits);
            }
        }
    }

    /// Notes every status: of what was so before nothing was logged, nobody can tell whether it stayed so.
    fn note_all(&mut self, fleet: &Fleet, now: Moment, limits: &Limits) {
        let gone: Vec<_> = self.0.keys().filter(|key| fleet.get(key).is_none()).cloned().collect();
        for key in gone {
            self.end(&key);
        }
        for key in fleet.keys() {
            self.status(&key, fleet, now, limits);
        }
    }

    fn end(&mut self, key: &Key) {
        if let Some(was) = self.0.remove(key).filter(|_| is_uuid(&key.1)) {
            tracing::info!(tag = STATUS, session = %key.1, was = was.name(), is = NONE, "its folder is gone");
        }
    }

    fn status(&mut self, key: &Key, fleet: &Fleet, now: Moment, limits: &Limits) {
        let Some(entry) = fleet.get(key) else { return };
        let is = entry.verdict.status;
        let was = self.0.insert(key.clone(), is);
        // What has no form of an id was named by somebody else than Copilot.
        if !is_uuid(&key.1) {
            return;
        }
        // The same judgement, on facts without a word of the session's.
        let (row, _) = redacted(entry.session()).row(now, limits);
        let was = was.map_or(NONE, |was| was.name());
        tracing::info!(tag = STATUS, session = %key.1, was, is = is.name(), "{}", row.because);
    }
}

impl Engine {
    /// Notes the statuses that changed.
    pub(super) fn log_changes(&mut self, round: &Round) {
        if logs() {
            self.status_log.note(&self.fleet, round, self.clock.now(), &self.config.limits);
        }
    }

    /// Notes every status.
    pub(super) fn log_anew(&mut self) {
        self.status_log.note_all(&self.fleet, self.clock.now(), &self.config.limits);
    }
}
