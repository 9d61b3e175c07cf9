//! Throttles work that many events request: it is done at once the first time, then at most once per interval.

use pilotlight_core::time::{Span, Time};

/// When throttled work is due. Times are of the awake clock.
pub(crate) struct Throttle {
    interval: Span,
    last: Option<Time>,
    due: Option<Time>,
}

impl Throttle {
    /// Nothing is due, and nothing was done.
    pub(crate) const fn new(interval: Span) -> Self {
        Self { interval, last: None, due: None }
    }

    /// Requests the work: now, or as soon as the interval since the last time has passed.
    pub(crate) fn request(&mut self, now: Time) {
        let earliest = self.last.map_or(now, |done| now.max(done + self.interval));
        self.due.get_or_insert(earliest);
    }

    /// Whether the work was last done less than this long ago.
    pub(crate) fn was_done_within(&self, span: Span, now: Time) -> bool {
        self.last.is_some_and(|last| now - last < span)
    }

    /// When the work is due.
    pub(crate) const fn due_at(&self) -> Option<Time> {
        self.due
    }

    /// Whether the work is due now; if so, it counts as done.
    pub(crate) fn start_if_due(&mut self, now: Time) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            (self.due, self.last) = (None, Some(now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_is_due_at_once_and_further_ones_together() {
        let mut throttle = Throttle::new(Span::seconds(1));
        assert!(!throttle.start_if_due(Time(0)) && throttle.due_at().is_none());
        throttle.request(Time(10));
        assert!(throttle.start_if_due(Time(10)) && !throttle.start_if_due(Time(10)));
        for at in [20, 500, 900] {
            throttle.request(Time(at));
            assert!(!throttle.start_if_due(Time(at)));
        }
        assert_eq!(throttle.due_at(), Some(Time(1010)));
        assert!(throttle.start_if_due(Time(1010)) && throttle.due_at().is_none());
        throttle.request(Time(9000));
        assert!(throttle.start_if_due(Time(9000)), "at once again after a pause");
    }
}
