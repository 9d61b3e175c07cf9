//! Limits what a host may send in the long run. A host that sends more is read more slowly, and dropped if it goes on.

use crate::control::pipe::lines::{PAST_MAX, SHOWN_MAX};
use std::time::Duration;
use tokio::time::Instant;

/// The unit of the budget, in bytes: a line costs one piece for each started 4 KB. A session's report costs one.
const PIECE: usize = 4 << 10;
/// How many pieces may come at once. Of a machine, [`SHOWN_MAX`] sessions are shown, and [`PAST_MAX`] more are told of to
/// whoever chooses among all: twice that.
const AT_ONCE: usize = 2 * (SHOWN_MAX + PAST_MAX);
/// How many more each second: one of each session that is shown. A Pilotlight that has more to say than is read tells of
/// each session only the latest (`control::pipe::outbox`), so this keeps nothing from its user.
const A_SECOND: usize = SHOWN_MAX;
/// How long a host may say so much, without a second in which it says nothing, before it is left.
pub(super) const FLOODS_AFTER: Duration = Duration::from_secs(30);

/// What a host has said, as far as time has not made up for it.
#[derive(Debug)]
pub(super) struct RateLimiter {
    /// In pieces; more than [`AT_ONCE`] if the last line was long.
    used: usize,
    renewed: Instant,
    /// Since when there has been nothing left for as much as a second.
    used_up: Option<Instant>,
}

impl RateLimiter {
    pub(super) const fn new(now: Instant) -> Self {
        Self { used: 0, renewed: now, used_up: None }
    }

    /// Adds what became due since this was called last.
    pub(super) fn renew(&mut self, now: Instant) {
        let passed = usize::try_from((now - self.renewed).as_millis()).unwrap_or(usize::MAX);
        self.renewed = now;
        self.used = self.used.saturating_sub(passed.saturating_mul(A_SECOND) / 1000);
        if self.used + A_SECOND <= AT_ONCE {
            self.used_up = None;
        }
    }

    /// Nothing becomes due for as long: whoever is told was busy with what was said.
    pub(super) fn withhold(&mut self, time: Duration) {
        self.renewed += time;
    }

    /// Takes what a line needs that has grown from so many bytes to so many.
    pub(super) fn take(&mut self, before: usize, after: usize, now: Instant) {
        self.used += after.div_ceil(PIECE) - before.div_ceil(PIECE);
        if self.is_used_up() {
            self.used_up.get_or_insert(now);
        }
    }

    /// Whether to read no more now.
    pub(super) const fn is_used_up(&self) -> bool {
        self.used >= AT_ONCE
    }

    /// Whether it was used up for so long that this will not end.
    pub(super) fn is_flooded(&self, now: Instant) -> bool {
        self.used_up.is_some_and(|since| now - since >= FLOODS_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that has so many lines more to say in each tenth of a second, each of so many bytes, for as many minutes.
    /// Returns after how long it is left, if it is, and how many lines were read.
    fn said(more: impl Fn(usize) -> usize, bytes: usize, minutes: usize) -> (Option<Duration>, usize) {
        let began = Instant::now();
        let (mut now, mut limiter, mut waiting, mut read) = (began, RateLimiter::new(began), 0_usize, 0);
        for slice in 0..minutes * 600 {
            limiter.renew(now);
            if limiter.is_flooded(now) {
                return (Some(now - began), read);
            }
            waiting += more(slice);
            // No more are read in a slice (`incoming`).
            for _ in 0..waiting.min(1000) {
                if !limiter.is_used_up() {
                    limiter.take(0, bytes, now);
                    (waiting, read) = (waiting - 1, read + 1);
                }
            }
            now += Duration::from_millis(100);
        }
        (None, read)
    }

    #[test]
    fn case_473_a_flood_is_slowed_down_and_then_left() {
        for (bytes, most) in [(8, AT_ONCE + 35 * A_SECOND), (1 << 20, 250)] {
            let (left, read) = said(|_| 100_000, bytes, 10);
            assert!(left.is_some_and(|left| left < Duration::from_secs(35)) && read <= most, "{left:?} {read}");
        }
    }

    /// What takes long to take up is too much sooner.
    #[test]
    fn case_473_no_more_becomes_due_while_the_loop_is_busy_with_it() {
        let began = Instant::now();
        let (mut busy, mut idle) = (RateLimiter::new(began), RateLimiter::new(began));
        let later = began + Duration::from_secs(10);
        for (limiter, is_busy) in [(&mut busy, true), (&mut idle, false)] {
            limiter.take(0, AT_ONCE * PIECE, began);
            limiter.withhold(if is_busy { later - began } else { Duration::ZERO });
            limiter.renew(later);
            assert_eq!(limiter.is_used_up(), is_busy);
        }
    }

    /// Thousands of sessions at first, then bursts, and many that change all the time.
    #[test]
    fn case_474_a_busy_host_is_read_and_never_left() {
        let busy = |slice: usize| match slice {
            0 => 5 * SHOWN_MAX + PAST_MAX,
            _ if slice.is_multiple_of(300) => 4 * SHOWN_MAX,
            // Each of 200, four times a second.
            _ => 80,
        };
        let (left, read) = said(busy, 3000, 60);
        assert_eq!(left, None);
        assert!(read > 60 * 60 * 800, "all of it: {read}");
    }
}
