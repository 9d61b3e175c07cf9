//! The history: shows it once, watches its folders, and reads the sessions that ended last.

use super::reading;
use crate::View;
use crate::disk::Disk;
use crate::parts::agenda::READ_SLICE;
use crate::world::World;
use pilotlight_agents::reading::ReadStatus;
use pilotlight_core::order::Outcome;
use pilotlight_core::session::Key;
use pilotlight_system::heap;
use pilotlight_system::watcher::WATCHES_TREES;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Instant;

/// How many folders are shown, and how many are added to the watch, in one iteration of the loop.
const WATCHES_PER_STEP: usize = 64;

impl Disk {
    /// Looks again for the sessions that ended last, because the list may now show others.
    pub(crate) fn search_recent_again(&mut self) {
        self.history.seek_recent();
        for key in self.history.iter() {
            self.agenda.push_other(key);
        }
    }

    /// Reads the last ended sessions, as many as a list shows.
    pub(super) fn load_recent(&mut self, world: &mut World) {
        let now = world.now();
        for key in self.history.take_recent(world.config.list.ended_most) {
            if !self.may_touch(&key) {
                continue;
            }
            let (mut reader, mut session) = self.new_session(&key, now.wall);
            let mut reading = reading(&world.config, &self.owners, &self.process_scans, now);
            if reader.refresh(&reading, &mut session.observed, &mut self.buffer).is_err() {
                continue;
            }
            if !WATCHES_TREES {
                self.watcher.watch_session(&key, reader.path());
            }
            reading.context.until = Some(Instant::now() + READ_SLICE);
            if reader.read_history(&reading, &mut session.observed, &mut self.buffer) == ReadStatus::Partial {
                self.agenda.continue_reading(&key);
            }
            self.add_session(world, &key, reader, session);
        }
    }

    /// Holds a session of the history from now on, and reads what a list shows of it.
    pub(crate) fn load(&mut self, world: &mut World, key: &Key) -> Result<(), Outcome> {
        if !self.may_touch(key) {
            return Err(Outcome::Refused("its file system does not answer, so the session's state is unknown".into()));
        }
        let (mut reader, mut session) = self.new_session(key, world.now().wall);
        let reading = reading(&world.config, &self.owners, &self.process_scans, world.now());
        reader.refresh(&reading, &mut session.observed, &mut self.buffer).map_err(|_| Outcome::Unknown)?;
        reader.read_history(&reading, &mut session.observed, &mut self.buffer);
        self.add_session(world, key, reader, session);
        Ok(())
    }

    /// Shows a batch of the history, without keeping what was read.
    pub(crate) fn show_history(&mut self, world: &World, view: &mut dyn View) -> ControlFlow<()> {
        let now = world.now();
        let (reading, buffer) = (reading(&world.config, &self.owners, &self.process_scans, now), &mut self.buffer);
        let mut batch = self.history.next_unshown(WATCHES_PER_STEP);
        batch.retain(|key| self.file_systems.answers_for(key));
        let logs = |key: &Key| (key.home, self.history.logs(key.home, || self.homes.home(key.home).logs()));
        let logs: HashMap<_, _> = batch.iter().map(logs).collect();
        self.history.forget_logs();
        let scans = logs.iter().map(|(home, logs)| (*home, self.homes.home(*home).quick_scan(Some(logs))));
        let scans: HashMap<_, _> = scans.collect();
        let (mut shown, mut opened) = (Vec::new(), Vec::new());
        let mut sessions = batch.into_iter().filter_map(|key| {
            let home = self.homes.home(key.home);
            let (mut reader, mut session) = (home.reader_among(&key.id, &logs[&key.home]), home.session(&key.id));
            match scans[&key.home].past(&key.id, &reading) {
                Some(past) => past.note(&mut session.observed),
                None => drop(reader.refresh(&reading, &mut session.observed, buffer).ok()?),
            }
            if !session.observed.unread {
                // A process has it open now: it is shown with the held sessions.
                opened.push(key);
                return None;
            }
            session.observed.about = reader.about();
            session.is_listed().then_some(session).inspect(|_| {
                shown.push(key);
            })
        });
        let flow = view.show_history(&mut sessions, now);
        drop(sessions);
        for key in shown {
            self.history.mark_shown(&key);
        }
        for key in opened {
            self.agenda.push_other(key);
        }
        flow
    }

    /// Watches a few more folders of the history.
    pub(super) fn watch_history_folders(&mut self, world: &mut World) {
        if !self.history.has_unwatched() {
            return;
        }
        for _ in 0..WATCHES_PER_STEP {
            if !self.watcher.has_room() {
                self.history.clear_watch_queue();
            }
            let Some(key) = self.history.next_unwatched() else { break };
            if self.may_touch(&key) && self.watcher.watch_old_session(&key, &self.homes.path(&key)) {
                // It may have been resumed before it was watched.
                self.read_session(world, &key);
            }
        }
        if !self.history.has_unwatched() {
            self.history.clear_watch_queue();
            heap::release();
            self.warn_of_watch_trouble();
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
