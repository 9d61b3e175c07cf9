//! Handles changes of files and folders, and recovers when the system lost some of them.

use crate::disk::Disk;
use crate::world::World;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_system::log::{self, private};
use pilotlight_system::watcher::Hints;
use std::collections::HashSet;

impl Disk {
    /// Handles changes of files and folders.
    pub(crate) fn handle_file_events(&mut self, world: &mut World, hints: Hints) {
        if hints.config {
            self.config_was_written(world);
        }
        if hints.seen && self.seen.reload(world.now().wall) {
            self.apply_seen(world);
        }
        for path in &hints.gone {
            self.watcher.forget(path);
        }
        for home in hints.opened.into_iter().filter(|home| self.homes.is_followed(*home)).collect::<Vec<_>>() {
            self.process_scans.check_terminal_notes(&self.homes, home, world.now().awake);
        }
        self.queue_named_by(world, hints.named);
        if hints.started {
            self.starts.opened(world.now().awake);
        }
        self.process_scans.logs_written(hints.logs, world.now().awake);
        if hints.all {
            self.lost_events.request(world.now().awake);
            // Changes of sessions that are shown must not wait for the full check.
            for key in world.fleet.keys() {
                self.agenda.push_urgent(key);
            }
        }
        self.homes.invalidate(&hints.gone);
        if hints.routes {
            self.follow_new_homes(world);
            self.check_homes(world);
            self.watch_home_paths(world, false);
            self.watch_shared_folders();
            self.rewatch_sessions(world);
        }
        self.start_listing(world, &hints.homes.into_iter().collect::<Vec<_>>());
        for key in hints.folders {
            self.queue_changed_folder(world, key);
        }
    }

    /// Queues the sessions that these processes name, and those that they named before.
    fn queue_named_by(&mut self, world: &World, processes: HashSet<(HomeId, u32)>) {
        for (home, pid) in processes.into_iter().filter(|(home, _)| self.homes.is_followed(*home)).collect::<Vec<_>>() {
            let named = self.homes.home(home).named_by(pid).map(|id| Key::new(home, id));
            for key in world.fleet.with_pid(pid).into_iter().chain(named) {
                self.agenda.push_urgent(key);
            }
        }
    }

    /// Watches and reads sessions whose folder was mounted over.
    fn rewatch_sessions(&mut self, world: &World) {
        for key in world.fleet.keys() {
            if self.may_touch(&key) && self.watcher.rewatch_session(&key, &self.homes.path(&key)) {
                self.agenda.push_urgent(key);
            }
        }
    }

    /// Queues a folder that has changed, if it is a session's.
    fn queue_changed_folder(&mut self, world: &World, key: Key) {
        if world.fleet.holds(&key) { self.agenda.push_urgent(key) } else { self.agenda.push_other(key) }
    }

    /// Checks everything that file events report, because some were lost.
    pub(super) fn recover_lost_events(&mut self, world: &mut World) {
        self.config_was_written(world);
        if self.seen.reload(world.now().wall) {
            self.apply_seen(world);
        }
        self.watcher.renew();
        self.homes.invalidate_all();
        self.rescan(world);
    }

    /// Warns of what cannot be watched.
    pub(super) fn warn_of_watch_trouble(&mut self) {
        if let Some(trouble) = &self.watcher.trouble {
            log::warn!("not all is watched: {}", private(&trouble));
        }
    }
}
