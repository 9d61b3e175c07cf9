//! The settings file while the program runs: a change of it takes effect a moment later, without a restart.
//!
//! An editor may empty a file before it writes it, or replace it. So the file is read only when it has not changed for
//! a moment. An invalid key is ignored and reported with its place; the other keys take effect. A file that cannot be
//! parsed changes nothing. Settings that cannot change while the program runs are reported.
//!
//! If no event reports a change (the file's folder was replaced or created later, or cannot be watched), the rescan
//! notices that the file is not the one that was read.

use crate::config::{self, Config, Problem};
use crate::view::{Settings, View};
use pilotlight_agents::home::Home;
use pilotlight_agents::homes::Followed;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::log::{self, cause, private};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How long the file must be unchanged before it is read.
const DEBOUNCE: Span = Span(200);

/// Returns the homes that a configuration leads to, with those of the given ones that nobody named.
pub(crate) type HomesOf = Box<dyn Fn(&Config, &[Home]) -> Followed + Send>;

/// Where the settings come from.
pub struct SettingsSource {
    /// The file.
    pub path: PathBuf,
    /// The problems found when it was read at startup.
    pub problems: Vec<Problem>,
    /// Which homes a configuration leads to.
    pub homes: HomesOf,
    /// Where valid settings are saved for the next start; `None`: nowhere.
    pub saved: Option<PathBuf>,
    /// An agent that is used for the first time makes another one.
    pub may_grow: bool,
}

/// The settings file that is followed.
pub(crate) struct SettingsFile {
    source: SettingsSource,
    /// The last valid settings, complete: some of them may take effect only at the next start.
    last_good: Config,
    /// When the file is due to be read, by the awake clock.
    due: Option<Time>,
    /// The file's stamp when it was last read.
    stamp: FileStamp,
    /// When the file that was read at startup had been changed, by the wall clock.
    changed: Option<Time>,
}

/// The result of reading the file.
#[derive(Debug)]
pub(crate) enum Reloaded {
    /// Nothing new.
    Unchanged,
    /// The file has become unusable.
    Unreadable,
    /// New settings.
    Settings(Box<Config>),
}

impl SettingsFile {
    /// Follows a file that was just read as these settings.
    pub(crate) fn new(source: SettingsSource, config: &Config) -> Self {
        let (stamp, changed) = (FileStamp::of(&source.path), changed(&source.path));
        let file = Self { source, last_good: config.clone(), due: None, stamp, changed };
        if file.source.problems.is_empty() {
            file.save();
        }
        file
    }

    /// When the file that was read at startup had been changed, by the wall clock. `None` if there was none, or the
    /// system does not keep that.
    pub(crate) const fn changed(&self) -> Option<Time> {
        self.changed
    }

    /// Whether nothing is wrong with the file.
    pub(crate) fn is_valid(&self) -> bool {
        self.source.problems.is_empty()
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.source.path
    }

    /// When the file is due to be read, by the awake clock.
    pub(crate) const fn due_at(&self) -> Option<Time> {
        self.due
    }

    /// Notes that the file has changed: it is read once it stays unchanged.
    pub(crate) fn was_written(&mut self, now: Time) {
        self.due = Some(now + DEBOUNCE);
    }

    /// Whether the file was written without an event.
    pub(crate) fn missed_a_write(&self) -> bool {
        self.due.is_none() && FileStamp::of(self.path()) != self.stamp
    }

    /// Reads the file if it is due.
    pub(crate) fn read(&mut self, now: Time) -> Option<Reloaded> {
        self.due.take_if(|due| *due <= now)?;
        self.stamp = FileStamp::of(self.path());
        let (read, problems) = config::load(self.path(), Some(&self.last_good));
        let is_news = problems != self.source.problems;
        if is_news {
            problems.iter().for_each(|problem| log::warn!("the settings have a problem: {}", private(&problem)));
        }
        let is_unreadable = problems.iter().any(Problem::spoils_all);
        self.source.problems = problems;
        if is_unreadable {
            return Some(if is_news { Reloaded::Unreadable } else { Reloaded::Unchanged });
        }
        let before = std::mem::replace(&mut self.last_good, read.clone());
        self.save();
        Some(if read != before || is_news { Reloaded::Settings(Box::new(read)) } else { Reloaded::Unchanged })
    }

