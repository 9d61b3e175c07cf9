//! What is looked at again and again because the system reports no event of it. All of it is looked at together, so that it
//! costs one wakeup; nothing wakes the program where there is none.

use pilotlight_core::session::Key;
use pilotlight_core::time::{Span, Time};
use std::collections::BTreeSet;

/// Live sessions whose files may change without an event.
pub(crate) type PolledSessions = Polled<Key, 5>;

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

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::session::HomeId;

    #[test]
    fn case_161_polled_sessions_are_due_together_and_nothing_is_due_without_any() {
        let (a, b): (Key, Key) = (Key::new(HomeId::default(), "a"), Key::new(HomeId(1), "b"));
        let mut polled = PolledSessions::default();
        assert_eq!((polled.poll_at(), polled.due(Time(99_000))), (None, vec![]));
        polled.set(&a, true, Time(1000));
        polled.set(&b, true, Time(4000));
        polled.set(&a, true, Time(5000));
        assert_eq!((polled.poll_at(), polled.due(Time(5999))), (Some(Time(6000)), vec![]));
        assert_eq!(polled.due(Time(6000)), [a.clone(), b.clone()]);
        assert_eq!(polled.poll_at(), Some(Time(11_000)));
        polled.set(&a, false, Time(7000));
        polled.set(&b, false, Time(7000));
        assert_eq!((polled.poll_at(), polled.due(Time(99_000))), (None, vec![]));
    }
}
