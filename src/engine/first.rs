//! The first look at all folders. There may be tens of thousands, nearly all of them are history, and nothing can be shown before
//! it is known which are not: so a glimpse at each is taken by as many threads as there are processors.

use super::scan::NAMES;
use super::{Engine, reading};
use crate::agent::copilot::store::{Glimpse, Reading, Root};
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// So many folders are looked at before signals are heard again, and for so long at most.
const FOLDERS: usize = 4096;
const TIME: Duration = Duration::from_millis(20);
/// So many of them a thread takes at once; fewer are not worth another thread.
const SHARE: usize = 64;

impl Engine {
    /// Takes a glimpse at some of the folders that were not listed yet, and leaves to the agenda what only a whole look tells.
    /// False where there are none, or the agenda is full.
    pub(super) fn sort_some(&mut self) -> bool {
        if self.agenda.others() >= NAMES {
            return false;
        }
        let Some(mut listing) = self.agenda.listings.pop_front() else { return false };
        let home = listing.home;
        let ids: Vec<_> = iter::from_fn(|| listing.next()).take(FOLDERS).collect();
        let reading = reading(&self.config, &self.owners, &self.processes, self.clock.now());
        let seen = glimpses(&Root::open(self.homes.root(home)), &ids, &reading);
        let may_be_more = ids.len() == FOLDERS;
        for (id, past) in iter::zip(ids, seen) {
            match past.into_inner() {
                Some(Some(past)) => self.is_past(&(home, id), past),
                Some(None) => self.agenda.sometime((home, id)),
                None => listing.left.push(id),
            }
        }
        // Nothing is known yet that the listing could miss: at its end it is dropped.
        if may_be_more || !listing.left.is_empty() {
            self.agenda.listings.push_front(listing);
        }
        true
    }
}

/// What glimpses tell of these sessions; nothing of those that there was no time for.
fn glimpses(root: &Root<'_>, ids: &[Arc<str>], reading: &Reading<'_>) -> Vec<OnceLock<Option<Glimpse>>> {
    let seen: Vec<_> = iter::repeat_with(OnceLock::new).take(ids.len()).collect();
    let (next, until) = (AtomicUsize::new(0), Instant::now() + TIME);
    let look = || {
        loop {
            let from = next.fetch_add(SHARE, Ordering::Relaxed);
            if from >= ids.len() {
                return;
            }
            for (id, seen) in iter::zip(&ids[from..], &seen[from..]).take(SHARE) {
                let _ = seen.set(root.past(id, reading)); // each is looked at by one
                if Instant::now() >= until {
                    return;
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(ids.len().div_ceil(SHARE));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // What the system refuses a thread for is done by the others.
            let _ = std::thread::Builder::new().spawn_scoped(scope, look);
        }
        look();
    });
    seen
}
