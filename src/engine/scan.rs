//! What the loop looks at: homes, folders and owners.

use super::agenda::Listing;
use super::{Engine, FIRST, Key, RESCAN, Round, reading};
use crate::agent::copilot::store::{Folder, Glimpse, Looked, Root, is_absence, session_ids};
use crate::agent::copilot::watcher::{Hints, WATCHES_TREES};
use crate::core::fleet::Session;
use crate::core::time::Moment;
use crate::system::heap;
use crate::system::signals::Signals;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long one turn of the loop looks at what just happened, before it listens again.
const URGENT: Duration = Duration::from_millis(2);
/// The same, with all that is less urgent.
const STEP: Duration = Duration::from_millis(4);
/// How long one look reads a log, or lists a folder.
pub(super) const SLICE: Duration = Duration::from_millis(1);
/// How long a log may be read before its session is judged by what was read so far.
const LONG: Duration = Duration::from_millis(500);
/// How long what is asked of a session waits for the end of its log.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many names are listed, and how many folders are added to the watch, in one turn of the loop.
pub(super) const NAMES: usize = 256;
pub(super) const WATCHES: usize = 64;

impl Engine {
    /// Looks at everything for the first time. A signal may end the program meanwhile.
    pub(super) async fn look_at_all(&mut self, signals: &mut Signals, round: &mut Round) -> ControlFlow<()> {
        self.look_at_homes();
        let begun = Instant::now();
        while self.agenda.is_busy() && !(self.agenda.only_reads() && begun.elapsed() >= FIRST) {
            if !self.sort_some() {
                self.work(round);
            }
            tokio::select! {
                biased;
                () = signals.end() => return ControlFlow::Break(()),
                () = tokio::task::yield_now() => {}
            }
        }
        if self.history.seeks_recent() {
            self.load_recent(round);
        }
        self.tell_trouble();
        ControlFlow::Continue(())
    }

    /// Does some of what is to be done: what just happened first, and of everything else a little.
    pub(super) fn work(&mut self, round: &mut Round) {
        self.go_on_looking_at_processes();
        if !self.agenda.is_busy() {
            return self.watch_more(round);
        }
        let begun = Instant::now();
        while let Some(key) = self.agenda.next_urgent() {
            self.look_into(&key, round);
            if begun.elapsed() >= URGENT {
                break;
            }
        }
        if let Some(key) = self.agenda.next_long() {
            self.look_into(&key, round);
        }
        self.list_some();
        while let Some(key) = self.agenda.next_other() {
            self.look_into(&key, round);
            if begun.elapsed() >= STEP {
                break;
            }
        }
        if self.history.seeks_recent() && self.agenda.only_reads() {
            self.load_recent(round);
        }
    }

    /// Something happened to a session's folder, if there is one of this name.
    fn happened_to(&mut self, key: Key) {
        if self.fleet.folder(&key).is_some() { self.agenda.urgent(key) } else { self.agenda.sometime(key) }
    }

    pub(super) fn follow(&mut self, hints: Hints, round: &mut Round) {
        if hints.config {
            self.config_was_written();
        }
        if hints.seen && self.seen.reload() {
            self.take_over_seen(round);
        }
        for path in &hints.gone {
            self.watcher.forget(path);
        }
        for home in hints.opened {
            self.processes.noted_anew(&self.homes, home, self.clock.now().awake);
        }
        self.processes.wrote(hints.logs, self.clock.now().awake);
        if hints.all {
            self.lost.ask(self.clock.now().awake);
            // What happened to the sessions that are shown is not waited for.
            for key in self.fleet.keys() {
                self.agenda.urgent(key);
            }
        }
        self.homes.doubt(&hints.gone);
        if hints.ways {
            self.look_at_homes();
            self.watch_roots(false);
        }
        for home in hints.homes {
            self.look_into_home(home);
        }
        for key in hints.folders {
            self.happened_to(key);
        }
    }

    /// Looks at everything that file events tell of: some were lost.
    pub(super) fn look_at_what_was_lost(&mut self, round: &mut Round) {
        self.config_was_written();
        if self.seen.reload() {
            self.take_over_seen(round);
        }
        self.watcher.renew();
        self.homes.doubt_all();
        self.rescan();
    }

    /// Looks whether the homes are where they were; of one that is not, everything is looked at, and watched anew.
    pub(super) fn look_at_homes(&mut self) {
        // What takes a place before that is watched is found by looking again.
        for _ in 0..8 {
            let others = self.homes.look();
            if others.is_empty() {
                return;
            }
            for home in &others {
                self.watcher.forget(self.homes.root(*home));
            }
            self.watch_roots(true);
            for home in others {
                self.look_into_home(home);
                for key in self.fleet.keys().filter(|key| key.0 == home) {
                    self.agenda.urgent(key);
                }
                self.history.watch_anew(home);
            }
        }
    }

