//! What a read of a log depends on besides its bytes: the clocks, the limits and the deadline.

use super::log_format::LogFormat;
use pilotlight_core::event::Event;
use pilotlight_core::facts::Facts;
use pilotlight_core::limits::Limits;
use pilotlight_core::time::{Moment, Span, Time};
use std::time::Instant;

/// How much newer than its file an event may seem. Beyond that, the clock that dated the event was wrong.
const SLACK: Span = Span::seconds(2);

/// What a read depends on besides the file.
#[derive(Clone, Copy, Debug)]
pub struct ReadContext<'a> {
    /// The current time on both clocks. Their difference converts an event's own time to awake time.
    pub now: Moment,
    /// The limits by which the fold closes turns.
    pub limits: &'a Limits,
    /// The deadline. Each read makes progress, and overruns it by one block at most, or by the whole of a short log.
    pub until: Option<Instant>,
}

impl ReadContext<'_> {
    /// How far the awake clock is ahead of the wall clock.
    pub(super) fn lead(&self) -> Span {
        self.now.awake - self.now.wall
    }
}

/// What one pass over an open log depends on besides the file's bytes.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) log_format: &'a LogFormat,
    pub(super) context: ReadContext<'a>,
    /// When the file was last written, by the wall clock.
    pub(super) written: Time,
    /// How far the awake clock was ahead of the wall clock when the events happened.
    pub(super) lead: Span,
}

impl Pass<'_> {
    /// The time of an event with this timestamp: no event is newer than its file.
    pub(super) fn dated(&self, wall: Time) -> Time {
        if wall > self.written + SLACK { self.written } else { wall }
    }

    pub(super) fn moment(&self, wall: Time) -> Moment {
        let wall = self.dated(wall);
        // An event from the future counts as happening now: a wrong clock must not keep a session from becoming silent.
        Moment { wall, awake: (wall + self.lead).min(self.context.now.awake) }
    }

    /// The time of an event: without one of its own, when the file was last written.
    pub(super) fn moment_of(&self, event: &Event<'_>) -> Moment {
        self.moment(event.at.unwrap_or_else(|| self.written.min(self.context.now.wall)))
    }

    /// Counts a partial line as progress when it was written.
    pub(super) fn grew(&self, facts: &mut Facts) {
        facts.grew(self.moment(self.written.min(self.context.now.wall)), self.context.limits);
    }

    pub(super) fn is_over(&self) -> bool {
        self.context.until.is_some_and(|until| until <= Instant::now())
    }
}
