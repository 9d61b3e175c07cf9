//! Works on the agenda: lists homes, and reads sessions, a little in each iteration of the loop.

use super::RESCAN_INTERVAL;
use crate::disk::Disk;
use crate::parts::agenda::Listing;
use crate::world::World;
use pilotlight_core::session::{HomeId, Key};
use pilotlight_system::descriptors::is_of_want;
use pilotlight_system::file_system::without_file_events;
use pilotlight_system::heap;
use pilotlight_system::log::{self, cause, private};
use pilotlight_system::plain_file::is_absence;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long one iteration of the loop reads urgent sessions before it listens for events again.
const URGENT_TIME: Duration = Duration::from_millis(2);
/// The same, including everything less urgent.
const STEP_TIME: Duration = Duration::from_millis(4);
/// How many names are listed in one iteration of the loop.
pub(super) const NAMES_PER_STEP: usize = 256;

impl Disk {
    /// Whether sessions remain to be read, or processes to be scanned.
    pub(crate) fn is_reading(&mut self) -> bool {
        self.agenda.is_busy() || self.process_scans.is_scanning()
    }

    /// Whether work remains.
    pub(crate) fn is_busy(&mut self) -> bool {
        self.is_reading() || self.history.has_unshown() || self.history.has_unwatched()
    }

    /// Frees what much work needed, once it is done.
    pub(crate) fn release_memory(&mut self) {
        if self.agenda.take_was_large() {
            self.buffer = Vec::new();
            heap::release();
        }
    }

    /// Does part of the agenda: urgent sessions first, then a little of everything else.
    pub(crate) fn work_on_agenda(&mut self, world: &mut World) {
        self.continue_process_scan(world);
        if !self.agenda.is_busy() {
            return self.watch_history_folders(world);
        }
        let started = Instant::now();
        while let Some(key) = self.agenda.next_urgent() {
            self.read_session(world, &key);
            if started.elapsed() >= URGENT_TIME {
                break;
            }
        }
        if let Some(key) = self.agenda.next_long() {
            self.read_session(world, &key);
        }
        self.continue_listing(world);
        while let Some(key) = self.agenda.next_other() {
            self.read_session(world, &key);
            if started.elapsed() >= STEP_TIME {
                break;
            }
        }
        if self.history.seeks_recent() && self.agenda.only_long_reads() {
            self.load_recent(world);
        }
    }

    /// Checks whether each home is still the same folder. If not, everything in it is read and watched again.
    pub(crate) fn check_homes(&mut self, world: &World) {
        self.reload_file_systems(world);
        // A home that is replaced before it is watched is found by checking again.
        for _ in 0..8 {
            let replaced = self.homes.take_replaced();
            if replaced.is_empty() {
                return;
            }
            // What its processes have of a home is told by comparing it with what is there now.
            self.process_scans.request(world.now().awake);
            for number in &replaced {
                let is_retold = self.homes.take_retold(*number);
                let home = self.homes.home(*number);
                self.watcher.forget(home.root());
                if is_retold {
                    self.watcher.set_followed(*number, home.watch_plan(), Some(home.root()));
                }
            }
            self.watch_home_paths(world, true);
            self.list_homes(world, &replaced);
            for home in replaced {
                for key in world.fleet.keys().filter(|key| key.home == home) {
                    self.agenda.push_urgent(key);
                }
                self.history.queue_watches(home);
            }
        }
        self.homes.mark_unsettled(world.now().awake);
    }

    /// Queues everything to be read again.
    pub(crate) fn rescan(&mut self, world: &World) {
        self.rescan_at = world.now().awake + RESCAN_INTERVAL;
        self.agenda.mark_large();
        self.process_scans.forget_unseen();
        self.starts.forget_installed();
        self.check_config(world);
        self.process_scans.start(world.now().awake);
        self.check_homes(world);
        self.follow_new_homes(world);
        self.start_listing(world, &self.homes.numbers());
        for key in world.fleet.keys() {
            self.agenda.push_other(key);
        }
        // Folders that could not be watched, or that may change without an event, are checked here, and only here.
        let is_unreported = |root| !self.watcher.has_room() || without_file_events(root).is_some();
        for (home, _) in self.homes.followed().filter(|(_, root)| is_unreported(root)) {
            for key in self.history.of_home(home) {
                self.agenda.push_other(key);
            }
        }
    }

    /// Reads everything at once, for decisions that must not rest on outdated facts. Only long logs are left for later.
    pub(crate) fn rescan_now(&mut self, world: &mut World) {
        self.rescan(world);
        self.scan_processes_now(world);
        while !self.agenda.only_long_reads() {
            self.work_on_agenda(world);
        }
    }

