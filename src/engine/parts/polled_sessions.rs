//! Live sessions whose files may change without an event. All are looked at together, every five seconds, so that they
//! cost one wakeup; nothing wakes the program where there is none.

use crate::core::session::Key;
use crate::core::time::{Span, Time};
use std::collections::BTreeSet;

/// How often they are looked at.
const POLL_INTERVAL: Span = Span::seconds(5);

/// The polled sessions, and when they are looked at next.
#[derive(Debug, Default)]
pub(crate) struct PolledSessions {
    sessions: BTreeSet<Key>,
    poll_at: Time,
}

impl PolledSessions {
    /// From now on, a session is polled, or is not.
    pub(crate) fn set(&mut self, key: &Key, is_polled: bool, now: Time) {
        if !is_polled {
            self.sessions.remove(key);
        } else if !self.sessions.contains(key) {
            if self.sessions.is_empty() {
                self.poll_at = now + POLL_INTERVAL;
            }
            self.sessions.insert(key.clone());
        }
    }

    /// When they are looked at next.
    pub(crate) fn poll_at(&self) -> Option<Time> {
        (!self.sessions.is_empty()).then_some(self.poll_at)
    }

    /// The sessions to look at, if they are due.
    pub(crate) fn due(&mut self, now: Time) -> Vec<Key> {
        if self.poll_at().is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.poll_at = now + POLL_INTERVAL;
        self.sessions.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::session::SourceId;

    #[test]
    fn case_161_polled_sessions_are_due_together_and_nothing_is_due_without_any() {
        let (a, b): (Key, Key) = (Key::new(SourceId::default(), "a"), Key::new(SourceId(1), "b"));
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
