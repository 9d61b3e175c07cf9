//! File events on macOS and Windows, through the `notify` crate and a thread of its own.

use super::{Hints, Key, Refusal, Sieve};
use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Where the events come from.
pub(super) struct Source {
    notify: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    hints: Mutex<Hints>,
    sieve: Mutex<Sieve>,
    news: Notify,
}

impl Source {
    pub(super) fn new(sieve: Sieve) -> notify::Result<Self> {
        let shared = Arc::new(Shared { sieve: Mutex::new(sieve), ..Shared::default() });
        let told = Arc::clone(&shared);
        let handler = move |event: notify::Result<Event>| {
            let mut hints = told.hints.lock().unwrap_or_else(PoisonError::into_inner);
            let sieve = told.sieve.lock().unwrap_or_else(PoisonError::into_inner);
            if take(event, &sieve, &mut hints) {
                drop((hints, sieve));
                told.news.notify_one();
            }
        };
        Ok(Self { notify: notify::recommended_watcher(handler)?, watched: BTreeSet::new(), shared })
    }

    pub(super) async fn changed(&mut self) -> Hints {
        loop {
            let hints = std::mem::take(&mut *self.shared.hints.lock().unwrap_or_else(PoisonError::into_inner));
            if hints.any() {
                return hints;
            }
            self.shared.news.notified().await;
        }
    }

    /// Nobody waits for a while: what happens meanwhile is gathered.
    pub(super) const fn rest(&self) {}

    /// Changes what is worth a look.
    pub(super) fn sift(&mut self, change: impl FnOnce(&mut Sieve)) {
        change(&mut self.shared.sieve.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Forgets what is at a path and below it.
    pub(super) fn forget(&mut self, path: &Path) {
        let below: Vec<_> =
            self.watched.range(path.to_owned()..).take_while(|folder| folder.starts_with(path)).cloned().collect();
        for folder in below {
            self.unwatch(&folder);
        }
    }

    /// Whether it is told when another folder stands in the place of a home: not of all there is to a path.
    pub(super) const fn tells_of_homes(&self) -> bool {
        false
    }

    /// Sessions are watched with their home.
    pub(super) const fn watch_session(&mut self, _: &Key, _: &Path) -> Result<bool, Refusal> {
        Ok(false)
    }

    /// The same.
    pub(super) const fn watch_old_session(&mut self, _: &Key, _: &Path) -> Result<(), Refusal> {
        Ok(())
    }

    /// The same.
    pub(super) const fn is_old(&self, _: &Key) {}

    /// A tree is watched by its name, whatever stands there.
    pub(super) const fn leave_ways(&self, _: &BTreeSet<PathBuf>) {}

    /// Watches these folders, and as long as one does not exist, the nearest above it that does. What could not be watched.
    pub(super) fn watch_ways(&mut self, roots: &[&Path], kept: &BTreeSet<PathBuf>) -> Option<(PathBuf, Refusal)> {
        let nearest = |root: &&Path| root.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned);
        let mut refused = None;
        // What is made while it is not watched yet is found by looking again.
        for _ in 0..8 {
            refused = None;
            let wanted: BTreeSet<_> = roots.iter().filter_map(nearest).collect();
            for folder in &wanted {
                if let Err(refusal) = self.watch(folder) {
                    refused = Some((folder.clone(), refusal));
                }
            }
            if wanted == roots.iter().filter_map(nearest).collect() {
                let above: Vec<_> =
                    roots.iter().flat_map(|root| root.ancestors().skip(1)).map(Path::to_owned).collect();
                for folder in above {
                    if self.watched.contains(&folder) && !wanted.contains(&folder) && !kept.contains(&folder) {
                        self.unwatch(&folder);
                    }
                }
                break;
            }
        }
        refused
    }

    /// A tree is watched as a whole, whatever comes and goes in it.
    pub(super) const fn renew(&self) {}

    pub(super) fn watch(&mut self, path: &Path) -> Result<(), Refusal> {
        if self.watched.contains(path) {
            return Ok(());
        }
        match self.notify.watch(path, RecursiveMode::Recursive) {
            Ok(()) => {
                self.watched.insert(path.to_owned());
                Ok(())
            }
            Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => Err(Refusal::Full),
            Err(error) => Err(Refusal::Other(error.to_string())),
        }
    }

    fn unwatch(&mut self, path: &Path) {
        self.watched.remove(path);
        // The system has usually dropped the watch by itself; that it cannot be taken off is no loss: it only costs a look.
        let _ = self.notify.unwatch(path);
    }
}

/// Takes an event in; whether it was worth anything.
fn take(event: notify::Result<Event>, sieve: &Sieve, hints: &mut Hints) -> bool {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        Ok(_) | Err(_) => {
            hints.all = true;
            return true;
        }
    };
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let went = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    event.paths.iter().fold(false, |worth, path| sieve.take(path, went, hints) | worth)
}
