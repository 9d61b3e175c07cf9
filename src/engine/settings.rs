//! The settings while the program runs: what is written into the file counts a moment later, without a restart.
//!
//! An editor may empty a file before it writes it, or put another in its place; so the file is read when it has been left alone
//! for a moment. A key that is wrong costs itself alone: the rest counts, and it is said where the file is wrong. A file that
//! nothing can be read from changes nothing. What cannot change while the program runs says so.
//!
//! Where no event tells of it (the folder is another now, or was made since, or there are no watches to be had), the slow look
//! at everything finds that the file is not the one that was read.

use super::status_log::logs;
use super::{Engine, Key, Round, View};
use crate::agent::copilot::store::SESSIONS;
use crate::config::{self, Config, Problem};
use crate::core::action::ServerState;
use crate::core::time::{Span, Time};
use crate::system::paths;
use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The file is read when nothing was written to it for so long.
const SETTLES: Span = Span(200);

/// Tells the homes that settings lead to.
pub(crate) type HomesOf = Box<dyn Fn(&Config) -> Vec<PathBuf> + Send>;

/// Where the settings come from.
pub(crate) struct Source {
    /// The file.
    pub path: PathBuf,
    /// What was wrong with it when it was read at the start.
    pub problems: Vec<Problem>,
    /// The homes that settings lead to.
    pub homes: HomesOf,
}

/// What a view is told of the settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    /// Those that are in force.
    pub config: &'a Config,
    /// The homes that they lead to.
    pub homes: &'a [PathBuf],
    /// What is wrong with the file. Where that spoils all of it, those of before are in force.
    pub problems: &'a [Problem],
    /// What counts from the next start on, in words.
    pub later: &'a [String],
    /// The program has just started: what is wrong was told already.
    pub at_start: bool,
}

impl Settings<'_> {
    /// What there is to say of them, in lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let (problems, later) = (self.problems.iter(), self.later.iter());
        if self.at_start {
            return problems.map(ToString::to_string).collect();
        }
        let mut lines: Vec<_> = problems
            .map(|problem| match problem.spoils_all() {
                true => format!("{} The previous settings stay in force.", problem.complaint()),
                false => problem.to_string(),
            })
            .collect();
        lines.extend(later.cloned());
        lines
    }
}

/// The settings as they are followed.
pub(super) struct Followed {
    source: Source,
    /// What was last read and is good, whole: some of it may count only later.
    good: Config,
    /// When the file is to be read, by the awake clock.
    pub(super) due: Option<Time>,
    /// What the file looked like when it was last read.
    mark: Mark,
}

/// What tells a file from what stood there before, without opening it; `None` where none can be looked at.
#[derive(PartialEq, Eq)]
struct Mark(Option<(Option<SystemTime>, u64, Inode)>);

/// Which file it is, and when anything of it changed last, who may read it included.
#[cfg(unix)]
type Inode = (u64, i64, i64);
#[cfg(not(unix))]
type Inode = ();

impl Mark {
    fn of(path: &Path) -> Self {
        Self(fs::metadata(path).ok().map(|meta| (meta.modified().ok(), meta.len(), inode(&meta))))
    }
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> Inode {
    use std::os::unix::fs::MetadataExt;
    (meta.ino(), meta.ctime(), meta.ctime_nsec())
}

#[cfg(not(unix))]
const fn inode(_: &Metadata) -> Inode {}

impl Engine {
    /// Follows the settings from here on. To be called before [`run`](Self::run).
    pub(crate) fn take_settings_from(&mut self, source: Source) {
        let mark = Mark::of(&source.path);
        self.source = Some(Followed { source, good: self.config.clone(), due: None, mark });
    }

    pub(super) fn watch_config(&mut self) {
        if let Some(followed) = &self.source {
            self.watcher.watch_config(&followed.source.path);
        }
    }

    /// Begins to watch the file, and tells the view what is wrong with it.
    pub(super) fn begin_to_follow_config(&mut self, view: &mut dyn View) {
        let Some(followed) = &self.source else { return };
        let path = followed.source.path.clone();
        // In a folder of ours that is not there yet, the file may be made later.
        if let (Some(folder), Some(project)) = (path.parent(), paths::project())
            && folder == project.config_dir()
        {
            let _ = paths::make_folder(folder); // where it cannot be made, no file can be made in it either
        }
        self.watch_config();
        self.tell_settings(view, &[], true);
    }

    /// Something happened to the file.
    pub(super) fn config_was_written(&mut self) {
        let due = self.clock.now().awake + SETTLES;
        if let Some(followed) = &mut self.source {
            followed.due = Some(due);
        }
    }

