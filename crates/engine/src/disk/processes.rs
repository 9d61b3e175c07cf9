//! Handles the exits of processes, and scans for those that have sessions open without a lock.

use crate::Entry;
use crate::disk::Disk;
use crate::world::World;
use pilotlight_agents::programs;
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

    /// Scans processes because an agent was started. One that goes on with a session says so in its log, or where its home
    /// is followed; one that says nothing matters only to sessions that nobody is known to run, and if it may have another home.
    pub(super) fn look_for_started(&mut self, world: &World) {
        let may_have_other_home = !self.sought(world).is_empty();
        if may_have_other_home || world.fleet.entries().any(|(_, entry)| entry.session.observed.owner.live().is_none())
        {
            self.process_scans.request(world.now().awake);
        }
    }

    /// Watches the programs of agents, which tells of the next start of each.
    fn watch_programs(&mut self, world: &World) {
        if !self.watcher.has_room() {
            return;
        }
        let (homes, running, sought) =
            (self.homes.homes(), self.process_scans.openings().programs(), self.sought(world));
        let adapters = homes.iter().map(|home| home.adapter()).chain(sought);
        let watched = self.starts.programs(running, || programs::installed(adapters));
        if self.watcher.watch_programs(&watched) {
            self.starts.watched_anew(world.now().awake);
        }
    }

    fn openings_changed(&mut self, world: &mut World, differing: Vec<Key>) {
        self.watch_programs(world);
        self.take_homes_in_use(world);
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
