//! What is due on disk through time alone, but for the rescan.

use crate::disk::Disk;
use crate::parts::settings_file::SettingsFile;
use crate::world::World;
use pilotlight_core::time::Time;
use std::collections::BTreeSet;

impl Disk {
    /// When, by the awake clock, the next of it is due.
    pub(crate) fn wake_at(&self, now: Time) -> Option<Time> {
        let timers = [
            self.homes.check_at(self.watcher.detects_replaced_homes()),
            self.polled_sessions.poll_at(),
            self.settings_file.as_ref().and_then(SettingsFile::due_at),
            self.owners.wake_at(),
            self.process_scans.wake_at(),
            self.starts.look_at(),
            self.recent_resumes.until(),
            self.lost_events.due_at(),
            self.file_systems.wake_at(now),
        ];
        timers.into_iter().flatten().min()
    }

    /// Does what is due by now.
    pub(crate) fn run_due_timers(&mut self, world: &mut World) {
        let now = world.now().awake;
        for pid in self.owners.take_due_polls(now) {
            for key in world.fleet.with_pid(pid) {
                self.agenda.push_urgent(key);
            }
        }
        self.look_at_polled_sessions(world, now);
        self.process_scans.check_written_logs(&self.homes, now);
        if self.recent_resumes.until().is_some_and(|until| until <= now) {
            self.refresh_recent_resumes(world);
        }
        for key in self.owners.take_due_locks(now) {
            self.agenda.push_urgent(key);
        }
        if self.lost_events.start_if_due(now) {
            self.recover_lost_events(world);
        }
        if self.starts.take_due(now) {
            self.look_for_started(world);
        }
        self.process_scans.start_requested(now);
        if self.homes.is_due(self.watcher.detects_replaced_homes(), now) {
            self.check_homes(world);
        }
    }

    /// Looks at the live sessions whose files may change without an event, if that is due, and for new sessions beside
    /// them.
    fn look_at_polled_sessions(&mut self, world: &World, now: Time) {
        let mut homes = BTreeSet::new();
        for key in self.polled_sessions.due(now) {
            homes.insert(key.home);
            self.agenda.push_urgent(key);
        }
        for home in homes.into_iter().filter(|home| self.homes.is_followed(*home)).collect::<Vec<_>>() {
            if self.homes.has_other_entries(home) {
                self.start_listing(world, &[home]);
            }
            self.process_scans.check_terminal_notes(&self.homes, home, now);
        }
    }
}
