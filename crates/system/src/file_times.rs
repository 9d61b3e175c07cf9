//! When a file was created, and last written.

use pilotlight_core::time::{Span, Time};
use std::fs::Metadata;
use std::time::{SystemTime, UNIX_EPOCH};

/// When a file was last written, by the wall clock.
pub fn modified(meta: &Metadata) -> Time {
    meta.modified().map_or(Time::default(), wall)
}

/// When a file was created, by the wall clock. `None` if its file system does not keep that.
pub fn created(meta: &Metadata) -> Option<Time> {
    meta.created().ok().map(wall)
}

/// When a file or its metadata was last changed.
#[cfg(unix)]
pub fn changed(meta: &Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (meta.ctime(), meta.ctime_nsec())
}

/// Not available here: the modification time has to do.
#[cfg(not(unix))]
pub const fn changed(_: &Metadata) -> (i64, i64) {
    (0, 0)
}

fn wall(at: SystemTime) -> Time {
    let span = |age: std::time::Duration| Span(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let at = match at.duration_since(UNIX_EPOCH) {
        Ok(age) => Time::default() + span(age),
        Err(before) => Time::default() - span(before.duration()),
    };
    in_range(at)
}

/// A time from the system's seconds since 1970 and nanoseconds.
#[cfg(target_os = "linux")]
pub fn at(seconds: i64, nanoseconds: i64) -> Time {
    in_range(Time(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)))
}

/// Clamps a time to the years 0001 to 9999, which can be formatted: a file may have any.
fn in_range(at: Time) -> Time {
    const EARLIEST: Time = Time(-62_135_596_800_000);
    const LATEST: Time = Time(253_402_207_200_000);
    at.clamp(EARLIEST, LATEST)
}
