//! A file's times, and whether another write would change them.

use pilotlight_core::time::Time;
use pilotlight_system::file_times::changed;
use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// On some file systems modification times have a resolution of two seconds: a second write within that time leaves no
/// trace.
const SETTLES: Duration = Duration::from_secs(2);
/// The same where times have fractions of a millisecond: two ticks of a slow kernel's clock.
const TICKS: Duration = Duration::from_millis(20);

/// A file's modification and change times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) times: (SystemTime, (i64, i64)),
    /// Whether it was taken long enough after the last write for any later write to change the times.
    pub(super) sure: bool,
    /// The same, on any file system.
    pub(super) settled: bool,
}

impl Stamp {
    pub(super) fn of(meta: &Metadata, now: Time) -> Option<Self> {
        let modified = meta.modified().ok()?;
        let now = UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(now.0).ok()?))?;
        // The clock may have been set back: the next write may then get an earlier time than the last one.
        let apart = now.duration_since(modified).unwrap_or_else(|error| error.duration());
        let is_fine = modified.duration_since(UNIX_EPOCH).is_ok_and(|age| age.subsec_nanos() % 1_000_000 != 0);
        let settled = apart > SETTLES;
        Some(Self { times: (modified, changed(meta)), sure: settled || is_fine && apart > TICKS, settled })
    }
}
