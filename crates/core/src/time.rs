//! Points in time and spans, in whole milliseconds.
//!
//! `core` never reads a clock. Two clocks matter to it, and every point that a limit is measured from carries both
//! (see [`Moment`]): the wall clock that Copilot writes into its log, which is what the user is shown; and the *awake*
//! clock, which stops while the machine sleeps and does not change when the wall clock is set, which is what silence is
//! measured on.
//!
//! An event has only a wall-clock time. `pilotlight_agents::tail` adds the difference between the two clocks at the time of
//! reading, and dates no event later than its file was last written.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, as the logs give it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// A span of time in milliseconds. May be negative where clocks disagree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Span(pub i64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `n` seconds.
    pub const fn seconds(n: i64) -> Self {
        Self(n * 1000)
    }

    /// A span of `n` minutes.
    pub const fn minutes(n: i64) -> Self {
        Self::seconds(n * 60)
    }

    /// A span of `n` hours.
    pub const fn hours(n: i64) -> Self {
        Self::minutes(n * 60)
    }

    /// Of the standard library's duration.
    pub fn of(duration: std::time::Duration) -> Self {
        Self(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }

    /// The standard library's equivalent; a negative span becomes zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(self.0).unwrap_or(0))
    }
}

/// Worded in the largest unit in which it is exact or at least four: `59 s`, `1 min`, `80 s`, `12 min`, `75 min`, `3 d`.
/// So the words are never less than three quarters of the span.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(i64, &str); 3] = [(86_400, "d"), (3600, "h"), (60, "min")];
        let seconds = self.0.max(0) / 1000;
        let fits = |unit: i64| seconds >= 4 * unit || seconds >= unit && seconds % unit == 0;
        let (unit, name) = UNITS.into_iter().find(|(unit, _)| fits(*unit)).unwrap_or((1, "s"));
        write!(f, "{} {name}", seconds / unit)
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Time {
    /// Reads an RFC 3339 timestamp, as every event carries one. `None` where it is not one.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::parse_canonical(text).or_else(|| {
            let text = std::str::from_utf8(text).ok()?;
            Some(Self(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()))
        })
    }

    /// The one form that Copilot writes, `2026-11-20T18:07:25.003Z`, without the cost of a general parser.
    fn parse_canonical(text: &[u8]) -> Option<Self> {
        let text: &[u8; 24] = text.try_into().ok()?;
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
        if marks.iter().any(|&(at, mark)| text[at] != mark) {
            return None;
        }
        let number = |range: std::ops::Range<usize>| {
            text[range]
                .iter()
                .try_fold(0i64, |n, digit| digit.is_ascii_digit().then(|| n * 10 + i64::from(digit - b'0')))
        };
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second, milli) = (number(11..13)?, number(14..16)?, number(17..19)?, number(20..23)?);
        if !(1..=12).contains(&month) || !(1..=28).contains(&day) || hour > 23 || minute > 59 || second > 59 {
            return None; // the last days of a month and leap seconds are left to the general parser
        }
        // Days from the civil date, counted in years that begin in March (Howard Hinnant, "chrono-compatible date
        // algorithms").
        let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let era = y.div_euclid(400);
        let year_of_era = y - era * 400;
        let day_of_year = (153 * m + 2) / 5 + day - 1;
        let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
        Some(Self((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milli))
    }
}

/// RFC 3339 in UTC, to the millisecond: `2026-11-20T18:07:25.003Z`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "(time out of range: {} ms)", self.0),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(text.as_bytes()).ok_or_else(|| serde::de::Error::custom("no RFC 3339 time"))
    }
}

/// One point on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The wall clock, as written in the log: what the user is shown.
    pub wall: Time,
    /// The awake clock: what limits are measured on. Only differences are meaningful.
    pub awake: Time,
}

impl Moment {
    /// A point at which both clocks read the same: in a replay, and wherever no sleep is known.
    pub const fn of(wall: Time) -> Self {
        Self { wall, awake: wall }
    }

    /// The point `span` later on both clocks.
    #[must_use]
    pub fn plus(self, span: Span) -> Self {
        Self { wall: self.wall + span, awake: self.awake + span }
    }

    /// Time awake since `earlier`; never negative.
    pub fn since(self, earlier: Self) -> Span {
        (self.awake - earlier.awake).max(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canonical_timestamp_reads_as_the_general_parser_reads_it() {
        for text in [
            "2026-11-20T18:07:25.003Z",
            "2024-02-28T23:59:59.999Z",
            "1970-01-01T00:00:00.000Z",
            "2000-03-01T12:00:00.500Z",
        ] {
            let general = text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
            assert_eq!(Time::parse_canonical(text.as_bytes()), Some(Time(general)), "{text}");
        }
    }

    #[test]
    fn a_span_is_worded_in_the_unit_that_fits() {
        for (seconds, words) in [
            (-1, "0 s"),
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (90, "90 s"),
            (239, "239 s"),
            (240, "4 min"),
            (299, "4 min"),
            (3600, "1 h"),
            (4500, "75 min"),
            (86_399, "23 h"),
            (86_400, "1 d"),
            (100_000, "27 h"),
        ] {
            assert_eq!(Span::seconds(seconds).to_string(), words);
        }
    }

    #[test]
    fn other_forms_of_a_timestamp_are_read_too() {
        assert_eq!(Time::parse(b"2024-02-29T00:00:00.000Z"), Some(Time(1_709_164_800_000)));
        assert_eq!(Time::parse(b"2026-11-20T19:07:25.003+01:00"), Time::parse(b"2026-11-20T18:07:25.003Z"));
        assert_eq!(Time::parse(b"2026-11-20T18:07:25Z"), Time::parse(b"2026-11-20T18:07:25.000Z"));
        for broken in [&b""[..], b"yesterday", b"2026-13-20T18:07:25.003Z", b"2026-11-20T18:07:25.0\xff3Z"] {
            assert_eq!(Time::parse(broken), None);
        }
    }

    #[test]
    fn a_time_is_shown_to_the_millisecond() {
        assert_eq!(Time(1_709_164_800_000).to_string(), "2024-02-29T00:00:00.000Z");
        assert_eq!(Time(i64::MAX).to_string(), format!("(time out of range: {} ms)", i64::MAX));
    }

    #[test]
    fn case_107a_durations_are_worded_in_the_unit_that_fits() {
        let worded = |seconds| Span::seconds(seconds).to_string();
        assert_eq!(
            [0, 30, 59, 60, 120, 600, 3600, 7200, 86_400 * 3].map(worded),
            ["0 s", "30 s", "59 s", "1 min", "2 min", "10 min", "1 h", "2 h", "3 d"]
        );
    }

    #[test]
    fn a_negative_span_is_none_to_the_standard_library() {
        assert_eq!([1500, -1].map(|millis| Span(millis).to_std().as_millis()), [1500, 0]);
    }
}
