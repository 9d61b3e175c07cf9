//! Throttles file events: occasional ones are handled at once, frequent ones in batches.
//!
//! A wakeup costs as much as the work that it is for: a context switch, cold caches, and a poll of everything that is
//! waited for. Where many sessions write many lines a second, the events of a short interval are handled in one wakeup.
//! The delay is too short to notice.

use std::time::{Duration, Instant};

/// The interval between wakeups while events arrive all the time.
const STEP: Duration = Duration::from_millis(40);
/// How many wakeups may follow each other faster than that.
const BURST: u32 = 10;

/// Decides when events are handled next.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    /// When the steps of all wakeups so far end, if each begins no earlier than the one before it ends.
    paid_until: Option<Instant>,
}

impl Throttle {
    /// Until when events must wait; `None` if they may be handled now.
    pub(super) fn paused_until(&self, now: Instant) -> Option<Instant> {
        let until = self.paid_until?.checked_sub(STEP * BURST)?;
        (until > now).then_some(until)
    }

    /// Records a wakeup. The next events wait for one step at most, however many wakeups there were: in a storm, events
    /// are also handled whenever the loop is awake for other reasons.
    pub(super) fn record_wake(&mut self, now: Instant) {
        let paid = self.paid_until.map_or(now, |paid| paid.max(now)) + STEP;
        self.paid_until = Some(paid.min(now + STEP * (BURST + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates ten seconds of events at this interval. Returns the number of wakeups and the longest delay of an
    /// event.
    fn follow(every: Duration) -> (u32, Duration) {
        let (mut throttle, begun, mut wakeups, mut longest) = (Throttle::default(), Instant::now(), 0, Duration::ZERO);
        let mut at = begun;
        while at < begun + Duration::from_secs(10) {
            let taken = throttle.paused_until(at).unwrap_or(at);
            longest = longest.max(taken - at);
            throttle.record_wake(taken);
            wakeups += 1;
            while at <= taken {
                at += every;
            }
        }
        (wakeups, longest)
    }

    #[test]
    fn occasional_events_are_not_delayed() {
        for millis in [40, 60, 100, 1000] {
            assert_eq!(follow(Duration::from_millis(millis)).1, Duration::ZERO, "every {millis} ms");
        }
    }

    #[test]
    fn frequent_events_are_batched_and_wait_for_one_step_at_most() {
        for micros in [10, 1000, 10_000, 20_000] {
            let (wakeups, longest) = follow(Duration::from_micros(micros));
            assert!((225..265).contains(&wakeups), "every {micros} us: {wakeups}");
            assert!(longest <= STEP, "every {micros} us: {longest:?}");
        }
    }

    #[test]
    fn after_unthrottled_wakeups_events_wait_for_one_step_at_most() {
        let (mut throttle, begun) = (Throttle::default(), Instant::now());
        for n in 0..10_000 {
            throttle.record_wake(begun + Duration::from_millis(n));
        }
        let now = begun + Duration::from_secs(10);
        assert!(throttle.paused_until(now).is_none_or(|until| until <= now + STEP), "{throttle:?}");
        assert_eq!(throttle.paused_until(now + STEP), None);
    }

    #[test]
    fn a_burst_after_a_quiet_time_is_not_delayed() {
        let (mut throttle, begun) = (Throttle::default(), Instant::now());
        for rest in [0, 10, 20] {
            let at = begun + Duration::from_secs(rest);
            for n in 0..BURST {
                assert_eq!(throttle.paused_until(at), None, "{n}");
                throttle.record_wake(at);
            }
            throttle.record_wake(at);
            assert_eq!(throttle.paused_until(at), Some(at + STEP));
        }
    }
}
