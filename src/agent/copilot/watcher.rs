//! File events, boiled down to hints: this folder, or everything, is worth a look.
//!
//! An event is never believed, only followed up. Events that say nothing (somebody opened or read a file) are not asked for
//! where the system allows that, and dropped here where it does not; the others are collected in a set, so that a storm of them
//! costs no more memory than there are sessions.
//!
//! On Linux each session folder has a watch of its own, because a recursive one would watch the three subfolders of each as
//! well, and because it misses files made right after a folder; `linux` says what more it does without. macOS and Windows
//! watch a tree at no extra cost.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod elsewhere;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod mounts;
mod pace;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod way;

use crate::agent::copilot::opened::{LOGS, OPEN_SESSIONS, log_pid};
use crate::system::timer::Alarm;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use elsewhere::Source;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux::Source;
use pace::Pace;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// A session: the index of its home, and its id.
type Key = (usize, Arc<str>);

/// What is worth a look.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// Session folders in which something changed: the index of the home, and the id.
    pub folders: HashSet<Key>,
    /// Homes whose list of sessions changed, by index.
    pub homes: HashSet<usize>,
    /// Homes whose terminals noted anew what they have open.
    pub opened: HashSet<usize>,
    /// Processes of Copilot that wrote in their own logs.
    pub logs: HashSet<u32>,
    /// Something happened on the way to a home: another folder may stand there now, or none.
    pub ways: bool,
    /// What the user has looked at was written anew.
    pub seen: bool,
    /// The settings were written anew.
    pub config: bool,
    /// Events were lost: everything is.
    pub all: bool,
    /// It was there to be read before anybody waited for it.
    pub at_once: bool,
    /// Folders that went: what stands there now, if anything does, is not watched.
    pub gone: HashSet<PathBuf>,
}

/// Watches session folders.
pub(crate) struct Watcher {
    source: Option<Source>,
    /// Folders that stay watched, though a home may be below them.
    kept: BTreeSet<PathBuf>,
    pace: Pace,
    alarm: Alarm,
    /// Why not everything is watched, in words for the user; told once.
    pub trouble: Option<String>,
}

/// Whether the system watches whole trees by itself.
pub(crate) const WATCHES_TREES: bool = !cfg!(any(target_os = "linux", target_os = "android"));

/// Why a folder is not watched.
enum Refusal {
    /// The system has no more watches to give.
    Full,
    /// Something else, in the system's words.
    Other(String),
}

impl Watcher {
    /// Watches nothing yet. `roots` are the folders that hold the session folders, one a home; `seen` is the file that says
    /// what the user has looked at.
    pub(crate) fn new(roots: &[PathBuf], seen: Option<PathBuf>) -> Self {
        let sieve = Sieve { roots: roots.iter().map(|root| names_of(root)).collect(), seen, ..Sieve::default() };
        let (source, trouble) = match Source::new(sieve) {
            Ok(source) => (Some(source), None),
            Err(error) => {
                (None, Some(format!("file changes cannot be watched ({error}); looking once a minute instead")))
            }
        };
        Self { source, kept: BTreeSet::new(), pace: Pace::default(), alarm: Alarm::default(), trouble }
    }

    /// From now on the home of this number is at `root`; where that is `None`, it is followed no more.
    pub(crate) fn follow_root(&mut self, home: usize, root: Option<&Path>) {
        let Some(source) = &mut self.source else { return };
        source.sift(|sieve| {
            if sieve.roots.len() <= home {
                sieve.roots.resize(home + 1, Vec::new());
            }
            sieve.roots[home] = root.map(names_of).unwrap_or_default();
        });
    }

