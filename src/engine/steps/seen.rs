//! Seen marks: the user's, and those that other processes of ours write.

use crate::core::session::Key;
use crate::engine::{Changes, Engine};
use crate::system::paths;
use std::path::Path;

impl Engine {
    /// Remembers that the user has seen these sessions, and judges them again.
    pub(super) fn mark_seen(&mut self, keys: &[Key], changes: &mut Changes) {
        let now = self.clock.now();
        for key in keys {
            if let Some(session) = self.fleet.session(key) {
                session.seen = Some(now.wall);
                self.seen.mark(&key.id, now.wall);
                changes.redraw = true;
            }
            self.judge(key, changes);
        }
        if let Err(error) = self.seen.save() {
            tracing::warn!("{error:#}");
        }
    }

    /// Starts to watch for seen marks that other processes of ours write.
    pub(in crate::engine) fn watch_seen(&mut self) {
        if let Some(folder) = self.seen.path().and_then(Path::parent)
            && paths::make_folder(folder).is_ok()
        {
            self.watcher.watch(folder);
        }
    }

    /// Applies the seen marks that another process wrote.
    pub(super) fn apply_seen(&mut self, changes: &mut Changes) {
        for key in self.fleet.keys().collect::<Vec<_>>() {
            if let Some(session) = self.fleet.session(&key) {
                self.seen.recall(session);
            }
            self.judge(&key, changes);
        }
        changes.redraw = true;
    }
}
