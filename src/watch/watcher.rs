//! File events, boiled down to hints: this folder, or everything, is worth a look.
//!
//! An event is never believed, only followed up. Events that say nothing (somebody opened or read a file) are dropped here;
//! the others are collected in a set, so that a storm of them costs no more memory than there are sessions.
//!
//! On Linux each session folder has a watch of its own, because a recursive one would watch the three subfolders of each as
//! well, and because it misses files made right after a folder. macOS and Windows watch a tree at no extra cost.

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// What is worth a look.
#[derive(Debug, Default)]
pub struct Hints {
    /// Session folders in which something changed: the index of the home, and the id.
    pub folders: HashSet<(usize, Box<str>)>,
    /// Homes whose list of sessions changed, by index.
    pub homes: HashSet<usize>,
    /// What the user has looked at was written anew.
    pub seen: bool,
    /// The settings were written anew.
    pub config: bool,
    /// Events were lost: everything is.
    pub all: bool,
    /// Folders that went: what stands there now, if anything does, is not watched.
    pub gone: HashSet<PathBuf>,
}

#[derive(Debug, Default)]
struct Shared {
    hints: Mutex<Hints>,
    places: Mutex<Places>,
    news: Notify,
}

/// What events are about.
#[derive(Debug, Default)]
struct Places {
    /// The folders that hold the session folders, by home, each under all its names; of one that is followed no more, none.
    roots: Vec<Vec<PathBuf>>,
    seen: Option<PathBuf>,
    /// The file of the settings, under all its names.
    config: Vec<PathBuf>,
}

/// Watches session folders.
pub struct Watcher {
    notify: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    /// Folders that stay watched, though a home may be below them.
    kept: BTreeSet<PathBuf>,
    shared: Arc<Shared>,
    /// Why not everything is watched, in words for the user; told once.
    pub trouble: Option<String>,
}

/// Whether the system watches whole trees by itself.
pub const WATCHES_TREES: bool = !cfg!(any(target_os = "linux", target_os = "android"));

impl Watcher {
    /// Watches nothing yet. `roots` are the folders that hold the session folders, one a home; `seen` is the file that says
    /// what the user has looked at.
    pub fn new(roots: &[PathBuf], seen: Option<PathBuf>) -> Self {
        let shared = Arc::new(Shared::default());
        let told = Arc::clone(&shared);
        let roots = roots.iter().map(|root| names_of(root)).collect();
        *shared.places.lock().unwrap_or_else(PoisonError::into_inner) = Places { roots, seen, config: Vec::new() };
        let handler = move |event: notify::Result<Event>| {
            let mut hints = told.hints.lock().unwrap_or_else(PoisonError::into_inner);
            let places = told.places.lock().unwrap_or_else(PoisonError::into_inner);
            if hints.take(event, &places) {
                drop(hints);
                told.news.notify_one();
            }
        };
        let mut trouble = None;
        let notify = match notify::recommended_watcher(handler) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                trouble = Some(format!("file changes cannot be watched ({error}); looking once a minute instead"));
                None
            }
        };
        Self { notify, watched: BTreeSet::new(), kept: BTreeSet::new(), shared, trouble }
    }

    /// From now on the home of this number is at `root`; where that is `None`, it is followed no more.
    pub fn follow_root(&mut self, home: usize, root: Option<&Path>) {
        let mut places = self.shared.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.roots.len() <= home {
            places.roots.resize(home + 1, Vec::new());
        }
        places.roots[home] = root.map(names_of).unwrap_or_default();
    }

    /// Watches the file of the settings, by the folder that it is in: where it is a link, by that of the real file as well.
    pub fn watch_config(&mut self, path: &Path) {
        let names = names_of(path);
        let folders: Vec<_> = names.iter().filter_map(|name| name.parent().map(Path::to_owned)).collect();
        self.shared.places.lock().unwrap_or_else(PoisonError::into_inner).config = names;
        for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
            self.watch(&folder);
            self.kept.insert(folder);
        }
    }

    /// Waits for something worth a look.
    pub async fn changed(&self) -> Hints {
        loop {
            let hints = std::mem::take(&mut *self.shared.hints.lock().unwrap_or_else(PoisonError::into_inner));
            if hints.all || hints.seen || hints.config || !hints.folders.is_empty() || !hints.homes.is_empty() {
                return hints;
            }
            self.shared.news.notified().await;
        }
    }

    /// Begins to watch a folder, if it is not watched already. Whether it is now.
    pub fn watch(&mut self, path: &Path) -> bool {
        if self.watched.contains(path) {
            return true;
        }
        let Some(notify) = &mut self.notify else { return false };
        let mode = if WATCHES_TREES { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        match notify.watch(path, mode) {
            Ok(()) => {
                self.watched.insert(path.to_owned());
                true
            }
            Err(error) => {
                if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) {
                    self.trouble.get_or_insert_with(|| {
                        "the system's limit of file watches is reached; the sessions beyond it are looked at once a minute \
                         (raise fs.inotify.max_user_watches to watch them all)"
                            .into()
                    });
                }
                tracing::debug!(path = %path.display(), %error, "not watched");
                false
            }
        }
    }

    /// Begins to watch a folder that is not watched, as one that was made anew. Whether that was so.
    pub fn watch_anew(&mut self, path: &Path) -> bool {
        !self.watched.contains(path) && self.has_room() && self.watch(path)
    }

    /// Of the folders above the homes, watches these and no others: the nearest to a home that does not exist yet.
    pub fn watch_only_above(&mut self, roots: &[PathBuf], wanted: &HashSet<PathBuf>) {
        let is_above = |path: &PathBuf| roots.iter().any(|root| root != path && root.starts_with(path));
        let unwanted =
            self.watched.iter().filter(|path| is_above(path) && !wanted.contains(*path) && !self.kept.contains(*path));
        let unwanted: Vec<_> = unwanted.cloned().collect();
        for path in unwanted {
            self.watched.remove(&path);
            if let Some(notify) = &mut self.notify {
                let _ = notify.unwatch(&path); // that it cannot be is no loss: it only costs a look
            }
        }
    }

    /// Forgets a folder that is gone with all that was below it, so that what is made anew in its place is watched again.
    pub fn forget(&mut self, path: &Path) {
        // They stand in a row, the folder first: ten thousand may go at once.
        let below = |folder: &&PathBuf| folder.starts_with(path);
        let gone: Vec<_> = self.watched.range(path.to_owned()..).take_while(below).cloned().collect();
        for folder in gone {
            self.watched.remove(&folder);
            if let Some(notify) = &mut self.notify {
                // The system has usually dropped the watch by itself.
                let _ = notify.unwatch(&folder);
            }
        }
    }

    /// Asks for every watch anew: events were lost, and among them may have been the end of a watch, whose folder was made
    /// again since.
    pub fn renew(&mut self) {
        if let (Some(notify), false) = (&mut self.notify, WATCHES_TREES) {
            self.watched.retain(|path| notify.watch(path, RecursiveMode::NonRecursive).is_ok());
        }
    }

    /// Whether more watches can be had.
    pub const fn has_room(&self) -> bool {
        self.trouble.is_none() && self.notify.is_some()
    }
}