    pub(super) fn rescan(&mut self) {
        self.rescan_at = self.clock.now().awake + RESCAN;
        self.agenda.is_long();
        self.processes.forget_strangers();
        self.look_at_config();
        self.processes.begin(self.clock.now().awake);
        self.look_at_homes();
        for home in self.homes.numbers() {
            self.look_into_home(home);
        }
        for key in self.fleet.keys() {
            self.agenda.sometime(key);
        }
        if !self.watcher.has_room() {
            // What could not be watched is looked at here, and only here.
            for key in self.history.iter() {
                self.agenda.sometime(key);
            }
        }
    }

    /// Looks into a folder whose session something is to be done with, to the end of its log if that can be had.
    pub(super) fn look_into_now(&mut self, key: &Key, round: &mut Round) {
        let begun = Instant::now();
        self.look_into(key, round);
        while self.agenda.is_reading(key) && begun.elapsed() < PATIENCE {
            self.look_into(key, round);
        }
    }

    /// Looks at everything here and now, for what must not rest on an old look. Only logs that take long are read later.
    pub(super) fn look_around(&mut self, round: &mut Round) {
        self.rescan();
        self.look_at_processes();
        while !self.agenda.only_reads() {
            self.work(round);
        }
    }

    /// Begins to compare the sessions that a home has with those that are known.
    pub(super) fn look_into_home(&mut self, home: usize) {
        if !self.homes.is_followed(home) {
            return;
        }
        let root = self.homes.root(home).to_owned();
        self.watch_roots(false);
        match session_ids(&root) {
            Ok(ids) => {
                self.agenda.listings.retain(|listing| listing.home != home);
                let sweep = self.history.begin_sweep();
                self.agenda.listings.push_back(Listing { home, ids, left: Vec::new(), sweep, held: HashSet::new() });
            }
            // What is known of it stands until it can be listed again, at the next rescan at the latest.
            Err(error) if !is_absence(&error) => {
                tracing::warn!("the sessions in {} cannot be listed: {error}", root.display());
            }
            Err(error) => {
                tracing::debug!(path = %root.display(), %error, "no sessions there");
                self.watcher.forget(&root);
                self.watch_roots(false);
                // Each of them finds that it is gone.
                for key in self.history.of_home(home).chain(self.fleet.keys().filter(|key| key.0 == home)) {
                    self.agenda.sometime(key);
                }
            }
        }
    }

    /// Goes on with the listing of a home.
    fn list_some(&mut self) {
        // The names wait for their look here, and there may be tens of thousands: no more are taken than can be looked at soon.
        if self.agenda.others() >= NAMES {
            return;
        }
        let Some(mut listing) = self.agenda.listings.pop_front() else { return };
        let home = listing.home;
        for _ in 0..NAMES {
            let Some(id) = listing.next() else {
                // What was not found may be gone.
                let missed = self.history.missed(home, listing.sweep);
                let held = self.fleet.keys().filter(|key| key.0 == home && !listing.held.contains(&key.1));
                for key in missed.into_iter().chain(held) {
                    self.agenda.sometime(key);
                }
                return;
            };
            if self.history.found(home, &id, listing.sweep) {
                continue;
            }
            let key = (home, id);
            if self.fleet.folder(&key).is_some() {
                listing.held.insert(key.1);
            } else {
                self.agenda.sometime(key);
            }
        }
        self.agenda.listings.push_back(listing);
    }

    /// Watches the homes and the ways to them.
    fn watch_roots(&mut self, anew: bool) {
        let roots: Vec<_> = self.homes.followed().map(|(_, root)| root).collect();
        self.watcher.watch_ways(&roots, anew);
    }