    /// Saves the last valid settings for the next start.
    fn save(&self) {
        if let Some(file) = &self.source.saved
            && let Err(error) = config::last_valid::save(file, self.path(), &self.last_good)
        {
            log::warn!("the settings cannot be saved for the next start: {}", cause(&*error));
        }
    }

    /// The homes that a configuration leads to, with those of the given ones that nobody named.
    pub(crate) fn homes(&self, config: &Config, discovered: &[Home]) -> Followed {
        (self.source.homes)(config, discovered)
    }

    /// Whether homes may be followed that are not there yet.
    pub(crate) const fn may_grow(&self) -> bool {
        self.source.may_grow
    }

    /// Passes the settings in force, and what is wrong with the file, to the view.
    pub(crate) fn notify(&self, view: &mut dyn View, config: &Config, later: &[String], at_start: bool) {
        let homes: Vec<_> = self.homes(config, &[]).homes.iter().map(|home| home.folder().to_owned()).collect();
        view.configure(&Settings { config, homes: &homes, problems: &self.source.problems, later, at_start });
    }
}

/// When a file, or the link to it, was last changed or put in its place: unlike its other times, nobody can set that.
#[cfg(unix)]
fn changed(path: &Path) -> Option<Time> {
    use std::os::unix::fs::MetadataExt;
    let at = |meta: Metadata| Time(meta.ctime().saturating_mul(1000).saturating_add(meta.ctime_nsec() / 1_000_000));
    Some(at(fs::metadata(path).ok()?).max(at(fs::symlink_metadata(path).ok()?)))
}

#[cfg(not(unix))]
const fn changed(_path: &Path) -> Option<Time> {
    None
}

/// Identifies a version of a file without opening it; `None` if there is no readable file.
#[derive(PartialEq, Eq)]
struct FileStamp(Option<(Option<SystemTime>, u64, Inode)>);

/// The inode, and its last change, including that of the file's permissions.
#[cfg(unix)]
type Inode = (u64, i64, i64);
#[cfg(not(unix))]
type Inode = ();

impl FileStamp {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Follows a file that was just read.
    fn followed(path: &Path) -> SettingsFile {
        let (config, problems) = config::load(path, None);
        let homes: HomesOf =
            Box::new(|_, _| Followed { homes: vec![Home::at(Path::new("/home"))], ..Followed::default() });
        SettingsFile::new(
            SettingsSource { path: path.to_owned(), problems, homes, saved: None, may_grow: false },
            &config,
        )
    }

    #[test]
    fn a_file_is_read_when_it_has_not_changed_for_a_moment() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("config.toml");
        let mut file = followed(&path);
        assert!(!file.missed_a_write() && file.read(Time(0)).is_none());
        fs::write(&path, "[list]\nended-most = 3\n").unwrap();
        assert!(file.missed_a_write());
        file.was_written(Time(0));
        assert!(!file.missed_a_write(), "it is due to be read");
        file.was_written(Time(150));
        assert!(file.read(Time(349)).is_none());
        let Some(Reloaded::Settings(read)) = file.read(Time(350)) else { panic!("it was not read") };
        assert_eq!((read.list.ended_most, file.due_at()), (3, None));
        file.was_written(Time(400));
        assert!(matches!(file.read(Time(600)), Some(Reloaded::Unchanged)), "it is unchanged");
    }

    #[test]
    fn a_problem_is_reported_once_and_an_unusable_file_changes_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("config.toml");
        let mut file = followed(&path);
        let mut writes = |text: &str| {
            fs::write(&path, text).unwrap();
            file.was_written(Time(0));
            file.read(Time(1000)).unwrap()
        };
        let wrong = "[list]\nended-most = \"many\"\n";
        assert!(
            matches!(writes(wrong), Reloaded::Settings(read) if *read == Config::default()),
            "the other keys take effect"
        );
        assert!(matches!(writes(wrong), Reloaded::Unchanged));
        assert!(matches!(writes("[list"), Reloaded::Unreadable));
        assert!(matches!(writes("[list"), Reloaded::Unchanged));
        assert!(matches!(writes(""), Reloaded::Settings(_)), "that it is valid again is new");
    }
}
