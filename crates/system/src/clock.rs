//! The clocks. No other module reads them.

use pilotlight_core::time::{Moment, Span, Time};
use std::fmt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Reads both clocks: the wall clock and the awake clock.
///
/// The awake clock starts at the wall clock's time and then follows the system's monotonic clock, which stops while the
/// machine sleeps and ignores changes of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    started: Instant,
    awake: Time,
}

impl Clock {
    /// Starts the awake clock.
    pub fn start() -> Self {
        Self { started: Instant::now(), awake: wall() }
    }

    /// A clock whose awake time continues from `now`, as read from another clock.
    pub fn continuing(now: Moment) -> Self {
        Self { started: Instant::now(), awake: now.awake }
    }

    /// The current time on both clocks.
    pub fn now(&self) -> Moment {
        Moment { wall: wall(), awake: self.awake + Span::of(self.started.elapsed()) }
    }

    /// Converts a time on the awake clock to an [`Instant`].
    pub fn instant(&self, at: Time) -> Instant {
        self.started + (at - self.awake).to_std()
    }
}

/// How long the machine has slept in total, since an unspecified start: only differences are meaningful.
///
/// Linux has clocks for this, so setting the wall clock does not count as sleep. Elsewhere it is the lead of the wall
/// clock over the awake clock, which also grows when the wall clock is set forward.
pub fn slept(now: Moment) -> Span {
    #[cfg(target_os = "linux")]
    {
        use rustix::time::{ClockId, clock_gettime};
        let read = |clock| {
            let at = clock_gettime(clock);
            Span(at.tv_sec * 1000 + at.tv_nsec / 1_000_000)
        };
        let _ = now;
        // The first advances while the machine sleeps, the second does not.
        Span(read(ClockId::Boottime).0 - read(ClockId::Monotonic).0)
    }
    #[cfg(not(target_os = "linux"))]
    {
        now.wall - now.awake
    }
}

/// A time of day in the user's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Minutes since midnight.
    pub minute: u16,
}

impl WallClock {
    /// The time of day at `time`, in the system's current time zone, or UTC if that is unknown.
    pub fn at(time: Time) -> Self {
        let minute = local(time).map_or(0, |at| i32::from(at.hour()) * 60 + i32::from(at.minute()));
        Self { minute: u16::try_from(minute).unwrap_or_default() }
    }
}

/// Formats as `18:30`.
impl fmt::Display for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}", self.minute / 60, self.minute % 60)
    }
}

/// A time as people say it, in the user's time zone: `18:30` today, else `20 Nov 18:30`.
pub fn short(at: Time) -> String {
    short_on(at, wall())
}

/// The same, as said at the time `now`. What is only seconds ahead is told to the second.
pub fn short_on(at: Time, now: Time) -> String {
    let (Some(local_at), Some(local_now)) = (local(at), local(now)) else { return at.to_string() };
    let time = if at > now && at - now < Span::minutes(1) { "%-H:%M:%S" } else { "%-H:%M" };
    let format = if local_at.date() == local_now.date() { time.to_owned() } else { format!("%-d %b {time}") };
    local_at.strftime(&format).to_string()
}

/// When the user's local time is next this full hour.
pub fn next(hour: i8, after: Time) -> Time {
    let next = || {
        let now = local(after)?;
        let today = now.with().hour(hour).minute(0).second(0).subsec_nanosecond(0).build().ok()?;
        let next = if today > now { today } else { today.checked_add(jiff::Span::new().days(1)).ok()? };
        Some(Time(next.timestamp().as_millisecond()))
    };
    next().unwrap_or_else(|| after + Span::hours(24))
}

fn system_zone() -> jiff::tz::TimeZone {
    jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC)
}

/// How far the user's clock is ahead of UTC at this time.
pub fn offset(time: Time) -> Span {
    local(time).map_or(Span::ZERO, |at| Span::seconds(i64::from(at.offset().seconds())))
}

fn local(time: Time) -> Option<jiff::Zoned> {
    Some(jiff::Timestamp::from_millisecond(time.0).ok()?.to_zoned(system_zone()))
}

/// The wall clock in nanoseconds since 1970, to order what happens within a millisecond.
pub fn wall_nanoseconds() -> i64 {
    let age = system_time().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(age.as_nanos()).unwrap_or(i64::MAX)
}

fn system_time() -> SystemTime {
    #[expect(clippy::disallowed_methods, reason = "everything else is given this clock's time")]
    SystemTime::now()
}

fn wall() -> Time {
    match system_time().duration_since(UNIX_EPOCH) {
        Ok(age) => Time::default() + Span::of(age),
        Err(before) => Time::default() - Span::of(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_701_a_time_is_local_and_short() {
        let at = Time(1_700_000_000_000);
        let today = short_on(at, at + Span::minutes(1));
        let later = short_on(at, at + Span::hours(48));
        assert_eq!(today, WallClock::at(at).to_string());
        assert!(later.ends_with(&format!(" Nov {today}")), "{later}");
        assert!(!later.contains(['T', 'Z', '.']), "{later}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn case_68_setting_the_wall_clock_does_not_count_as_sleep() {
        let now = Clock::start().now();
        let before = slept(now);
        for hours in [-1, 1, 24] {
            let after = slept(Moment { wall: now.wall + Span::hours(hours), ..now });
            assert!((after - before).0.abs() < 100, "{before:?} {after:?}");
        }
    }

    #[test]
    fn the_next_full_hour_is_ahead_and_within_a_day() {
        for minutes in 0..48 * 60 {
            let now = Time(1_763_700_000_000) + Span::minutes(minutes);
            let at = next(6, now);
            assert!(at > now && at - now <= Span::hours(25), "{now} {at}");
            assert_eq!(WallClock::at(at).to_string(), "6:00");
        }
    }
}
