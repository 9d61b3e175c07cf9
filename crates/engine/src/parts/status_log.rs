//! Logs each change of a status with its reason by name, so nothing that a session wrote.

use super::fleet::Fleet;
use crate::world::Changes;
use pilotlight_core::session::Key;
use pilotlight_core::text::is_uuid;
use pilotlight_core::verdict::Status;
use pilotlight_system::log::{self, Public, private};
use std::collections::HashMap;

/// The last status of each session.
#[derive(Default)]
pub(crate) struct StatusLog(HashMap<Key, Status>);

impl StatusLog {
    /// Logs the statuses that have changed.
    pub(crate) fn log_updated(&mut self, fleet: &Fleet, changes: &Changes) {
        for key in &changes.removed {
            if let Some(was) = self.0.remove(key) {
                write(key, Some(was), None, &"its folder is gone");
            }
        }
        for key in &changes.updated {
            let Some(verdict) = fleet.get(key).map(|entry| &entry.verdict) else { continue };
            let is = verdict.status;
            if self.0.get(key) == Some(&is) {
                continue;
            }
            let was = self.0.insert(key.clone(), is);
            write(key, was, Some(is), &verdict.because);
        }
    }
}

fn write(key: &Key, was: Option<Status>, is: Option<Status>, because: &dyn Public) {
    // A folder whose name is not an id was not named by Copilot.
    if is_uuid(&key.id) {
        let name = |status: Option<Status>| status.map_or("none", Status::name);
        log::info!(tag = "status", session = private(&key.id), was = name(was), is = name(is), "{}", *because);
    }
}
