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
pub(super) struct Reload {
    source: Source,
    /// What was last read and is good, whole: some of it may count only later.
    good: Config,
    /// When the file is to be read, by the awake clock.
    due: Option<Time>,
    /// What the file looked like when it was last read.
    mark: Mark,
}

/// What came of reading the file.
#[derive(Debug)]
enum Read {
    /// Nothing that was not known.
    Nothing,
    /// Nothing can be read from it, which was not so before.
    Spoilt,
    /// These are to count.
    Settings(Box<Config>),
}

impl Reload {
    /// Follows a file that was read as these settings just now.
    pub(super) fn of(source: Source, config: &Config) -> Self {
        let mark = Mark::of(&source.path);
        Self { source, good: config.clone(), due: None, mark }
    }

    fn path(&self) -> &Path {
        &self.source.path
    }

    /// When the file is to be read, by the awake clock.
    pub(super) const fn due(&self) -> Option<Time> {
        self.due
    }

    /// Something happened to the file.
    fn was_written(&mut self, now: Time) {
        self.due = Some(now + SETTLES);
    }

    /// Whether it was written without a word of it.
    fn was_missed(&self) -> bool {
        self.due.is_none() && Mark::of(self.path()) != self.mark
    }

    /// Reads the file, when it is time.
    fn read(&mut self, now: Time) -> Option<Read> {
        self.due.take_if(|due| *due <= now)?;
        self.mark = Mark::of(self.path());
        let (read, problems) = config::load(self.path());
        let is_news = problems != self.source.problems;
        if is_news {
            problems.iter().for_each(|problem| tracing::warn!("{problem}"));
        }
        let is_spoilt = problems.iter().any(Problem::spoils_all);
        self.source.problems = problems;
        if is_spoilt {
            return Some(if is_news { Read::Spoilt } else { Read::Nothing });
        }
        let before = std::mem::replace(&mut self.good, read.clone());
        Some(if read != before || is_news { Read::Settings(Box::new(read)) } else { Read::Nothing })
    }

    /// The folders that hold the session folders of the homes that settings lead to.
    fn roots(&self, config: &Config) -> Vec<PathBuf> {
        (self.source.homes)(config).into_iter().map(|home| home.join(SESSIONS)).collect()
    }

    fn tell(&self, view: &mut dyn View, config: &Config, later: &[String], at_start: bool) {
        let homes = (self.source.homes)(config);
        view.configure(&Settings { config, homes: &homes, problems: &self.source.problems, later, at_start });
    }
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
        self.reload = Some(Reload::of(source, &self.config));
    }

    pub(super) fn watch_config(&mut self) {
        if let Some(reload) = &self.reload {
            self.watcher.watch_config(reload.path());
        }
    }

    /// Begins to watch the file, and tells the view what is wrong with it.
    pub(super) fn begin_to_follow_config(&mut self, view: &mut dyn View) {
        let Some(reload) = &self.reload else { return };
        // In a folder of ours that is not there yet, the file may be made later.
        if let (Some(folder), Some(project)) = (reload.path().parent(), paths::project())
            && folder == project.config_dir()
        {
            let _ = paths::make_folder(folder); // where it cannot be made, no file can be made in it either
        }
        reload.tell(view, &self.config, &[], true);
        self.watch_config();
    }

    /// Something happened to the file.
    pub(super) fn config_was_written(&mut self) {
        if let Some(reload) = &mut self.reload {
            reload.was_written(self.clock.now().awake);
        }
    }

    /// Looks whether the file was written without a word of it, and at what is to be watched.
    pub(super) fn look_at_config(&mut self) {
        if self.reload.as_ref().is_some_and(Reload::was_missed) {
            // The folder that is watched may not be the one that stands there now.
            self.watcher.renew();
            self.config_was_written();
        }
        self.watch_config();
    }

    /// Reads the file, when it is time.
    pub(super) fn follow_config(&mut self, view: &mut dyn View, round: &mut Round) {
        let now = self.clock.now().awake;
        let Some(read) = self.reload.as_mut().and_then(|reload| reload.read(now)) else { return };
        // It may be a link that leads elsewhere now.
        self.watch_config();
        let logged = logs();
        let later = match read {
            Read::Nothing => return,
            Read::Spoilt => Vec::new(),
            Read::Settings(read) => {
                let later = self.take_settings(*read, round);
                tracing::info!(tag = "settings", "the settings were changed");
                later.iter().for_each(|line| tracing::warn!("{line}"));
                later
            }
        };
        if let Some(reload) = &self.reload {
            reload.tell(view, &self.config, &later, false);
        }
        if logs() && !logged {
            self.log_anew();
        }
        round.redraw = true;
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
        let Some(wanted) = self.reload.as_ref().map(|reload| reload.roots(&self.config)) else { return };
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
            self.history.forget_home(home);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A file that was read, and is followed from then on.
    fn followed(path: &Path) -> Reload {
        let (config, problems) = config::load(path);
        let homes: HomesOf = Box::new(|_| vec!["/home".into()]);
        Reload::of(Source { path: path.to_owned(), problems, homes }, &config)
    }

    #[test]
    fn a_file_is_read_when_it_was_left_alone_for_a_moment() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("config.toml");
        let mut reload = followed(&path);
        assert!(!reload.was_missed() && reload.read(Time(0)).is_none());
        fs::write(&path, "[list]\nended-most = 3\n").unwrap();
        assert!(reload.was_missed());
        reload.was_written(Time(0));
        assert!(!reload.was_missed(), "it is to be read");
        reload.was_written(Time(150));
        assert!(reload.read(Time(349)).is_none());
        let Some(Read::Settings(read)) = reload.read(Time(350)) else { panic!("it was not read") };
        assert_eq!((read.list.ended_most, reload.due()), (3, None));
        reload.was_written(Time(400));
        assert!(matches!(reload.read(Time(600)), Some(Read::Nothing)), "it is as it was");
    }

    #[test]
    fn what_is_wrong_is_said_once_and_what_spoils_all_changes_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("config.toml");
        let mut reload = followed(&path);
        let mut writes = |text: &str| {
            fs::write(&path, text).unwrap();
            reload.was_written(Time(0));
            reload.read(Time(1000)).unwrap()
        };
        let wrong = "[list]\nended-most = \"many\"\n";
        assert!(matches!(writes(wrong), Read::Settings(read) if *read == Config::default()), "the rest counts");
        assert!(matches!(writes(wrong), Read::Nothing));
        assert!(matches!(writes("[list"), Read::Spoilt));
        assert!(matches!(writes("[list"), Read::Nothing));
        assert!(matches!(writes(""), Read::Settings(_)), "that it is right again is news");
    }
}
