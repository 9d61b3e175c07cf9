//! How often file events are taken in: at once as long as they come now and then, together while they come all the time.
//!
//! Each waking costs as much as the look at what it was for: the system switches to us, nothing of ours is in the processor's
//! caches any more, and everything that is waited for is asked. Where many sessions write many lines a second, what they wrote
//! within a moment is looked at in one waking. That is told a little later than it could be, and still sooner than anybody sees.

use std::time::{Duration, Instant};

/// While events come all the time, they are taken in once in so long.
const STEP: Duration = Duration::from_millis(40);
/// So many wakings may follow each other faster than that.
const AT_ONCE: u32 = 10;

/// When events are taken in next.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When all wakings so far would be over, had each come a step after the one before.
    paid: Option<Instant>,
}

impl Pace {
    /// Until when events are left where they are; `None`: they are taken in now.
    pub(super) fn rests_until(&self, now: Instant) -> Option<Instant> {
        let until = self.paid?.checked_sub(STEP * AT_ONCE)?;
        (until > now).then_some(until)
    }

    /// Events were taken in. However often that was, for whatever reason, the next ones wait for one step at most: who is awake
    /// anyway, as in a storm, takes them in all the time.
    pub(super) fn took(&mut self, now: Instant) {
        let paid = self.paid.map_or(now, |paid| paid.max(now)) + STEP;
        self.paid = Some(paid.min(now + STEP * (AT_ONCE + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wakings for events that come every so often, for ten seconds, and the longest that one of them waits.
    fn follow(every: Duration) -> (u32, Duration) {
        let (mut pace, begun, mut wakings, mut longest) = (Pace::default(), Instant::now(), 0, Duration::ZERO);
        let mut at = begun;
        while at < begun + Duration::from_secs(10) {
            let taken = pace.rests_until(at).unwrap_or(at);
            longest = longest.max(taken - at);
            pace.took(taken);
            wakings += 1;
            while at <= taken {
                at += every;
            }
        }
        (wakings, longest)
    }

    #[test]
    fn what_comes_now_and_then_waits_for_nothing() {
        for millis in [40, 60, 100, 1000] {
            assert_eq!(follow(Duration::from_millis(millis)).1, Duration::ZERO, "every {millis} ms");
        }
    }

    #[test]
    fn what_comes_all_the_time_is_taken_in_together_and_waits_for_one_step_at_most() {
        for micros in [10, 1000, 10_000, 20_000] {
            let (wakings, longest) = follow(Duration::from_micros(micros));
            assert!((225..265).contains(&wakings), "every {micros} us: {wakings}");
            assert!(longest <= STEP, "every {micros} us: {longest:?}");
        }
    }

    #[test]
    fn after_a_storm_that_kept_everybody_awake_nothing_waits_for_longer() {
        let (mut pace, begun) = (Pace::default(), Instant::now());
        for n in 0..10_000 {
            pace.took(begun + Duration::from_millis(n));
        }
        let now = begun + Duration::from_secs(10);
        assert!(pace.rests_until(now).is_none_or(|until| until <= now + STEP), "{pace:?}");
        assert_eq!(pace.rests_until(now + STEP), None);
    }

    #[test]
    fn a_burst_after_a_rest_is_told_at_once() {
        let (mut pace, begun) = (Pace::default(), Instant::now());
        for rest in [0, 10, 20] {
            let at = begun + Duration::from_secs(rest);
            for n in 0..AT_ONCE {
                assert_eq!(pace.rests_until(at), None, "{n}");
                pace.took(at);
            }
            pace.took(at);
            assert_eq!(pace.rests_until(at), Some(at + STEP));
        }
    }
}
