//! Reads one session, and holds or forgets it.

use super::reading;
use crate::Entry;
use crate::disk::{Disk, DiskChange};
use crate::parts::agenda::READ_SLICE;
use crate::parts::fleet::find_terminal;
use crate::world::World;
use pilotlight_agents::reader::Reader;
use pilotlight_agents::reading::{PastSession, ReadStatus};
use pilotlight_core::owner::{Doubt, Owner};
use pilotlight_core::session::{Key, Observed, Session};
use pilotlight_system::descriptors::is_of_want;
use pilotlight_system::watcher::{WATCHES_TREES, Watcher};
use std::io;
use std::time::{Duration, Instant};

/// How long a log may be read before its session is judged by the part that was read.
const PARTIAL_READ_LIMIT: Duration = Duration::from_millis(500);
/// How long an order waits for the end of its session's log.
const READ_PATIENCE: Duration = Duration::from_millis(200);
/// Maximum rounds of looking for new folders of a session in one read. The next event covers any later ones.
const ROUNDS_MAX: usize = 16;

impl Disk {
    /// Reads a session before an order acts on it, to the end of its log if that is possible in time.
    pub(crate) fn read_session_now(&mut self, world: &mut World, key: &Key) {
        let started = Instant::now();
        self.read_session(world, key);
        while self.agenda.is_reading(key) && started.elapsed() < READ_PATIENCE {
            self.read_session(world, key);
        }
    }

    /// Reads a session for at most one step: a held one again, any other one to decide whether to hold it or add it to
    /// the history.
    pub(crate) fn read_session(&mut self, world: &mut World, key: &Key) {
        if !self.homes.is_followed(key.home) {
            return self.agenda.finish_reading(key);
        }
        if self.is_read_elsewhere(key) {
            return self.remove_session(world, key);
        }
        let stand_in = self.homes.stand_in(key, None);
        if stand_in.is_some() || self.homes.is_beside(key.home) {
            stand_in.into_iter().for_each(|other| self.agenda.push_urgent(other));
            return self.remove_session(world, key);
        }
        if !self.may_touch(key) {
            // Read once its file system answers.
            self.untouched.insert(key.clone());
            return self.agenda.finish_reading(key);
        }
        if self.file_systems.has(key) && self.read_beside(world, key) {
            return;
        }
        let mut reading = reading(&world.config, &self.owners, &self.process_scans, world.now());
        reading.context.until = Some(Instant::now() + READ_SLICE);
        if let Some(Entry { reader, session, .. }) = world.fleet.entry(key) {
            let mut status = reader.refresh(&reading, &mut session.observed, &mut self.buffer);
            if status.is_ok() && !WATCHES_TREES && self.watcher.watch_session(key, reader.path()) {
                status = reader.refresh(&reading, &mut session.observed, &mut self.buffer);
            }
            let again = |reader: &mut Reader| reader.refresh(&reading, &mut session.observed, &mut self.buffer);
            status = read_watched(&mut self.watcher, key, reader, status, again);
            return self.apply_read(world, key, &status);
        }
        let home = self.homes.home(key.home);
        if let Some(whole) = home.whole(&key.id) {
            self.agenda.finish_reading(key);
            return self.agenda.push_urgent(Key::new(key.home, whole));
        }
        let past = home.quick_scan(None).past(&key.id, &reading);
        if let Some(past) = past {
            return self.add_to_history(world, key, past);
        }
        let (mut reader, mut session) = self.new_session(key, world.now().wall);
        // Watch before reading: later writes then cause events.
        let is_watched = !WATCHES_TREES && self.watcher.watch_session(key, reader.path());
        self.watcher.watch_beside(key, &reader.folders());
        let mut status = reader.refresh(&reading, &mut session.observed, &mut self.buffer);
        if !session.observed.unread {
            let again = |reader: &mut Reader| reader.refresh(&reading, &mut session.observed, &mut self.buffer);
            status = read_watched(&mut self.watcher, key, &mut reader, status, again);
        }
        let status = match status {
            Ok(status) => status,
            Err(error) => {
                self.lacks_descriptors |= is_of_want(&error);
                return self.remove_session(world, key);
            }
        };
        if session.observed.unread {
            if is_watched {
                self.watcher.mark_old(key);
            }
            let Observed { touched, has_log, .. } = session.observed;
            return self.add_to_history(world, key, PastSession { touched, has_log });
        }
        if status == ReadStatus::Partial {
            self.agenda.continue_reading(key);
        }
        self.add_session(world, key, reader, session);
    }

