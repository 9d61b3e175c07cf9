//! What is looked at again and again because the system reports no event of it. All of it is looked at together, so that it
//! costs one wakeup; nothing wakes the program where there is none.

use pilotlight_core::time::{Span, Time};
use std::collections::BTreeSet;

/// What is looked at every so many seconds, and when that is next.
#[derive(Debug)]
pub(crate) struct Polled<T, const SECONDS: i64> {
    all: BTreeSet<T>,
    poll_at: Time,
}

impl<T, const SECONDS: i64> Default for Polled<T, SECONDS> {
    fn default() -> Self {
        Self { all: BTreeSet::new(), poll_at: Time(0) }
    }
}

impl<T: Clone + Ord, const SECONDS: i64> Polled<T, SECONDS> {
    /// How often it is looked at.
    pub(crate) const INTERVAL: Span = Span::seconds(SECONDS);

    /// From now on, this is polled, or is not.
    pub(crate) fn set(&mut self, one: &T, is_polled: bool, now: Time) {
        if !is_polled {
            self.all.remove(one);
        } else if !self.all.contains(one) {
            if self.all.is_empty() {
                self.poll_at = now + Self::INTERVAL;
            }
            self.all.insert(one.clone());
        }
    }

    /// When it is looked at next.
    pub(crate) fn poll_at(&self) -> Option<Time> {
        (!self.all.is_empty()).then_some(self.poll_at)
    }

    /// What to look at, if it is due.
    pub(crate) fn due(&mut self, now: Time) -> Vec<T> {
        if self.poll_at().is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.poll_at = now + Self::INTERVAL;
        self.all.iter().cloned().collect()
    }
}
