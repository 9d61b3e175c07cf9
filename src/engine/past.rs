//! What was: the sessions that ended lately, what the user has looked at, and the history that is told.

use super::scan::{SLICE, WATCHES};
use super::{Engine, Key, Round, View, reading};
use crate::agent::copilot::store::{Folder, Looked};
use crate::agent::copilot::watcher::WATCHES_TREES;
use crate::system::paths;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

impl Engine {
    /// The user looked at these: remembered, and what rested on not having looked is judged anew.
    pub(super) fn mark_seen(&mut self, keys: &[Key], round: &mut Round) {
        let now = self.clock.now();
        for key in keys {
            if let Some(folder) = self.fleet.folder(key) {
                folder.session.seen = Some(now.wall);
                self.seen.mark(&key.1, now.wall);
                round.redraw = true;
            }
            if self.fleet.judge(key, now) {
                round.changed.push(key.clone());
            }
        }
        if let Err(error) = self.seen.save() {
            tracing::warn!("{error:#}");
        }
    }

    /// Begins to watch what other processes of ours keep of the user's looks.
    pub(super) fn watch_seen(&mut self) {
        if let Some(folder) = self.seen.path().and_then(Path::parent)
            && paths::make_folder(folder).is_ok()
        {
            self.watcher.watch(folder);
        }
    }

    /// Another process wrote down what the user looked at.
    pub(super) fn take_over_seen(&mut self, round: &mut Round) {
        let now = self.clock.now();
        for key in self.fleet.keys().collect::<Vec<_>>() {
            if let Some(folder) = self.fleet.folder(&key) {
                self.seen.recall(&mut folder.session);
            }
            if self.fleet.judge(&key, now) {
                round.changed.push(key);
            }
        }
        round.redraw = true;
    }

    /// Looks anew for the last ended sessions: other ones may be listed now.
    pub(super) fn find_recent(&mut self) {
        self.history.seek_recent();
        for key in self.history.iter() {
            self.agenda.sometime(key);
        }
    }

    /// Reads how the last ended sessions ended: those that a list shows.
    pub(super) fn load_recent(&mut self, round: &mut Round) {
        let now = self.clock.now();
        for key in self.history.take_recent(self.config.list.ended_most) {
            let mut folder = Folder::new(self.homes.root(key.0), &key.1);
            self.seen.recall(&mut folder.session);
            let mut reading = reading(&self.config, &self.owners, &self.processes, now);
            if folder.look(&reading, &mut self.buffer).is_err() {
                continue;
            }
            if !WATCHES_TREES {
                self.watcher.watch_session(&key, folder.path());
            }
            reading.look.until = Some(Instant::now() + SLICE);
            if folder.read_history(&reading, &mut self.buffer) == Looked::More {
                self.agenda.read_on(&key);
            }
            self.hold(&key, folder, round);
        }
    }

    /// Shows some of the sessions that were left unread, none of them kept.
    pub(super) fn show_history(&mut self, view: &mut dyn View) -> ControlFlow<()> {
        let now = self.clock.now();
        let (reading, buffer) = (reading(&self.config, &self.owners, &self.processes, now), &mut self.buffer);
        let some = self.history.next_untold(WATCHES);
        let (mut told, mut opened) = (Vec::new(), Vec::new());
        let mut sessions = some.into_iter().filter_map(|key| {
            let mut folder = Folder::new(self.homes.root(key.0), &key.1);
            folder.look(&reading, buffer).ok()?;
            if !folder.session.unread {
                // Somebody has it open now: it is told with what is held.
                opened.push(key);
                return None;
            }
            folder.session.about = folder.about();
            folder.session.is_listed().then_some(folder.session).inspect(|_| {
                told.push(key);
            })
        });
        let flow = view.show_history(&mut sessions, now);
        drop(sessions);
        for key in told {
            self.history.tell(&key);
        }
        for key in opened {
            self.agenda.sometime(key);
        }
        flow
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
