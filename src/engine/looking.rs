//! What the loop looks at: homes, folders, owners, and what the user has looked at.

use super::{Engine, Key, RESCAN, Round, WATCH_BATCH, reading};
use crate::core::action::Reach;
use crate::core::owner::Owner;
use crate::core::time::Moment;
use crate::watch::store::{Folder, is_absence, session_ids};
use crate::watch::watcher::{Hints, WATCHES_TREES};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

impl Engine {
    pub(super) fn follow(&mut self, hints: Hints, round: &mut Round) {
        if hints.config || hints.all {
            self.config_was_written();
        }
        if (hints.seen || hints.all) && self.seen.reload() {
            self.take_over_seen(round);
        }
        for path in &hints.gone {
            self.watcher.forget(path);
        }
        if hints.all {
            self.watcher.renew();
            return self.rescan(round);
        }
        let lost: Vec<_> = (0..self.homes.len())
            .filter(|&home| self.homes[home].ancestors().any(|path| hints.gone.contains(path)))
            .collect();
        for home in hints.homes {
            self.look_into_home(home, round);
        }
        for key in hints.folders {
            self.look_into(&key, round);
        }
        // With a home every watch below it went.
        for home in lost {
            let keys: Vec<_> = self.fleet.keys().filter(|key| key.0 == home).collect();
            for key in keys {
                self.look_into(&key, round);
            }
            self.unwatched.extend(self.history.iter().filter(|key| key.0 == home && !WATCHES_TREES).cloned());
        }
    }

    pub(super) fn rescan(&mut self, round: &mut Round) {
        self.rescan_at = self.clock.now().awake + RESCAN;
        self.look_at_config();
        for home in 0..self.homes.len() {
            self.look_into_home(home, round);
        }
        let keys: Vec<_> = self.fleet.keys().collect();
        for key in keys {
            self.look_into(&key, round);
        }
        if !self.watcher.has_room() {
            // What could not be watched is looked at here, and only here.
            let keys: Vec<_> = self.history.iter().cloned().collect();
            for key in keys {
                self.look_into(&key, round);
            }
        }
    }

    /// Compares the sessions that a home has with those that are known.
    pub(super) fn look_into_home(&mut self, home: usize, round: &mut Round) {
        if self.retired.contains(&home) {
            return;
        }
        let root = self.homes[home].clone();
        self.watch_roots();
        let ids: HashSet<Box<str>> = match session_ids(&root) {
            Ok(ids) => ids.into_iter().collect(),
            // What is known of it stands until it can be listed again, at the next rescan at the latest.
            Err(error) if !is_absence(&error) => {
                return tracing::warn!("the sessions in {} cannot be listed: {error}", root.display());
            }
            Err(error) => {
                tracing::debug!(path = %root.display(), %error, "no sessions there");
                self.watcher.forget(&root);
                self.watch_roots();
                HashSet::new()
            }
        };
        let gone = |key: &Key| key.0 == home && !ids.contains(&key.1);
        let lost: Vec<_> = self.history.iter().cloned().chain(self.fleet.keys()).filter(gone).collect();
        for key in lost {
            self.remove(&key, round);
        }
        for id in ids {
            let key = (home, id);
            if self.fleet.get(&key).is_none() && !self.history.contains(&key) {
                self.look_into(&key, round);
            }
        }
    }

