//! Seen marks: the user's, and those that other processes of ours write.

use crate::disk::Disk;
use crate::last_seen::{AHEAD, SessionMarks};
use crate::world::World;
use pilotlight_agents::reader::Reader;
use pilotlight_core::session::{Key, Session};
use pilotlight_core::time::Time;
use pilotlight_system::log::{self, cause};
use pilotlight_system::paths;
use std::path::Path;

impl Disk {
    /// A session of which nothing is known yet but what is remembered of it, and its reader.
    pub(super) fn new_session(&self, key: &Key, now: Time) -> (Reader, Session) {
        let home = self.homes.home(key.home);
        let mut session = home.session(&key.id);
        self.seen.recall(self.homes.hash(key.home), &mut session, now);
        (home.reader(&key.id), session)
    }

    /// Remembers that the user has seen these sessions, and judges them again.
    pub(crate) fn mark_seen(&mut self, world: &mut World, keys: &[Key]) {
        let now = world.now();
        for key in keys.iter().filter(|key| key.host.is_none()) {
            if let Some(session) = world.fleet.session(key) {
                session.seen = Some(now.wall);
                let seen = SessionMarks { seen: Some(now.wall), ..SessionMarks::default() };
                self.seen.note(self.homes.hash(key.home), &key.id, seen, now.wall);
                world.changes.redraw = true;
            }
            world.judge(key);
        }
        if let Err(error) = self.seen.save(now.wall) {
            log::warn!("what was seen cannot be saved: {}", cause(&*error));
        }
    }

    /// Remembers this of a session, also for our other processes.
    pub(crate) fn remember(&mut self, world: &mut World, key: &Key, marks: SessionMarks) {
        if marks == SessionMarks::default() {
            return;
        }
        let (home, now) = (self.homes.hash(key.home), world.now().wall);
        self.seen.note(home, &key.id, marks, now);
        if let Some(session) = world.fleet.session(key) {
            self.seen.recall(home, session, now);
        }
        if let Err(error) = self.seen.save(now) {
            log::warn!("what was seen cannot be saved: {}", cause(&*error));
        }
    }

    /// Starts to watch for seen marks that other processes of ours write.
    pub(crate) fn watch_seen(&mut self) {
        if let Some(folder) = self.seen.path().and_then(Path::parent)
            && paths::make_folder(folder).is_ok()
        {
            self.watcher.watch(folder);
        }
    }

    /// Drops marks from before the clock was set back: later than now, they would hide whatever comes next.
    pub(crate) fn drop_future_marks(&mut self, world: &mut World) {
        let latest = world.now().wall + AHEAD;
        if world.fleet.entries().any(|(_, entry)| entry.session().seen > Some(latest)) {
            self.apply_seen(world);
        }
    }

    /// Applies the seen marks that another process wrote.
    pub(super) fn apply_seen(&mut self, world: &mut World) {
        let now = world.now().wall;
        for key in world.fleet.keys().collect::<Vec<_>>() {
            if let Some(session) = world.fleet.session(&key) {
                self.seen.recall(self.homes.hash(key.home), session, now);
            }
            world.judge(&key);
        }
        world.changes.redraw = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::last_seen::{FILE, LastSeen};
    use pilotlight_agents::home::Home;
    use pilotlight_core::session::HomeId;
    use std::fs;
    use std::path::PathBuf;

    /// What is on disk, where these homes were read, each with a session of the same id.
    fn read(homes: &[PathBuf], state: &Path) -> (Disk, World) {
        let homes: Vec<_> = homes.iter().map(|home| Home::at(home)).collect();
        let (mut disk, mut world) = Disk::alone(&homes, Config::default(), LastSeen::load(Some(state.join(FILE))));
        disk.check_homes(&world);
        for number in 0..homes.len() {
            let key = key(number);
            let (reader, session) = disk.new_session(&key, world.now().wall);
            disk.add_session(&mut world, &key, reader, session);
        }
        (disk, world)
    }

    fn key(home: usize) -> Key {
        Key::new(HomeId(home), "one")
    }

    fn seen(world: &mut World) -> [bool; 2] {
        [0, 1].map(|home| world.fleet.session(&key(home)).unwrap().seen.is_some())
    }

    #[test]
    fn case_249_two_homes_with_a_session_of_one_id_share_no_marks() {
        let scratch = tempfile::tempdir().unwrap();
        let homes = ["original", "copy"].map(|name| scratch.path().join(name));
        for home in &homes {
            fs::create_dir_all(Home::at(home).path("one")).unwrap();
        }
        let (mut first, mut firsts) = read(&homes, scratch.path());
        let (mut second, mut seconds) = read(&homes, scratch.path());
        first.mark_seen(&mut firsts, &[key(1)]);
        first.apply_seen(&mut firsts);
        assert_eq!(seen(&mut firsts), [false, true]);
        assert!(second.seen.reload(seconds.now().wall), "other processes learn of it");
        second.apply_seen(&mut seconds);
        assert_eq!(seen(&mut seconds), [false, true]);
        assert_eq!(seen(&mut read(&homes, scratch.path()).1), [false, true], "after a restart, too");
    }
}
