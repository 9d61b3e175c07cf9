//! The clocks. No other module reads them.

use crate::core::time::{Moment, Span, Time};
use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
    pub(crate) fn continuing(now: Moment) -> Self {
        Self { started: Instant::now(), awake: now.awake }
    }

    /// The current time on both clocks.
    pub fn now(&self) -> Moment {
        Moment { wall: wall(), awake: self.awake + span(self.started.elapsed()) }
    }

    /// Converts a time on the awake clock to an [`Instant`].
    pub(crate) fn instant(&self, at: Time) -> Instant {
        self.started + (at - self.awake).to_std()
    }
}

/// How long the machine has slept in total, since an unspecified start: only differences are meaningful.
///
/// Linux has clocks for this, so setting the wall clock does not count as sleep. Elsewhere it is the lead of the wall
/// clock over the awake clock, which also grows when the wall clock is set forward.
pub(crate) fn slept(now: Moment) -> Span {
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

/// When the user's local time is next this full hour.
pub(crate) fn next(hour: i8, after: Time) -> Time {
    let next = || {
        let now = local(after)?;
        let today = now.with().hour(hour).minute(0).second(0).subsec_nanosecond(0).build().ok()?;
        let next = if today > now { today } else { today.checked_add(jiff::Span::new().days(1)).ok()? };
        Some(Time(next.timestamp().as_millisecond()))
    };
    next().unwrap_or_else(|| after + Span::hours(24))
}

/// This local time on the current day.
pub(crate) fn today(hour: i8, minute: i8, now: Time) -> Option<Time> {
    let at = local(now)?.with().hour(hour).minute(minute).second(0).subsec_nanosecond(0).build().ok()?;
    Some(Time(at.timestamp().as_millisecond()))
}

/// A time zone to show times in.
#[derive(Clone, Debug)]
pub(crate) struct Zone(jiff::tz::TimeZone);

impl Zone {
    /// The zone that a time was given in: the offset of a timestamp, else the system's zone.
    pub(crate) fn asked_in(text: &str) -> Self {
        let offset = jiff::fmt::temporal::Pieces::parse(text).ok().and_then(|pieces| pieces.to_numeric_offset());
        Self(offset.map_or_else(system_zone, jiff::tz::TimeZone::fixed))
    }

    /// A time in this zone, by RFC 3339.
    pub(crate) fn shown(&self, time: Time) -> String {
        match jiff::Timestamp::from_millisecond(time.0) {
            Ok(at) if !self.0.to_offset(at).is_zero() => {
                at.to_zoned(self.0.clone()).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
            }
            _ => time.to_string(),
        }
    }
}

fn system_zone() -> jiff::tz::TimeZone {
    jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC)
}

fn local(time: Time) -> Option<jiff::Zoned> {
    Some(jiff::Timestamp::from_millisecond(time.0).ok()?.to_zoned(system_zone()))
}

fn span(duration: Duration) -> Span {
    Span(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

fn wall() -> Time {
    #[expect(clippy::disallowed_methods, reason = "everything else is given this clock's time")]
    let now = SystemTime::now();
    match now.duration_since(UNIX_EPOCH) {
        Ok(age) => Time::default() + span(age),
        Err(before) => Time::default() - span(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_the_zone_that_it_was_asked_in() {
        let noon = Time::parse(b"2026-11-20T12:03:00Z").unwrap();
        assert_eq!(Zone::asked_in("2026-11-20T13:03:00+01:00").shown(noon), "2026-11-20T13:03:00.000+01:00");
        for utc in ["2026-11-20T12:03:00Z", "2026-11-20T12:03:00+00:00"] {
            assert_eq!(Zone::asked_in(utc).shown(noon), "2026-11-20T12:03:00.000Z");
        }
        let local = Zone::asked_in("12:03").shown(noon);
        assert_eq!(Time::parse(local.as_bytes()), Some(noon), "{local}");
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
