//! Handles changes of files and folders, and recovers when the system lost some of them.

use crate::core::session::{Key, SourceId};
use crate::engine::{Changes, Engine};
use crate::system::watcher::Hints;
use std::collections::HashSet;

impl Engine {
    /// Handles changes of files and folders.
    pub(super) fn handle_file_events(&mut self, hints: Hints, changes: &mut Changes) {
        if hints.config {
            self.config_was_written();
        }
        if hints.seen && self.seen.reload() {
            self.apply_seen(changes);
        }
        for path in &hints.gone {
            self.watcher.forget(path);
        }
        for home in hints.opened.into_iter().filter(|home| self.homes.is_followed(*home)).collect::<Vec<_>>() {
            self.process_scans.check_terminal_notes(&self.homes, home, self.clock.now().awake);
        }
        self.queue_named_by(hints.named);
        self.process_scans.logs_written(hints.logs, self.clock.now().awake);
        if hints.all {
            self.lost_events.request(self.clock.now().awake);
            // Changes of sessions that are shown must not wait for the full check.
            for key in self.fleet.keys() {
                self.agenda.push_urgent(key);
            }
        }
        self.homes.invalidate(&hints.gone);
        if hints.routes {
            self.check_homes();
            self.watch_home_paths(false);
            self.watch_shared_folders();
            self.rewatch_sessions();
        }
        self.start_listing(&hints.homes.into_iter().collect::<Vec<_>>());
        for key in hints.folders {
            self.queue_changed_folder(key);
        }
    }

    /// Queues the sessions that these processes name, and those that they named before.
    fn queue_named_by(&mut self, processes: HashSet<(SourceId, u32)>) {
        for (home, pid) in processes.into_iter().filter(|(home, _)| self.homes.is_followed(*home)).collect::<Vec<_>>() {
            let named = self.homes.source(home).named_by(pid).map(|id| Key::new(home, id));
            for key in self.fleet.with_pid(pid).into_iter().chain(named) {
                self.agenda.push_urgent(key);
            }
        }
    }

    /// Watches and reads sessions whose folder was mounted over.
    fn rewatch_sessions(&mut self) {
        for key in self.fleet.keys() {
            if self.may_touch(&key) && self.watcher.rewatch_session(&key, &self.homes.path(&key)) {
                self.agenda.push_urgent(key);
            }
        }
    }

    /// Queues a folder that has changed, if it is a session's.
    fn queue_changed_folder(&mut self, key: Key) {
        if self.fleet.holds(&key) { self.agenda.push_urgent(key) } else { self.agenda.push_other(key) }
    }

    /// Checks everything that file events report, because some were lost.
    pub(super) fn recover_lost_events(&mut self, changes: &mut Changes) {
        self.config_was_written();
        if self.seen.reload() {
            self.apply_seen(changes);
        }
        self.watcher.renew();
        self.homes.invalidate_all();
        self.rescan();
    }

    /// Warns of what cannot be watched.
    pub(super) fn warn_of_watch_trouble(&mut self) {
        if let Some(trouble) = &self.watcher.trouble {
            tracing::warn!("{trouble}");
        }
    }
}
