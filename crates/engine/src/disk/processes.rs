//! Handles the exits of processes, and scans for those that have sessions open without a lock.

use crate::Entry;
use crate::disk::Disk;
use crate::world::World;
use pilotlight_core::session::Key;
use pilotlight_core::time::Moment;

impl Disk {
    /// Handles the exit of a process that some lock names.
    pub(crate) fn owner_exited(&mut self, world: &mut World, pid: u32) {
        let Moment { wall: now, awake } = world.now();
        self.owners.forget_process(pid);
        self.process_scans.forget(pid);
        // Another process may have opened the sessions that this one leaves.
        self.process_scans.request(awake);
        for key in world.fleet.with_pid(pid) {
            if let Some(Entry { reader, session, .. }) = world.fleet.entry(&key) {
                reader.process_ended(&mut session.observed, pid, now);
            }
            // Its last output, and whether it released its lock, are read before it counts as gone.
            self.agenda.push_urgent(key);
        }
    }

    /// Scans all processes at once, and queues the sessions that different processes have open than before.
    pub(crate) fn scan_processes_now(&mut self, world: &mut World) {
        let Moment { wall, .. } = world.now();
        let differing = self.process_scans.scan_now(&self.homes, &world.config.owners.names, wall);
        self.openings_changed(world, differing);
    }

    /// Does one step of the running scan.
    pub(super) fn continue_process_scan(&mut self, world: &mut World) {
        let Moment { wall, .. } = world.now();
        if let Some(differing) = self.process_scans.step(&self.homes, &world.config.owners.names, wall) {
            self.openings_changed(world, differing);
        }
    }

    fn openings_changed(&mut self, world: &mut World, differing: Vec<Key>) {
        self.follow_homes_besides(world);
        for key in differing {
            if world.fleet.holds(&key) || self.history.contains(&key) {
                self.agenda.push_urgent(key);
            }
        }
        if self.process_scans.take_other_runners() {
            // Whether one of them may run a session depends on where that works.
            for key in world.fleet.keys() {
                self.agenda.push_urgent(key);
            }
        }
        self.clear_arrived_resumes();
        self.refresh_recent_resumes(world);
    }
}
