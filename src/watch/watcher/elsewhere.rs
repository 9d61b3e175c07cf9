//! File events on macOS and Windows, through the `notify` crate and a thread of its own.

use super::{Hints, Refusal, Sieve};
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

    pub(super) fn watches(&self, path: &Path) -> bool {
        self.watched.contains(path)
    }

    /// Changes what is worth a look.
    pub(super) fn sift(&mut self, change: impl FnOnce(&mut Sieve)) {
        change(&mut self.shared.sieve.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn at_and_below(&self, path: &Path) -> Vec<PathBuf> {
        self.watched.range(path.to_owned()..).take_while(|folder| folder.starts_with(path)).cloned().collect()
    }

    /// A tree is watched as a whole, whatever comes and goes in it.
    pub(super) const fn renew(&self) {}

    pub(super) fn watch(&mut self, path: &Path) -> Result<(), Refusal> {
        match self.notify.watch(path, RecursiveMode::Recursive) {
            Ok(()) => {
                self.watched.insert(path.to_owned());
                Ok(())
            }
            Err(error) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => Err(Refusal::Full),
            Err(error) => Err(Refusal::Other(error.to_string())),
        }
    }

    /// Not watched here: only whole trees could be, and a home's has its logs in it. The rescan and every order look anyway.
    pub(super) const fn watch_replaced(&self, _folder: &Path) {}

    pub(super) fn unwatch(&mut self, path: &Path) {
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
