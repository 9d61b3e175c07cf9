//! Live sessions whose files may change without an event.

use super::polled::Polled;
use pilotlight_core::session::Key;

/// Those sessions.
pub(crate) type PolledSessions = Polled<Key, 5>;

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::session::HomeId;
    use pilotlight_core::time::Time;

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
