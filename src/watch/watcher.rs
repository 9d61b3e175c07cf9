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

use crate::watch::opened::OPEN_SESSIONS;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use elsewhere::Source;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux::Source;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// What is worth a look.
#[derive(Debug, Default)]
pub struct Hints {
    /// Session folders in which something changed: the index of the home, and the id.
    pub folders: HashSet<(usize, Box<str>)>,
    /// Homes whose list of sessions changed, by index.
    pub homes: HashSet<usize>,
    /// Homes whose terminals noted anew what they have open.
    pub opened: HashSet<usize>,
    /// What the user has looked at was written anew.
    pub seen: bool,
    /// The settings were written anew.
    pub config: bool,
    /// Events were lost: everything is.
    pub all: bool,
    /// Folders that went: what stands there now, if anything does, is not watched.
    pub gone: HashSet<PathBuf>,
}

/// Watches session folders.
pub struct Watcher {
    source: Option<Source>,
    /// Folders that stay watched, though a home may be below them.
    kept: BTreeSet<PathBuf>,
    /// Why not everything is watched, in words for the user; told once.
    pub trouble: Option<String>,
}

/// Whether the system watches whole trees by itself.
pub const WATCHES_TREES: bool = !cfg!(any(target_os = "linux", target_os = "android"));

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
    pub fn new(roots: &[PathBuf], seen: Option<PathBuf>) -> Self {
        let sieve = Sieve { roots: roots.iter().map(|root| names_of(root)).collect(), seen, config: Vec::new() };
        let (source, trouble) = match Source::new(sieve) {
            Ok(source) => (Some(source), None),
            Err(error) => {
                (None, Some(format!("file changes cannot be watched ({error}); looking once a minute instead")))
            }
        };
        Self { source, kept: BTreeSet::new(), trouble }
    }

    /// From now on the home of this number is at `root`; where that is `None`, it is followed no more.
    pub fn follow_root(&mut self, home: usize, root: Option<&Path>) {
        let Some(source) = &mut self.source else { return };
        source.sift(|sieve| {
            if sieve.roots.len() <= home {
                sieve.roots.resize(home + 1, Vec::new());
            }
            sieve.roots[home] = root.map(names_of).unwrap_or_default();
        });
    }

    /// Watches the file of the settings, by the folder that it is in: where it is a link, by that of the real file as well.
    pub fn watch_config(&mut self, path: &Path) {
        let names = names_of(path);
        let folders: Vec<_> = names.iter().filter_map(|name| name.parent().map(Path::to_owned)).collect();
        let Some(source) = &mut self.source else { return };
        source.sift(|sieve| sieve.config = names);
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            self.watch(&folder);
            self.kept.insert(folder);
        }
    }

    /// Waits for something worth a look.
    pub async fn changed(&mut self) -> Hints {
        match &mut self.source {
            Some(source) => source.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Begins to watch a folder, if it is not watched already. Whether it is now.
    pub fn watch(&mut self, path: &Path) -> bool {
        let Some(source) = &mut self.source else { return false };
        if source.watches(path) {
            return true;
        }
        match source.watch(path) {
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

    /// Sees what is put in place in a home's own folder, and nothing else that happens there: its database is written all the
    /// time. A folder that is watched altogether stays so.
    pub fn watch_home(&mut self, home: &Path) {
        if let (Some(source), false) = (&mut self.source, WATCHES_TREES) {
            source.watch_replaced(home);
        }
    }

    /// Begins to watch a folder that is not watched, as one that was made anew. Whether that was so.
    pub fn watch_anew(&mut self, path: &Path) -> bool {
        let is_watched = self.source.as_ref().is_some_and(|source| source.watches(path));
        !is_watched && self.has_room() && self.watch(path)
    }

    /// Of the folders above the homes, watches these and no others: the nearest to a home that does not exist yet.
    pub fn watch_only_above(&mut self, roots: &[PathBuf], wanted: &HashSet<PathBuf>) {
        let Some(source) = &mut self.source else { return };
        let above: HashSet<&Path> = roots.iter().flat_map(|root| root.ancestors().skip(1)).collect();
        for path in above {
            if source.watches(path) && !wanted.contains(path) && !self.kept.contains(path) {
                source.unwatch(path);
            }
        }
    }

    /// Forgets a folder that is gone with all that was below it, so that what is made anew in its place is watched again.
    pub fn forget(&mut self, path: &Path) {
        if let Some(source) = &mut self.source {
            for folder in source.at_and_below(path) {
                source.unwatch(&folder);
            }
        }
    }

    /// Asks for every watch anew: events were lost, and among them may have been the end of a watch, whose folder was made
    /// again since.
    pub fn renew(&mut self) {
        if let (Some(source), false) = (&mut self.source, WATCHES_TREES) {
            source.renew();
        }
    }

    /// Whether more watches can be had.
    pub const fn has_room(&self) -> bool {
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
    seen: Option<PathBuf>,
    /// The file of the settings, under all its names.
    config: Vec<PathBuf>,
}

impl Sieve {
    /// Something happened to this path; `went` where what stood there may not any more. Whether that was worth anything.
    fn take(&self, path: &Path, went: bool, hints: &mut Hints) -> bool {
        let leads_home = || self.roots.iter().flatten().any(|root| root.starts_with(path));
        // A home, a folder above one, or a session's: what is below these has no watch of its own.
        let is_session = || self.roots.iter().flatten().any(|root| path.parent() == Some(root.as_path()));
        if went && (leads_home() || is_session()) {
            hints.gone.insert(path.to_owned());
        }
        let (is_seen, is_config) = (self.seen.as_deref() == Some(path), self.config.iter().any(|own| own == path));
        (hints.seen, hints.config) = (hints.seen || is_seen, hints.config || is_config);
        // Folders of our own: their other files, our log among them, say nothing, but for a home below them.
        let beside = |own: &PathBuf| path.parent() == own.parent();
        if is_config || self.seen.iter().any(beside) || self.config.iter().any(beside) && !leads_home() {
            return is_seen || is_config;
        }
        self.take_path(path, hints)
    }

    fn take_path(&self, path: &Path, hints: &mut Hints) -> bool {
        for (home, names) in self.roots.iter().enumerate() {
            let Some(inside) = names.iter().find_map(|root| path.strip_prefix(root).ok()) else { continue };
            let mut parts = inside.components().map(std::path::Component::as_os_str);
            let (Some(id), file, deeper) = (parts.next(), parts.next(), parts.next()) else {
                return hints.homes.insert(home);
            };
            let Some(id) = id.to_str().filter(|id| !id.starts_with('.')) else { return false };
            if deeper.is_some() || file.is_some_and(|file| !is_of_interest(file.to_str())) {
                return false;
            }
            if file.is_none() {
                hints.homes.insert(home);
            }
            return hints.folders.insert((home, id.into()));
        }
        // Beside the session folders: of all that stands there, one file matters.
        let mut beside = self
            .roots
            .iter()
            .enumerate()
            .filter(|(_, names)| names.iter().any(|root| root.parent() == path.parent() && root != path));
        if path.file_name().is_some_and(|name| name == OPEN_SESSIONS) {
            hints.opened.extend(beside.map(|(home, _)| home));
            return !hints.opened.is_empty();
        }
        if beside.next().is_some() && !self.roots.iter().flatten().any(|root| root.starts_with(path)) {
            return false;
        }
        // A parent of a home that does not exist yet.
        hints.homes.extend(0..self.roots.len());
        true
    }
}

impl Hints {
    /// Whether there is anything to look at.
    fn any(&self) -> bool {
        self.all
            || self.seen
            || self.config
            || !self.folders.is_empty()
            || !self.homes.is_empty()
            || !self.opened.is_empty()
    }
}

/// The files of a session folder that say anything.
fn is_of_interest(file: Option<&str>) -> bool {
    file.is_some_and(|file| {
        file == super::store::LOG || file == super::store::WORKSPACE || super::store::lock_pid(file).is_some()
    })
}