    pub(super) fn look_into(&mut self, key: &Key, round: &mut Round) {
        if !self.homes.is_followed(key.0) {
            return;
        }
        let mut reading = reading(&self.config, &self.owners, &self.processes, self.clock.now());
        reading.look.until = Some(Instant::now() + SLICE);
        if let Some(folder) = self.fleet.folder(key) {
            let mut looked = folder.look(&reading, &mut self.buffer);
            if looked.is_ok() && !WATCHES_TREES && self.watcher.watch_session(key, folder.path()) {
                looked = folder.look(&reading, &mut self.buffer);
            }
            return match looked {
                Ok(Looked::Whole) => {
                    self.agenda.is_read(key);
                    self.looked_into(key, round);
                }
                // What it says in the middle of what happened is not what is so now.
                Ok(Looked::More) if self.agenda.read_on(key).elapsed() < LONG => {}
                Ok(Looked::More) => self.looked_into(key, round),
                Err(_) => self.remove(key, round),
            };
        }
        if let Some(past) = Root::at(self.homes.root(key.0)).past(&key.1, &reading) {
            return self.is_past(key, past);
        }
        let mut folder = Folder::new(self.homes.root(key.0), &key.1);
        // Before the look: what is written from now on is told.
        let is_watched = !WATCHES_TREES && self.watcher.watch_session(key, folder.path());
        let Ok(looked) = folder.look(&reading, &mut self.buffer) else { return self.remove(key, round) };
        if folder.session.unread {
            if is_watched {
                self.watcher.is_old(key);
            }
            let Session { touched, has_log, .. } = folder.session;
            return self.is_past(key, Glimpse { touched, has_log });
        }
        self.seen.recall(&mut folder.session);
        if looked == Looked::More {
            self.agenda.read_on(key);
        }
        self.hold(key, folder, round);
    }

    /// Nothing but its folder matters of this session.
    pub(super) fn is_past(&mut self, key: &Key, Glimpse { touched, has_log }: Glimpse) {
        if has_log && touched >= self.clock.now().wall - self.config.list.ended_for {
            self.history.may_be_recent(key, touched);
        }
        self.history.insert(key);
    }

    pub(super) fn hold(&mut self, key: &Key, mut folder: Folder, round: &mut Round) {
        self.history.remove(key);
        folder.session.control.resumed = self.resumed_at(key);
        if self.fleet.insert(key.clone(), folder, self.clock.now()) {
            round.changed.push(key.clone());
        }
        self.looked_into(key, round);
    }

    /// Waits for the end of the processes that a folder's locks name, and judges the session anew.
    pub(super) fn looked_into(&mut self, key: &Key, round: &mut Round) {
        let now = self.clock.now();
        if let Some(folder) = self.fleet.folder(key) {
            for pid in self.owners.follow(key, folder, now) {
                if folder.session.owner.live().is_some() {
                    self.processes.forget(pid);
                    folder.process_ended(pid, now.wall);
                }
            }
        }
        self.look_at_server(key, now);
        self.look_at_bridge(key);
        self.judge(key, round);
    }

    /// Judges a session anew, and tells who works on it what is seen now.
    pub(super) fn judge(&mut self, key: &Key, round: &mut Round) {
        if self.fleet.judge(key, self.clock.now()) {
            round.changed.push(key.clone());
        }
        self.tell_sight(key);
    }

    /// Tells who works on a session what is seen of it now.
    pub(super) fn tell_sight(&self, key: &Key) {
        if let Some(entry) = self.fleet.get(key) {
            self.acting.see(key, entry.session(), entry.verdict.status);
        }
    }

    pub(super) fn remove(&mut self, key: &Key, round: &mut Round) {
        self.agenda.is_read(key);
        self.watcher.forget(&self.homes.folder(key));
        self.sought.forget(key);
        self.owners.forget(key);
        self.acting.forget(key);
        if self.fleet.remove(key) | self.history.remove(key) {
            round.removed.push(key.clone());
        }
    }

    pub(super) fn owner_ended(&mut self, pid: u32) {
        let Moment { wall: now, awake } = self.clock.now();
        self.owners.has_ended(pid);
        self.processes.forget(pid);
        // Another process may have open what this one leaves.
        self.processes.look_soon(awake);
        for key in self.fleet.with_pid(pid) {
            if let Some(folder) = self.fleet.folder(&key) {
                folder.process_ended(pid, now);
            }
            // What it wrote last, and whether it let go of its lock, is read before it is called gone.
            self.agenda.urgent(key);
        }
    }

    /// Adds a few more folders to the watch.
    fn watch_more(&mut self, round: &mut Round) {
        if !self.history.has_unwatched() {
            return;
        }
        for _ in 0..WATCHES {
            if !self.watcher.has_room() {
                self.history.watch_none();
            }
            let Some(key) = self.history.next_unwatched() else { break };
            if self.watcher.watch_old_session(&key, &self.homes.folder(&key)) {
                // It may have been resumed before it was watched.
                self.look_into(&key, round);
            }
        }
        if !self.history.has_unwatched() {
            self.history.watch_none();
            heap::give_back();
            self.tell_trouble();
        }
    }

    pub(super) fn tell_trouble(&mut self) {
        if let Some(trouble) = &self.watcher.trouble {
            tracing::warn!("{trouble}");
        }
    }
}