    /// Starts to compare the sessions in these homes with the known ones.
    pub(super) fn start_listing(&mut self, world: &World, homes: &[HomeId]) {
        if homes.iter().any(|home| self.homes.is_followed(*home)) {
            self.watch_home_paths(world, false);
            self.list_homes(world, homes);
        }
    }

    /// Lists these homes. The caller has watched the paths of all homes.
    fn list_homes(&mut self, world: &World, homes: &[HomeId]) {
        let mut is_any_absent = false;
        for home in homes.iter().filter(|home| self.homes.is_followed(**home)).copied().collect::<Vec<_>>() {
            is_any_absent |= !self.list_home(world, home);
        }
        if is_any_absent {
            self.watch_home_paths(world, false);
        }
    }

    /// Lists a home, whose paths are watched, unless that would find what the last listing found. Returns false if it is
    /// not there.
    fn list_home(&mut self, world: &World, number: HomeId) -> bool {
        let home = self.homes.home(number);
        let root = home.root();
        if self.homes.is_read_elsewhere(number) {
            let claimed = home.claimed().into_iter().map(|id| Key::new(number, id));
            let claimed: Vec<_> = claimed.filter_map(|key| self.homes.stand_in(&key, None)).collect();
            claimed.into_iter().for_each(|key| self.agenda.push_urgent(key));
            return true;
        }
        // Hundreds of folders that sessions share take longer to list than everything else that a rescan does.
        if self.homes.is_as_listed(number) && without_file_events(root).is_none() {
            return true;
        }
        self.watcher.watch_shared_folders(home.watch_plan(), root);
        match home.list_for_good() {
            Ok(mut ids) => {
                self.homes.set_listed(number, ids.take_cache(), world.now().wall);
                self.agenda.listings.retain(|listing| listing.home != number);
                let sweep = self.history.start_sweep();
                self.agenda.listings.push_back(Listing {
                    home: number,
                    ids,
                    left: Vec::new(),
                    sweep,
                    held: HashSet::new(),
                });
            }
            // What is known of it remains until it can be listed again, at the next rescan at the latest.
            Err(error) if !is_absence(&error) => {
                self.lacks_descriptors |= is_of_want(&error);
                log::warn!("the sessions in {} cannot be listed: {}", private(&root.display()), cause(&error));
            }
            Err(error) => {
                log::debug!(path = private(&root.display()), "no sessions there: {}", cause(&error));
                self.watcher.forget(root);
                // Reading each of them finds that it is gone.
                for key in self.history.of_home(number).chain(world.fleet.keys().filter(|key| key.home == number)) {
                    self.agenda.push_other(key);
                }
                return false;
            }
        }
        true
    }

    /// Continues to list a home.
    fn continue_listing(&mut self, world: &World) {
        // The names wait in the agenda, and there may be tens of thousands: take no more than can be read soon.
        if self.agenda.others_len() >= NAMES_PER_STEP {
            return;
        }
        let Some(mut listing) = self.agenda.listings.pop_front() else { return };
        let home = listing.home;
        for _ in 0..NAMES_PER_STEP {
            let Some(id) = listing.next() else {
                // Sessions that the listing did not find may be gone.
                let missed = self.history.not_found_since(home, listing.sweep);
                let held = world.fleet.keys().filter(|key| key.home == home && !listing.held.contains(&key.id));
                for key in missed.into_iter().chain(held) {
                    self.agenda.push_other(key);
                }
                return;
            };
            if self.history.mark_found(home, &id, listing.sweep) {
                continue;
            }
            let key = Key::new(home, id);
            if world.fleet.holds(&key) {
                // The folder of its first file may have appeared: it is watched once it is read.
                if self.watcher.lacks_watch(&key) {
                    self.agenda.push_urgent(key.clone());
                }
                listing.held.insert(key.id);
            } else {
                self.agenda.push_other(key);
            }
        }
        self.agenda.listings.push_back(listing);
    }

    /// Watches the folders that sessions share, in all homes: what was mounted there may have others.
    pub(super) fn watch_shared_folders(&mut self) {
        for home in self.homes.numbers() {
            let home = self.homes.home(home);
            self.watcher.watch_shared_folders(home.watch_plan(), home.root());
        }
    }

    /// Watches the homes and the folders above them.
    pub(super) fn watch_home_paths(&mut self, world: &World, again: bool) {
        let homes = self.homes.followed().map(|(home, _)| self.homes.home(home));
        let roots: Vec<_> = homes.map(|home| (home.watch_plan(), home.root())).collect();
        let vanished = self.watcher.watch_routes(&roots, &self.awaited, again);
        if !vanished.is_empty() {
            self.homes.invalidate(&vanished);
            self.homes.mark_unsettled(world.now().awake);
        }
    }
}