    /// Watches the file of the settings, by the folder that it is in: where it is a link, by that of the real file as well.
    pub(crate) fn watch_config(&mut self, path: &Path) {
        let names = names_of(path);
        let folders: Vec<_> = names.iter().filter_map(|name| name.parent().map(Path::to_owned)).collect();
        let Some(source) = &mut self.source else { return };
        source.sift(|sieve| sieve.config = names);
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            self.watch(&folder);
            self.kept.insert(folder);
        }
    }

    /// Waits for something worth a look. May be dropped at any time, and called again. `awake`: there is something else to do,
    /// so that nobody is woken for this.
    pub(crate) async fn changed(&mut self, awake: bool) -> Hints {
        let Some(source) = &mut self.source else { return std::future::pending().await };
        let rests_until = self.pace.rests_until(Instant::now()).filter(|_| !awake);
        if let Some(until) = rests_until {
            source.rest();
            self.alarm.until(until).await;
        }
        let hints = source.changed().await;
        self.pace.took(Instant::now());
        // Who has just slept has heard of everything else.
        Hints { at_once: hints.at_once && rests_until.is_none(), ..hints }
    }

    /// Begins to watch a folder, if it is not watched already. Whether it is now.
    pub(crate) fn watch(&mut self, path: &Path) -> bool {
        let Some(source) = &mut self.source else { return false };
        let watched = source.watch(path);
        self.is_watched(path, watched)
    }

    /// Begins to watch a session's folder. Whether it is watched now, and was not before.
    pub(crate) fn watch_session(&mut self, key: &Key, path: &Path) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(source) = &mut self.source else { return false };
        match source.watch_session(key, path) {
            Ok(anew) => anew,
            refused => self.is_watched(path, refused.map(drop)),
        }
    }

    /// The same for one that most likely nothing will ever happen to. Whether it is watched now.
    pub(crate) fn watch_old_session(&mut self, key: &Key, path: &Path) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(source) = &mut self.source else { return false };
        let watched = source.watch_old_session(key, path);
        self.is_watched(path, watched)
    }

    /// Most likely nothing will ever happen to this session. Its folder stays watched.
    pub(crate) fn is_old(&mut self, key: &Key) {
        if let Some(source) = &mut self.source {
            source.is_old(key);
        }
    }

    fn is_watched(&mut self, path: &Path, watched: Result<(), Refusal>) -> bool {
        match watched {
            Ok(()) => true,
            Err(Refusal::Full) => {
                self.trouble.get_or_insert_with(|| {
                    "the system's limit of file watches is reached; the sessions beyond it are looked at once a minute \
                     (raise fs.inotify.max_user_watches to watch them all)"
                        .into()
                });
                false
            }
            Err(Refusal::Other(error)) => {
                tracing::debug!(path = %path.display(), %error, "not watched");
                false
            }
        }
    }

    /// Watches these folders of sessions, and whatever tells that another one stands in the place of one of them. `anew`: what
    /// stands there may not be what is watched by its name.
    pub(crate) fn watch_ways(&mut self, roots: &[&Path], anew: bool) {
        let Some(source) = &mut self.source else { return };
        if anew {
            source.leave_ways(&self.kept);
        }
        let refused = source.watch_ways(roots, &self.kept);
        if let Some((path, refusal)) = refused {
            self.is_watched(&path, Err(refusal));
        }
    }

    /// Whether it is told when another folder stands in the place of a home.
    pub(crate) fn tells_of_homes(&self) -> bool {
        self.has_room() && self.source.as_ref().is_some_and(Source::tells_of_homes)
    }

    /// Forgets a folder that is gone with all that was below it, so that what is made anew in its place is watched again.
    pub(crate) fn forget(&mut self, path: &Path) {
        if let Some(source) = &mut self.source {
            source.forget(path);
        }
    }

    /// Asks for the watches of all folders anew but those of sessions, which are to be asked for again: events were lost, and
    /// among them may have been the end of a watch, whose folder was made again since.
    pub(crate) fn renew(&mut self) {
        if let (Some(source), false) = (&mut self.source, WATCHES_TREES) {
            source.renew();
        }
    }

    /// Whether more watches can be had.
    pub(crate) const fn has_room(&self) -> bool {
        self.trouble.is_none() && self.source.is_some()
    }
}

/// The path, and where it leads if it is a link: some systems report the real path of what was given by way of one.
fn names_of(path: &Path) -> Vec<PathBuf> {
    path.canonicalize().into_iter().filter(|real| real != path).chain([path.to_owned()]).collect()
}

/// Tells what is worth a look from what is not.
#[derive(Default)]
struct Sieve {
    /// The folders that hold the session folders, by home, each under all its names; of one that is followed no more, none.
    roots: Vec<Vec<PathBuf>>,
    /// Further names on the ways to them.
    points: HashSet<PathBuf>,
    seen: Option<PathBuf>,
    /// The file of the settings, under all its names.
    config: Vec<PathBuf>,
}

