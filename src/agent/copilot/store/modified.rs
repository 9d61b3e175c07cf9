//! When a file was last written.

use crate::core::time::{Span, Time};
use std::fs::Metadata;
use std::time::UNIX_EPOCH;

/// When a file was last written, by the wall clock.
pub(super) fn modified(meta: &Metadata) -> Time {
    let Ok(modified) = meta.modified() else { return Time::default() };
    let span = |age: std::time::Duration| Span(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let at = match modified.duration_since(UNIX_EPOCH) {
        Ok(age) => Time::default() + span(age),
        Err(before) => Time::default() - span(before.duration()),
    };
    in_range(at)
}

/// The same, from the system's seconds since 1970 and nanoseconds.
#[cfg(target_os = "linux")]
pub(super) fn at(seconds: i64, nanoseconds: i64) -> Time {
    in_range(Time(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)))
}

/// Clamps a time to the years 0001 to 9999, which can be formatted: a file may have any.
fn in_range(at: Time) -> Time {
    const EARLIEST: Time = Time(-62_135_596_800_000);
    const LATEST: Time = Time(253_402_207_200_000);
    at.clamp(EARLIEST, LATEST)
}