    /// Looks whether the file was written without a word of it, and at what is to be watched.
    pub(super) fn look_at_config(&mut self) {
        let Some(followed) = &self.source else { return };
        if followed.due.is_none() && Mark::of(&followed.source.path) != followed.mark {
            // The folder that is watched may not be the one that stands there now.
            self.watcher.renew();
            self.config_was_written();
        }
        self.watch_config();
    }

    /// Reads the file, when it is time.
    pub(super) fn follow_config(&mut self, view: &mut dyn View, round: &mut Round) {
        let now = self.clock.now().awake;
        let Some(followed) = self.source.as_mut().filter(|followed| followed.due.is_some_and(|due| due <= now)) else {
            return;
        };
        followed.due = None;
        followed.mark = Mark::of(&followed.source.path);
        let (read, problems) = config::load(&followed.source.path);
        // It may be a link that leads elsewhere now.
        self.watch_config();
        let Some(followed) = &mut self.source else { return };
        let is_news = problems != followed.source.problems;
        if is_news {
            problems.iter().for_each(|problem| tracing::warn!("{problem}"));
        }
        let spoilt = problems.iter().any(Problem::spoils_all);
        followed.source.problems = problems;
        if spoilt {
            if is_news {
                self.tell_settings(view, &[], false);
                round.redraw = true;
            }
            return;
        }
        let before = std::mem::replace(&mut followed.good, read.clone());
        if read != before || is_news {
            let later = self.take_settings(read, round);
            tracing::info!(tag = "settings", "the settings were changed");
            later.iter().for_each(|line| tracing::warn!("{line}"));
            let logged = logs();
            self.tell_settings(view, &later, false);
            if logs() && !logged {
                self.log_anew();
            }
            round.redraw = true;
        }
    }

    fn tell_settings(&self, view: &mut dyn View, later: &[String], at_start: bool) {
        let Some(followed) = &self.source else { return };
        let homes = (followed.source.homes)(&self.config);
        let problems = &followed.source.problems;
        view.configure(&Settings { config: &self.config, homes: &homes, problems, later, at_start });
    }

    /// Puts settings in force; what must wait for the next start is told.
    fn take_settings(&mut self, read: Config, round: &mut Round) -> Vec<String> {
        let mut later = Vec::new();
        let before = std::mem::replace(&mut self.config, read);
        if self.config.owners != before.owners {
            // Who may answer a request hangs on it, in more than one place: none of them may be behind another.
            later.push("owners.names takes effect when Pilotlight starts next.".to_owned());
            self.config.owners = before.owners;
        }
        if self.config.actions.permissions != before.actions.permissions {
            // Whatever can write a file could otherwise have its own requests approved, there and then.
            later.push("actions.permissions takes effect when Pilotlight starts next.".to_owned());
            self.config.actions.permissions = before.actions.permissions;
        }
        self.fleet.set_limits(self.config.limits);
        self.follow_homes(&mut later, round);
        if self.config.list != before.list {
            self.find_recent();
        }
        for key in self.fleet.keys().collect::<Vec<_>>() {
            if self.config.servers != before.servers
                && let Some(folder) = self.fleet.folder(&key)
                && matches!(folder.session.control.server, ServerState::Refused(_) | ServerState::Nowhere)
            {
                folder.session.control.server = ServerState::Unknown;
            }
            self.looked_into(&key, round);
        }
        later
    }

    /// Follows the homes that the settings lead to now, and no others.
    fn follow_homes(&mut self, later: &mut Vec<String>, round: &mut Round) {
        let Some(followed) = &self.source else { return };
        let wanted: Vec<_> =
            (followed.source.homes)(&self.config).into_iter().map(|home| home.join(SESSIONS)).collect();
        let is_held = |engine: &Self, home: usize| {
            engine.fleet.keys().any(|key| key.0 == home && engine.acting.attached(&key).is_some())
        };
        for home in self.homes.numbers() {
            if wanted.iter().any(|root| root == self.homes.root(home)) {
                continue;
            }
            if is_held(self, home) {
                later.push(
                    "A home that was taken out stays until the next start: Pilotlight is attached to a session in it."
                        .into(),
                );
                continue;
            }
            let of_home = |key: &Key| key.0 == home;
            let keys: HashSet<_> = self.history.iter().chain(self.fleet.keys()).filter(of_home).collect();
            for key in keys {
                self.remove(&key, round);
            }
            self.agenda.forget_home(home);
            self.homes.leave(home);
            self.watcher.follow_root(home, None);
            // Another home may be the same folder by another name, or below it: its watches come back with the next look.
            self.watcher.forget(self.homes.root(home));
        }
        for root in wanted {
            if let Some(home) = self.homes.follow(root) {
                self.watcher.follow_root(home, Some(self.homes.root(home)));
            }
        }
        self.look_at_homes();
        for home in self.homes.numbers() {
            self.look_into_home(home);
        }
    }
}