/// The path, and where it leads if it is a link: some systems report the real path of what was given by way of one.
fn names_of(path: &Path) -> Vec<PathBuf> {
    path.canonicalize().into_iter().filter(|real| real != path).chain([path.to_owned()]).collect()
}

impl Hints {
    /// Takes an event in; whether it was worth anything.
    fn take(&mut self, event: notify::Result<Event>, places: &Places) -> bool {
        let Places { roots, seen, config } = places;
        let Ok(event) = event else {
            self.all = true;
            return true;
        };
        if event.need_rescan() {
            self.all = true;
            return true;
        }
        if let EventKind::Access(access) = event.kind
            && access != AccessKind::Close(AccessMode::Write)
        {
            return false;
        }
        let went = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        let mut worth = false;
        for path in &event.paths {
            // A home, a folder above one, or a session's: what is below these has no watch of its own.
            let is_folder_of_ours =
                || roots.iter().flatten().any(|root| root.starts_with(path) || path.parent() == Some(root.as_path()));
            if went && is_folder_of_ours() {
                self.gone.insert(path.clone());
            }
            let is_seen = seen.as_ref() == Some(path);
            let is_config = config.contains(path);
            (self.seen, self.config) = (self.seen || is_seen, self.config || is_config);
            worth |= is_seen || is_config;
            // Folders of our own: their other files, our log among them, say nothing, but for a home below them.
            let beside = |own: &PathBuf| path.parent() == own.parent();
            let leads_home = || roots.iter().flatten().any(|root| root.starts_with(path));
            if is_config || seen.iter().any(beside) || config.iter().any(beside) && !leads_home() {
                continue;
            }
            worth |= self.take_path(path, roots);
        }
        worth
    }

    fn take_path(&mut self, path: &Path, roots: &[Vec<PathBuf>]) -> bool {
        for (home, names) in roots.iter().enumerate() {
            let Some(inside) = names.iter().find_map(|root| path.strip_prefix(root).ok()) else { continue };
            let mut parts = inside.components().map(std::path::Component::as_os_str);
            let (Some(id), file, deeper) = (parts.next(), parts.next(), parts.next()) else {
                return self.homes.insert(home);
            };
            let Some(id) = id.to_str().filter(|id| !id.starts_with('.')) else { return false };
            if deeper.is_some() || file.is_some_and(|file| !is_of_interest(file.to_str())) {
                return false;
            }
            if file.is_none() {
                self.homes.insert(home);
            }
            return self.folders.insert((home, id.into()));
        }
        // A parent of a home that does not exist yet.
        self.homes.extend(0..roots.len());
        true
    }
}

/// The files of a session folder that say anything.
fn is_of_interest(file: Option<&str>) -> bool {
    file.is_some_and(|file| {
        file == super::store::LOG || file == super::store::WORKSPACE || super::store::lock_pid(file).is_some()
    })
}