    /// Watches the homes, and as long as one does not exist, the nearest folder above it that does.
    pub(super) fn watch_roots(&mut self) {
        // What is made while it is not watched yet is found by looking again.
        for _ in 0..8 {
            let nearest = |root: &PathBuf| root.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned);
            let followed = || self.homes.iter().enumerate().filter(|(home, _)| !self.retired.contains(home));
            let wanted: HashSet<_> = followed().filter_map(|(_, root)| nearest(root)).collect();
            for path in &wanted {
                self.watcher.watch(path);
            }
            if wanted == followed().filter_map(|(_, root)| nearest(root)).collect() {
                return self.watcher.watch_only_above(&self.homes, &wanted);
            }
        }
    }

    pub(super) fn look_into(&mut self, key: &Key, round: &mut Round) {
        if self.retired.contains(&key.0) {
            return;
        }
        let reading = reading(&self.config, &self.known, self.clock.now());
        if let Some(folder) = self.fleet.folder(key) {
            return match folder.look(&reading, &mut self.buffer) {
                Ok(()) => {
                    if !WATCHES_TREES && self.watcher.watch_anew(folder.path()) {
                        let _ = folder.look(&reading, &mut self.buffer);
                    }
                    self.looked_into(key, round);
                }
                Err(_) => self.remove(key, round),
            };
        }
        let mut folder = Folder::new(&self.homes[key.0], &key.1);
        folder.session.seen = self.seen.at(&key.1);
        folder.session.live.attached = self.seen.attached(&key.1);
        if folder.look(&reading, &mut self.buffer).is_err() {
            return self.remove(key, round);
        }
        if folder.session.unread {
            if self.history.insert(key.clone()) && !WATCHES_TREES {
                self.unwatched.push(key.clone());
            }
            return;
        }
        if !WATCHES_TREES && self.watcher.watch(folder.path()) {
            // What was written between the look and the watch was not told.
            let _ = folder.look(&reading, &mut self.buffer);
        }
        self.hold(key, folder, round);
    }

    pub(super) fn hold(&mut self, key: &Key, folder: Folder, round: &mut Round) {
        self.history.remove(key);
        self.told_history.remove(key);
        if self.fleet.insert(key.clone(), folder, self.clock.now()) {
            round.changed.push(key.clone());
        }
        self.looked_into(key, round);
    }

    /// Waits for the end of the processes that a folder's locks name, and judges the session anew.
    pub(super) fn looked_into(&mut self, key: &Key, round: &mut Round) {
        let now = self.clock.now();
        if let (Some(exits), Some(folder)) = (&self.exits, self.fleet.folder(key)) {
            let pids: Vec<_> = folder.pids().filter(|pid| !self.known.contains(pid)).collect();
            for pid in pids {
                match exits.watch(pid) {
                    Ok(true) => {
                        self.known.insert(pid);
                    }
                    // It ended between the look at it and this.
                    Ok(false) if matches!(folder.session.owner, Owner::Alive { .. }) => {
                        folder.process_ended(pid, now.wall);
                    }
                    Ok(false) => {}
                    Err(error) => tracing::debug!(pid, %error, "its end will not be told"),
                }
            }
        }
        self.look_at_server(key, now);
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

    /// Looks for the server of a new owner, and once more where there was none and a request waits.
    fn look_at_server(&mut self, key: &Key, now: Moment) {
        let Some(folder) = self.fleet.folder(key) else { return };
        let session = &mut folder.session;
        let alive = matches!(session.owner, Owner::Alive { .. });
        // One that cannot be read for once is not gone, and to leave it may end its session.
        let gone = matches!(session.owner, Owner::Gone { .. } | Owner::Never);
        // What the server said of its work was said before what is in the log now.
        let said = self.acting.said_at(key);
        if session.facts.progress.is_some_and(|progress| said.is_some_and(|said| progress.awake > said)) {
            session.live.has_active_work = session.live.has_active_work.filter(|active| *active);
        }
        let due = match session.dealings.reach {
            Reach::Unknown => alive,
            Reach::Nowhere => !alive || !session.facts.requests.is_empty() || self.rescan_at <= now.awake,
            Reach::Listens | Reach::Refused(_) => !alive,
            Reach::Attached => gone,
            Reach::Hosted(_) => false,
        };
        if due {
            if gone {
                self.acting.let_go(key);
            }
            self.reach(key);
        }
    }

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
            && crate::paths::make_folder(folder).is_ok()
        {
            self.watcher.watch(folder);
        }
    }

    /// Another process wrote down what the user looked at.
    pub(super) fn take_over_seen(&mut self, round: &mut Round) {
        let now = self.clock.now();
        for key in self.fleet.keys().collect::<Vec<_>>() {
            if let Some(folder) = self.fleet.folder(&key) {
                folder.session.seen = self.seen.at(&key.1);
                folder.session.live.attached = self.seen.attached(&key.1);
            }
            if self.fleet.judge(&key, now) {
                round.changed.push(key);
            }
        }
        round.redraw = true;
    }

    pub(super) fn remove(&mut self, key: &Key, round: &mut Round) {
        self.watcher.forget(&self.homes[key.0].join(&*key.1));
        self.history.remove(key);
        if self.fleet.remove(key) | self.told_history.remove(key) {
            round.removed.push(key.clone());
        }
    }

    /// Reads how the last ended sessions ended: those that a list shows.
    pub(super) fn load_recent(&mut self, round: &mut Round) {
        let now = self.clock.now();
        let earliest = now.wall - self.config.list.ended_for;
        let mut recent = Vec::new();
        for key in &self.history {
            let mut folder = Folder::new(&self.homes[key.0], &key.1);
            folder.session.seen = self.seen.at(&key.1);
            folder.session.live.attached = self.seen.attached(&key.1);
            let looked = folder.look(&reading(&self.config, &self.known, now), &mut self.buffer);
            if looked.is_ok() && folder.session.has_log && folder.session.touched >= earliest {
                recent.push((folder.session.touched, key.clone(), folder));
            }
        }
        recent.sort_unstable_by_key(|(touched, ..)| std::cmp::Reverse(*touched));
        recent.truncate(self.config.list.ended_most);
        for (_, key, mut folder) in recent {
            if !WATCHES_TREES {
                self.watcher.watch(folder.path());
            }
            folder.read_history(&reading(&self.config, &self.known, now), &mut self.buffer);
            self.hold(&key, folder, round);
        }
    }

    pub(super) fn owner_ended(&mut self, pid: u32, round: &mut Round) {
        self.known.remove(&pid);
        let now = self.clock.now().wall;
        for key in self.fleet.with_pid(pid) {
            if let Some(folder) = self.fleet.folder(&key) {
                folder.process_ended(pid, now);
            }
            // What it wrote last, and whether it let go of its lock, is read before it is called gone.
            self.look_into(&key, round);
        }
    }

    /// Adds a few more folders to the watch.
    pub(super) fn watch_more(&mut self, round: &mut Round) {
        for _ in 0..WATCH_BATCH {
            let Some(key) = self.unwatched.pop() else { break };
            if !self.watcher.has_room() {
                self.unwatched.clear();
                break;
            }
            if self.history.contains(&key) && self.watcher.watch(&self.homes[key.0].join(&*key.1)) {
                // It may have been resumed before it was watched.
                self.look_into(&key, round);
            }
        }
        if self.unwatched.is_empty() {
            self.unwatched.shrink_to_fit();
            self.tell_trouble();
        }
    }

    pub(super) fn tell_trouble(&mut self) {
        if let Some(trouble) = &self.watcher.trouble {
            tracing::warn!("{trouble}");
        }
    }
}
