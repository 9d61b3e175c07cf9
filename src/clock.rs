//! The one place that reads a clock.

use crate::core::time::{Moment, Span, Time};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Both clocks of a running program.
///
/// The awake clock starts at the wall clock's reading and then goes by the system's monotonic clock, which stands still while
/// the machine sleeps and is not moved when the wall clock is set.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    awake: Time,
}

impl Clock {
    /// Starts the awake clock.
    pub fn start() -> Self {
        Self { started: Instant::now(), awake: wall() }
    }

    /// Both clocks, now.
    pub fn now(&self) -> Moment {
        Moment { wall: wall(), awake: self.awake + span(self.started.elapsed()) }
    }

    /// When the awake clock will read `at`.
    pub fn instant(&self, at: Time) -> Instant {
        self.started + (at - self.awake).to_std()
    }
}

fn span(duration: Duration) -> Span {
    Span(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

fn wall() -> Time {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is given")]
    let now = SystemTime::now();
    match now.duration_since(UNIX_EPOCH) {
        Ok(age) => Time::default() + span(age),
        Err(before) => Time::default() - span(before.duration()),
    }
}
