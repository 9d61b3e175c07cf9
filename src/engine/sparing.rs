//! Work that many events ask for and that is not done for each of them: at once the first time, then once in a while.

use crate::core::time::{Span, Time};

/// When such work is due. Times are of the awake clock.
pub(super) struct Sparing {
    every: Span,
    done: Option<Time>,
    due: Option<Time>,
}

impl Sparing {
    /// Nothing is due, and nothing was done.
    pub(super) const fn every(every: Span) -> Self {
        Self { every, done: None, due: None }
    }

    /// It is to be done, now or as soon as enough time has passed since it was done last.
    pub(super) fn ask(&mut self, now: Time) {
        let earliest = self.done.map_or(now, |done| now.max(done + self.every));
        self.due.get_or_insert(earliest);
    }

    /// When it is to be done.
    pub(super) const fn due(&self) -> Option<Time> {
        self.due
    }

    /// Whether it is to be done now; then it counts as done.
    pub(super) fn begin(&mut self, now: Time) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            (self.due, self.done) = (None, Some(now));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_done_at_once_and_the_others_together() {
        let mut work = Sparing::every(Span::seconds(1));
        assert!(!work.begin(Time(0)) && work.due().is_none());
        work.ask(Time(10));
        assert!(work.begin(Time(10)) && !work.begin(Time(10)));
        for at in [20, 500, 900] {
            work.ask(Time(at));
            assert!(!work.begin(Time(at)));
        }
        assert_eq!(work.due(), Some(Time(1010)));
        assert!(work.begin(Time(1010)) && work.due().is_none());
        work.ask(Time(9000));
        assert!(work.begin(Time(9000)), "at once again after a rest");
    }
}
