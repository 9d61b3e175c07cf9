//! The one loop: observations and timers in, the core judges, a [`View`] shows.
//!
//! Nothing polls. The loop sleeps until a file event, the end of an owner, a signal, or the earliest moment at which some
//! verdict can change by itself. Beside these there is only a slow rescan, for file systems that lose events, and that only
//! while there is something to watch.

mod fleet;

pub use fleet::{BUSY, Entry, Fleet, Key};

use crate::clock::Clock;
use crate::config::Config;
use crate::core::fleet::Session;
use crate::core::owner::Owner;
use crate::core::time::{Moment, Span, Time};
use crate::seen::Seen;
use crate::signals::{Signal, Signals};
use crate::watch::process::Exits;
use crate::watch::store::{Folder, Reading, SESSIONS, session_ids};
use crate::watch::tail::Look;
use crate::watch::watcher::{Hints, WATCHES_TREES, Watcher};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

/// How often everything is looked at without a reason (file systems that lose events, watches that could not be had).
const RESCAN: Span = Span::seconds(60);
/// What is due within this of each other is done in one waking: a silence is told a blink later, and twenty sessions do not
/// wake the program twenty times.
const TOGETHER: Span = Span(100);
/// How many folders are added to the watch between two looks at what happened.
const WATCH_BATCH: usize = 64;

/// What the user asks of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// These sessions were looked at.
    Seen(Vec<Key>),
    /// All sessions were looked at.
    SeenAll,
    /// Look at everything now.
    Refresh,
    /// Call the view again, though nothing changed.
    Redraw,
    /// End the program.
    Quit,
}

/// Shows what the engine sees.
pub trait View {
    /// Something changed: `changed` are the sessions whose row differs from what was told before, `removed` those that
    /// went, which may have come back since. Called first with every session. Breaks to end the program.
    fn show(&mut self, fleet: &Fleet, changed: &[Key], removed: &[Key], now: Moment) -> ControlFlow<()>;

    /// Sessions that only a look at their folder is known of: shown once, not kept.
    fn show_history(&mut self, _sessions: &mut dyn Iterator<Item = Session>, _now: Moment) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// When, by the awake clock, the view wants to be called though nothing changed.
    fn redraw_at(&self) -> Option<Time> {
        None
    }

    /// Gives the terminal back, for as long as the program is stopped.
    fn suspend(&mut self) {}

    /// Takes the terminal again, or anew after its size changed: nothing of what was drawn can be relied on.
    fn resume(&mut self) {}

    /// Whether [`show_history`](Self::show_history) is wanted.
    fn wants_history(&self) -> bool {
        false
    }
}

/// The loop and all that it holds.
pub struct Engine {
    config: Config,
    homes: Vec<PathBuf>,
    clock: Clock,
    fleet: Fleet,
    /// Sessions of which nothing but their folder matters.
    history: HashSet<Key>,
    /// Those of them that were shown.
    told_history: HashSet<Key>,
    watcher: Watcher,
    /// Folders of the history that are still to be watched.
    unwatched: Vec<Key>,
    exits: Option<Exits>,
    ended: mpsc::UnboundedReceiver<u32>,
    seen: Seen,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Keeps the channel of the commands open where nobody else does.
    commander: mpsc::UnboundedSender<Command>,
    /// Processes whose end will be told.
    known: HashSet<u32>,
    buffer: Vec<u8>,
    rescan_at: Time,
}

impl Engine {
    /// An engine for these homes. Nothing is read before [`run`](Self::run).
    pub fn new(homes: &[PathBuf], config: Config, seen: Seen) -> Self {
        let (commander, commands) = mpsc::unbounded_channel();
        let clock = Clock::start();
        let homes: Vec<_> = homes.iter().map(|home| home.join(SESSIONS)).collect();
        let (tell, ended) = mpsc::unbounded_channel();
        let exits = Exits::new(move |pid| {
            let _ = tell.send(pid); // fails only when the engine is gone
        });
        if let Err(error) = &exits {
            tracing::warn!(%error, "the end of owners cannot be waited for; looking once a minute instead");
        }
        Self {
            watcher: Watcher::new(homes.clone(), seen.path().map(Path::to_owned)),
            fleet: Fleet::new(config.limits),
            config,
            homes,
            clock,
            history: HashSet::new(),
            told_history: HashSet::new(),
            unwatched: Vec::new(),
            exits: exits.ok(),
            ended,
            seen,
            commands,
            commander,
            known: HashSet::new(),
            buffer: Vec::new(),
            rescan_at: clock.now().awake + RESCAN,
        }
    }

