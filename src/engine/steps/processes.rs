//! Handles the exits of processes, and scans for those that have sessions open without a lock.

use crate::core::session::Key;
use crate::core::time::Moment;
use crate::engine::{Engine, Entry};

impl Engine {
    /// Handles the exit of a process that some lock names.
    pub(super) fn owner_exited(&mut self, pid: u32) {
        let Moment { wall: now, awake } = self.clock.now();
        self.owners.forget_process(pid);
        self.process_scans.forget(pid);
        // Another process may have opened the sessions that this one leaves.
        self.process_scans.request(awake);
        for key in self.fleet.with_pid(pid) {
            if let Some(Entry { reader, session, .. }) = self.fleet.entry(&key) {
                reader.process_ended(&mut session.observed, pid, now);
            }
            // Its last output, and whether it released its lock, are read before it counts as gone.
            self.agenda.push_urgent(key);
        }
    }

    /// Scans all processes at once, and queues the sessions that different processes have open than before.
    pub(in crate::engine) fn scan_processes_now(&mut self) {
        let Moment { wall, .. } = self.clock.now();
        let differing = self.process_scans.scan_now(&self.homes, &self.config.owners.names, wall);
        self.openings_changed(differing);
    }

    /// Does one step of the running scan.
    pub(super) fn continue_process_scan(&mut self) {
        let Moment { wall, .. } = self.clock.now();
        if let Some(differing) = self.process_scans.step(&self.homes, &self.config.owners.names, wall) {
            self.openings_changed(differing);
        }
    }

    fn openings_changed(&mut self, differing: Vec<Key>) {
        for key in differing {
            if self.fleet.holds(&key) || self.history.contains(&key) {
                self.agenda.push_urgent(key);
            }
        }
        self.clear_arrived_resumes();
        self.refresh_recent_resumes();
    }
}
