//! Logs each change of a status with its reason, but nothing that a session wrote.

use super::fleet::Fleet;
use crate::core::limits::Limits;
use crate::core::redact::redacted;
use crate::core::session::Key;
use crate::core::text::is_uuid;
use crate::core::time::Moment;
use crate::core::verdict::Status;
use crate::engine::changes::Changes;
use crate::system::log::story::{Change, Line};
use std::collections::HashMap;

/// Whether changes of status are logged at all.
pub(crate) fn logs_statuses() -> bool {
    tracing::enabled!(tracing::Level::INFO)
}

/// The last logged status of each session.
#[derive(Default)]
pub(crate) struct StatusLog(HashMap<Key, Status>);

impl StatusLog {
    /// Logs the statuses that have changed, if they are logged at all.
    pub(crate) fn log_updated(&mut self, fleet: &Fleet, changes: &Changes, now: Moment, limits: &Limits) {
        if !logs_statuses() {
            return;
        }
        for key in &changes.removed {
            self.log_end(key);
        }
        for key in &changes.updated {
            if fleet.get(key).is_some_and(|entry| self.0.get(key) != Some(&entry.verdict.status)) {
                self.log_status(key, fleet, now, limits);
            }
        }
    }

    /// Logs every status. While nothing was logged, statuses may have changed unnoticed.
    pub(crate) fn log_all(&mut self, fleet: &Fleet, now: Moment, limits: &Limits) {
        let gone: Vec<_> = self.0.keys().filter(|key| fleet.get(key).is_none()).cloned().collect();
        for key in gone {
            self.log_end(&key);
        }
        for key in fleet.keys() {
            self.log_status(&key, fleet, now, limits);
        }
    }

    fn log_end(&mut self, key: &Key) {
        if let was @ Some(_) = self.0.remove(key) {
            write(key, was, None, "its folder is gone".into());
        }
    }

    fn log_status(&mut self, key: &Key, fleet: &Fleet, now: Moment, limits: &Limits) {
        let Some(entry) = fleet.get(key) else { return };
        let is = entry.verdict.status;
        let was = self.0.insert(key.clone(), is);
        // Judged again on redacted facts, without the session's own text.
        let (row, _) = redacted(entry.session()).row(now, limits);
        write(key, was, Some(is), row.because.to_string());
    }
}

fn write(key: &Key, was: Option<Status>, is: Option<Status>, because: String) {
    // A folder whose name is not an id was not named by Copilot.
    if is_uuid(&key.id) {
        Line::Changed(Change { id: key.id.to_string(), was, is, because }).write();
    }
}