    /// Where commands are sent.
    pub fn commander(&self) -> mpsc::UnboundedSender<Command> {
        self.commander.clone()
    }

    /// Runs until the view or a signal ends it.
    ///
    /// # Errors
    /// Where the system refuses to have its signals waited for.
    pub async fn run(mut self, view: &mut dyn View) -> anyhow::Result<()> {
        let mut signals = Signals::new()?;
        let mut round = Round::default();
        self.watch_seen();
        for home in 0..self.homes.len() {
            self.look_into_home(home, &mut round);
        }
        self.load_recent(&mut round);
        self.tell_trouble();
        round.changed.extend(self.fleet.entries().map(|(key, _)| key.clone()));
        let mut flow = self.show(&mut round, view);
        if view.wants_history() && flow.is_continue() {
            flow = self.show_history(view);
        }
        while flow.is_continue() {
            let wake = self.clock.instant(self.wake_at(view)).into();
            tokio::select! {
                biased;
                signal = signals.next() => match signal {
                    Signal::End => break,
                    Signal::Redraw => {
                        view.resume();
                        round.redraw = true;
                    }
                    Signal::Suspend => {
                        view.suspend();
                        signals.suspend();
                    }
                },
                hints = self.watcher.changed() => self.follow(hints, &mut round),
                Some(command) = self.commands.recv() => match command {
                    Command::Quit => break,
                    Command::Refresh => self.rescan(&mut round),
                    Command::Redraw => round.redraw = true,
                    Command::Seen(keys) => self.mark_seen(&keys, &mut round),
                    Command::SeenAll => {
                        let keys: Vec<_> = self.fleet.keys().collect();
                        self.mark_seen(&keys, &mut round);
                    }
                },
                Some(pid) = self.ended.recv() => self.owner_ended(pid, &mut round),
                () = sleep_until(wake), if self.unwatched.is_empty() => {}
                () = tokio::task::yield_now(), if !self.unwatched.is_empty() => self.watch_more(&mut round),
            }
            self.recheck(view, &mut round);
            flow = self.show(&mut round, view);
        }
        Ok(())
    }

    fn show(&mut self, round: &mut Round, view: &mut dyn View) -> ControlFlow<()> {
        self.fleet.name_rows(&mut round.changed);
        // What is no longer to be shown is gone, for whoever looks.
        round.removed.extend(round.changed.extract_if(.., |key| self.fleet.get(key).is_none()));
        if round.changed.is_empty() && round.removed.is_empty() && !round.redraw {
            return ControlFlow::Continue(());
        }
        for keys in [&mut round.changed, &mut round.removed] {
            keys.sort_unstable();
            keys.dedup();
        }
        let flow = view.show(&self.fleet, &round.changed, &round.removed, self.clock.now());
        *round = Round::default();
        flow
    }

    /// Every session that was left unread, one after the other, none of them kept.
    fn show_history(&mut self, view: &mut dyn View) -> ControlFlow<()> {
        let now = self.clock.now();
        let (reading, buffer) = (reading(&self.config, &self.known, now), &mut self.buffer);
        let mut sessions = self.history.iter().filter_map(|(home, id)| {
            let mut folder = Folder::new(&self.homes[*home], id);
            folder.look(&reading, buffer).ok()?;
            folder.session.about = folder.about();
            folder.session.is_listed().then_some(folder.session).inspect(|_| {
                self.told_history.insert((*home, id.clone()));
            })
        });
        view.show_history(&mut sessions, now)
    }

    /// The earliest moment at which there is something to do without anything having happened.
    fn wake_at(&self, view: &dyn View) -> Time {
        let rescan = self.needs_rescan().then_some(self.rescan_at);
        // An hour: nothing is due then, but a bound costs nothing and forgives a clock that misbehaves.
        let idle = self.clock.now().awake + Span::hours(1);
        let verdicts = self.fleet.wake_at().map(|at| at + TOGETHER);
        verdicts.into_iter().chain(rescan).chain(view.redraw_at()).fold(idle, Time::min)
    }

    fn needs_rescan(&self) -> bool {
        self.fleet.keys().next().is_some() || !self.history.is_empty() || !self.watcher.has_room()
    }

