//! What is written into our log of the sessions: each change of a status with its reason, and nothing that a session wrote.

use super::{Engine, Round};
use crate::core::discreet::discreet;
use crate::core::text::is_uuid;
use crate::log::story::{NONE, STATUS};

impl Engine {
    /// Notes the statuses that changed.
    pub(super) fn log_changes(&mut self, round: &Round) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        for key in &round.removed {
            if let Some(was) = self.logged.remove(key).filter(|_| is_uuid(&key.1)) {
                tracing::info!(tag = STATUS, session = %key.1, was = was.name(), is = NONE, "its folder is gone");
            }
        }
        for key in &round.changed {
            let Some(entry) = self.fleet.get(key) else { continue };
            let is = entry.verdict.status;
            let was = self.logged.insert(key.clone(), is);
            // What has no form of an id was named by somebody else than Copilot.
            if was == Some(is) || !is_uuid(&key.1) {
                continue;
            }
            // The same judgement, on facts without a word of the session's.
            let (row, _) = discreet(entry.session()).row(self.clock.now(), &self.config.limits);
            let was = was.map_or(NONE, |was| was.name());
            tracing::info!(tag = STATUS, session = %key.1, was, is = is.name(), "{}", row.because);
        }
    }
}