impl Sieve {
    /// Something happened to this path; `went` where what stood there may not any more. Whether that was worth anything.
    fn take(&self, path: &Path, went: bool, hints: &mut Hints) -> bool {
        let leads_home = self.points.contains(path) || self.roots.iter().flatten().any(|root| root.starts_with(path));
        // A home, a folder above one, or a session's: what is below these has no watch of its own.
        let is_session = || self.roots.iter().flatten().any(|root| path.parent() == Some(root.as_path()));
        if went && (leads_home || is_session()) {
            hints.gone.insert(path.to_owned());
        }
        hints.ways |= leads_home;
        let (is_seen, is_config) = (self.seen.as_deref() == Some(path), self.config.iter().any(|own| own == path));
        (hints.seen, hints.config) = (hints.seen || is_seen, hints.config || is_config);
        self.take_path(path, hints) | leads_home | is_seen | is_config
    }

    /// Something happened in the folder of a session, to this file or to the folder itself.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn take_file(&self, key: &Key, file: Option<&str>, hints: &mut Hints) {
        let is_followed = self.roots.get(key.0).is_some_and(|names| !names.is_empty());
        if is_followed && is_of_interest(file) && !hints.folders.contains(key) {
            hints.folders.insert(key.clone());
        }
    }

    /// The sessions whose folders go with this path: all of a home, or one.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn sessions_below(&self, path: &Path) -> Vec<(usize, Option<Arc<str>>)> {
        let homes = self.roots.iter().enumerate();
        let names = homes.flat_map(|(home, names)| names.iter().map(move |root| (home, root)));
        let below = names.filter_map(|(home, root)| match root.starts_with(path) {
            true => Some((home, None)),
            false => {
                let id = path.file_name().and_then(|id| id.to_str()).filter(|_| path.parent() == Some(root))?;
                Some((home, Some(id.into())))
            }
        });
        below.collect()
    }

    fn take_path(&self, path: &Path, hints: &mut Hints) -> bool {
        for (home, names) in self.roots.iter().enumerate() {
            let Some(inside) = names.iter().find_map(|root| path.strip_prefix(root).ok()) else { continue };
            let mut parts = inside.components().map(std::path::Component::as_os_str);
            let (Some(id), file, deeper) = (parts.next(), parts.next(), parts.next()) else {
                return hints.homes.insert(home);
            };
            let Some(id) = id.to_str().filter(|id| !id.starts_with('.')) else { return false };
            if deeper.is_some() || file.is_some() && !is_of_interest(file.and_then(|file| file.to_str())) {
                return false;
            }
            return hints.folders.insert((home, id.into()));
        }
        let (name, folder) = (path.file_name().and_then(|name| name.to_str()), path.parent());
        let logs_of = |root: &PathBuf| root.parent().map(|home| home.join(LOGS));
        if let Some(pid) = name.and_then(log_pid) {
            let is_ours = self.roots.iter().flatten().any(|root| logs_of(root).as_deref() == folder);
            if is_ours {
                hints.logs.insert(pid);
            }
            return is_ours;
        }
        // Beside the session folders: of all that stands there, one file matters.
        let is_beside = |names: &Vec<PathBuf>| names.iter().any(|root| root.parent() == path.parent() && root != path);
        if path.file_name().is_some_and(|name| name == OPEN_SESSIONS) {
            let beside = self.roots.iter().enumerate().filter(|(_, names)| is_beside(names));
            hints.opened.extend(beside.map(|(home, _)| home));
        }
        !hints.opened.is_empty()
    }
}

impl Hints {
    /// Whether there is anything to look at.
    fn any(&self) -> bool {
        self.all
            || self.seen
            || self.config
            || self.ways
            || !self.folders.is_empty()
            || !self.homes.is_empty()
            || !self.opened.is_empty()
            || !self.logs.is_empty()
    }
}

/// The files of a session folder that say anything; and the folder itself.
fn is_of_interest(file: Option<&str>) -> bool {
    file.is_none_or(|file| {
        file == super::store::LOG || file == super::store::WORKSPACE || super::store::lock_pid(file).is_some()
    })
}