    fn follow(&mut self, hints: Hints, round: &mut Round) {
        if (hints.seen || hints.all) && self.seen.reload() {
            self.take_over_seen(round);
        }
        for path in &hints.gone {
            self.watcher.forget(path);
        }
        if hints.all {
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

    fn rescan(&mut self, round: &mut Round) {
        self.rescan_at = self.clock.now().awake + RESCAN;
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
    fn look_into_home(&mut self, home: usize, round: &mut Round) {
        let root = self.homes[home].clone();
        self.watch_roots();
        let ids: HashSet<Box<str>> = match session_ids(&root) {
            Ok(ids) => ids.into_iter().collect(),
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
    fn watch_roots(&mut self) {
        // What is made while it is not watched yet is found by looking again.
        for _ in 0..8 {
            let nearest = |root: &PathBuf| root.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned);
            let wanted: HashSet<_> = self.homes.iter().filter_map(nearest).collect();
            for path in &wanted {
                self.watcher.watch(path);
            }
            if wanted == self.homes.iter().filter_map(nearest).collect() {
                return self.watcher.watch_only_above(&self.homes, &wanted);
            }
        }
    }

    fn look_into(&mut self, key: &Key, round: &mut Round) {
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

    fn hold(&mut self, key: &Key, folder: Folder, round: &mut Round) {
        self.history.remove(key);
        self.told_history.remove(key);
        if self.fleet.insert(key.clone(), folder, self.clock.now()) {
            round.changed.push(key.clone());
        }
        self.looked_into(key, round);
    }

    /// Waits for the end of the processes that a folder's locks name, and judges the session anew.
    fn looked_into(&mut self, key: &Key, round: &mut Round) {
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
        if self.fleet.judge(key, now) {
            round.changed.push(key.clone());
        }
    }

    /// The user looked at these: remembered, and what rested on not having looked is judged anew.
    fn mark_seen(&mut self, keys: &[Key], round: &mut Round) {
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
    fn watch_seen(&mut self) {
        if let Some(folder) = self.seen.path().and_then(Path::parent)
            && std::fs::create_dir_all(folder).is_ok()
        {
            self.watcher.watch(folder);
        }
    }

    /// Another process wrote down what the user looked at.
    fn take_over_seen(&mut self, round: &mut Round) {
        let now = self.clock.now();
        for key in self.fleet.keys().collect::<Vec<_>>() {
            if let Some(folder) = self.fleet.folder(&key) {
                folder.session.seen = self.seen.at(&key.1);
            }
            if self.fleet.judge(&key, now) {
                round.changed.push(key);
            }
        }
        round.redraw = true;
    }

    fn remove(&mut self, key: &Key, round: &mut Round) {
        self.watcher.forget(&self.homes[key.0].join(&*key.1));
        self.history.remove(key);
        if self.fleet.remove(key) | self.told_history.remove(key) {
            round.removed.push(key.clone());
        }
    }

    /// Reads how the last ended sessions ended: those that a list shows.
    fn load_recent(&mut self, round: &mut Round) {
        let now = self.clock.now();
        let earliest = now.wall - self.config.list.ended_for;
        let mut recent = Vec::new();
        for key in &self.history {
            let mut folder = Folder::new(&self.homes[key.0], &key.1);
            folder.session.seen = self.seen.at(&key.1);
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

    fn owner_ended(&mut self, pid: u32, round: &mut Round) {
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
    fn watch_more(&mut self, round: &mut Round) {
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

    fn tell_trouble(&mut self) {
        if let Some(trouble) = &self.watcher.trouble {
            tracing::warn!("{trouble}");
        }
    }

    /// Judges again what time alone may have changed.
    fn recheck(&mut self, view: &dyn View, round: &mut Round) {
        let now = self.clock.now();
        round.changed.extend(self.fleet.take_samples(now));
        round.changed.extend(self.fleet.recheck(now));
        if self.rescan_at <= now.awake {
            self.rescan(round);
        }
        round.redraw |= view.redraw_at().is_some_and(|at| at <= now.awake);
    }
}

/// What one turn of the loop found.
#[derive(Default)]
struct Round {
    changed: Vec<Key>,
    removed: Vec<Key>,
    redraw: bool,
}

fn reading<'a>(config: &'a Config, known: &'a HashSet<u32>, now: Moment) -> Reading<'a> {
    Reading { look: Look { now, limits: &config.limits }, owner_names: &config.owners.names, known, all: false }
}