    /// Handles the result of reading a held session again.
    pub(super) fn apply_read(&mut self, world: &mut World, key: &Key, status: &io::Result<ReadStatus>) {
        match status {
            Ok(ReadStatus::Complete) => {
                self.agenda.finish_reading(key);
                self.update_session(world, key);
            }
            // Facts from the middle of the log are not the current ones.
            Ok(ReadStatus::Partial) if self.agenda.continue_reading(key).elapsed() < PARTIAL_READ_LIMIT => {}
            Ok(ReadStatus::Partial) => self.update_session(world, key),
            Err(_) => self.remove_session(world, key),
        }
    }

    pub(super) fn add_to_history(&mut self, world: &World, key: &Key, PastSession { touched, has_log }: PastSession) {
        if has_log && touched >= world.now().wall - world.config.list.ended_for {
            self.history.add_recent_candidate(key, touched);
        }
        let is_watched = self.homes.home(key.home).watch_plan().shares_folders();
        self.history.insert(key, is_watched);
    }

    /// Holds a session from now on.
    pub(super) fn add_session(&mut self, world: &mut World, key: &Key, reader: Reader, mut session: Session) {
        self.history.remove(key);
        session.control.resumed = self.resumed_at(key);
        if world.fleet.insert(key.clone(), reader, session, world.now()) {
            world.changes.updated.push(key.clone());
        }
        self.update_session(world, key);
        self.recheck_reports(world, key);
    }

    /// Whether a session is reported by a hook, and read itself, too: what is read is shown.
    fn is_read_elsewhere(&self, key: &Key) -> bool {
        self.homes.home(key.home).is_read_by(&key.id, self.homes.homes().into_iter())
    }

    /// Has reports of a session that is read itself from now on looked at again.
    fn recheck_reports(&mut self, world: &World, key: &Key) {
        let is_by_reports = |key: &Key| self.homes.home(key.home).is_by_reports();
        if is_by_reports(key) {
            return;
        }
        let keys: Vec<_> =
            world.fleet.keys().filter(|other| is_by_reports(other) && other.id.starts_with(&*key.id)).collect();
        keys.into_iter().for_each(|key| self.agenda.push_urgent(key));
    }

    /// Updates a session's owner and terminal after its folder was read. It is judged once others have heard of it.
    pub(crate) fn update_session(&mut self, world: &mut World, key: &Key) {
        if !self.may_touch(key) {
            return world.judge(key);
        }
        let now = world.now();
        if let Some(Entry { reader, session, .. }) = world.fleet.entry(key) {
            for pid in self.owners.follow(key, reader, now) {
                if session.observed.owner.live().is_some() {
                    self.process_scans.forget(pid);
                    reader.process_ended(&mut session.observed, pid, now.wall);
                }
            }
        }
        if let Some(session) = world.fleet.session(key)
            && let Owner::Doubtful { why: Doubt::Growing, .. } = session.observed.owner
        {
            // Whoever writes it may have come since the last scan.
            self.process_scans.request_for_writer(now.awake);
        }
        self.poll_if_needed(world, key);
        if let Some(session) = world.fleet.session(key) {
            find_terminal(session);
        }
        self.changes.push(DiskChange::Read(key.clone()));
    }

    /// Has a session looked at every few seconds while a process may have it open and its files may change without an
    /// event.
    fn poll_if_needed(&mut self, world: &mut World, key: &Key) {
        let Some(Entry { reader, session, .. }) = world.fleet.entry(key) else { return };
        session.no_file_events = self.watcher.no_file_events(key, reader.path());
        let is_polled = session.no_file_events.is_some() && session.may_be_open();
        self.polled_sessions.set(key, is_polled, world.now().awake);
    }

    /// Forgets a session that is gone from disk.
    pub(super) fn remove_session(&mut self, world: &mut World, key: &Key) {
        self.agenda.finish_reading(key);
        self.watcher.forget(&self.homes.path(key));
        self.watcher.unwatch_beside(key);
        self.owners.forget(key);
        self.polled_sessions.set(key, false, world.now().awake);
        if world.fleet.remove(key) | self.history.remove(key) {
            world.changes.removed.push(key.clone());
        }
        self.changes.push(DiskChange::Gone(key.clone()));
    }
}

/// Watches the further folders of a session that was just read, and reads it again until it has no new ones: what was in
/// one before it was watched caused no event.
fn read_watched(
    watcher: &mut Watcher,
    key: &Key,
    reader: &mut Reader,
    mut status: io::Result<ReadStatus>,
    mut again: impl FnMut(&mut Reader) -> io::Result<ReadStatus>,
) -> io::Result<ReadStatus> {
    for _ in 0..ROUNDS_MAX {
        let folders = if status.is_ok() { reader.folders() } else { Vec::new() };
        if folders.is_empty() || !watcher.watch_beside(key, &folders) {
            break;
        }
        status = again(reader);
    }
    status
}
