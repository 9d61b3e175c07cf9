//! Leaves alone what is on a file system that does not answer, and takes it up again when it does.

use crate::disk::Disk;
use crate::parts::agenda::READ_SLICE;
use crate::parts::file_systems::Read;
use crate::world::World;
use pilotlight_agents::reading::Reading;
use pilotlight_agents::tail::ReadContext;
use pilotlight_core::session::Key;
use pilotlight_system::log::{self, private};
use std::time::Instant;

impl Disk {
    /// Asks the file systems that may stop answering, before anything on them is touched. Of what has stopped, the rows
    /// stay as they were, and say so once that lasts; what answers again is read from the start.
    pub(crate) fn ask_file_systems(&mut self, world: &mut World) {
        if self.file_systems.is_empty() && self.untouched.is_empty() {
            return;
        }
        self.update_answering_homes(world);
        self.apply_reads(world);
        let now = world.now().awake;
        for (home, why) in self.file_systems.silent_homes(now).collect::<Vec<_>>() {
            if self.said_silent.insert(home) {
                // Without its watches: they would be looked after.
                self.watch_home_paths(world, false);
                log::warn!("{} is not read: {}", private(&self.homes.root(home).display()), private(&why));
            }
        }
        if self.file_systems.is_any_silent() || !self.untouched.is_empty() {
            self.mark_silent_sessions(world);
        }
    }

    /// Finds out which homes are on a file system that may stop answering, and whether those answer.
    pub(super) fn reload_file_systems(&mut self, world: &World) {
        self.file_systems.reload(&self.homes);
        self.update_answering_homes(world);
    }

    fn update_answering_homes(&mut self, world: &World) {
        let now = world.now();
        self.file_systems.ask(now);
        for (home, is_answering) in self.homes.set_answering(|home| self.file_systems.answers_for_home(home)) {
            if !is_answering {
                self.agenda.listings.retain(|listing| listing.home != home);
                self.process_scans.forget_written();
                continue;
            }
            self.process_scans.request(now.awake);
            self.homes.mark_unsettled(now.awake);
            if self.said_silent.remove(&home) {
                self.homes.forget_state(home);
                self.search_recent_again();
            } else {
                // It was only slow: nothing is outdated but what appeared meanwhile.
                self.start_listing(world, &[home]);
            }
        }
    }

    fn mark_silent_sessions(&mut self, world: &mut World) {
        let now = world.now().awake;
        // Some are held by nobody yet.
        for key in self.untouched.extract_if(|key| self.file_systems.answers_for(key)) {
            self.agenda.push_urgent(key);
        }
        for key in world.fleet.keys().collect::<Vec<_>>() {
            let (answers, no_answer) = (self.file_systems.answers_for(&key), self.file_systems.no_answer(&key, now));
            if !answers {
                self.untouched.insert(key.clone());
            }
            let Some(session) = world.fleet.session(&key) else { continue };
            if session.no_answer != no_answer {
                session.no_answer = no_answer;
                world.judge(&key);
            }
        }
    }

    /// Reads a held session beside the loop. What takes longer is applied when it is there. Returns false if it must be
    /// read here, because the system refuses a thread.
    pub(super) fn read_beside(&mut self, world: &mut World, key: &Key) -> bool {
        let now = world.now();
        let (limits, names) = (world.config.limits, world.config.owners.names.clone());
        let (known, openings) = (self.owners.known().clone(), self.process_scans.openings().clone());
        if !self.file_systems.has_thread() {
            return false;
        }
        let Some(entry) = world.fleet.entry(key) else { return false };
        // What stands for it meanwhile has read nothing.
        let stand_in = self.homes.home(key.home).reader(&key.id);
        let mut reader = std::mem::replace(&mut entry.reader, stand_in);
        let (read_key, mut observed) = (key.clone(), entry.session.observed.clone());
        let read = move || {
            let context = ReadContext { now, limits: &limits, until: Some(Instant::now() + READ_SLICE) };
            let reading = Reading { context, owner_names: &names, known: &known, openings: &openings, all: false };
            let status = reader.refresh(&reading, &mut observed, &mut Vec::new());
            Read { key: read_key, reader, observed, status }
        };
        self.file_systems.read(key, now, read);
        self.apply_reads(world);
        true
    }

    /// Applies what was read beside the loop.
    fn apply_reads(&mut self, world: &mut World) {
        for Read { key, reader, observed, status } in self.file_systems.take_reads() {
            // It may have been forgotten meanwhile.
            let Some(entry) = world.fleet.entry(&key) else { continue };
            (entry.reader, entry.session.observed) = (reader, observed);
            self.apply_read(world, &key, &status);
        }
    }

    pub(crate) fn may_touch(&self, key: &Key) -> bool {
        self.file_systems.answers_for(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::last_seen::LastSeen;
    use crate::parts::file_systems::tests::{block, on, release};
    use pilotlight_agents::home::Home;
    use pilotlight_core::session::HomeId;
    use std::time::Duration;

    #[test]
    fn case_179_what_changes_while_its_file_system_is_busy_is_read_afterwards() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(Home::at(scratch.path()).path("one")).unwrap();
        let (mut disk, mut world) = Disk::alone(&[Home::at(scratch.path())], Config::default(), LastSeen::default());
        let key = Key::new(HomeId::default(), "one");
        disk.check_homes(&world);
        disk.file_systems = on(&[scratch.path().to_str().unwrap()]);
        block(scratch.path());
        disk.file_systems.ask(world.now());
        // It begins to be busy when it was just asked, and the answer is there before it is asked again.
        disk.read_session(&mut world, &key);
        assert_eq!(disk.agenda.next_urgent(), None);
        release(scratch.path());
        let began = Instant::now();
        while disk.agenda.next_urgent() != Some(key.clone()) {
            assert!(began.elapsed() < Duration::from_secs(30), "it is read again");
            disk.ask_file_systems(&mut world);
        }
    }
}
