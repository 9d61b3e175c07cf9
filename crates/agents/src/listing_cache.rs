//! Whether what a listing read is still as it was.

use pilotlight_core::time::{Span, Time};
use pilotlight_system::file_times::{changed, modified};
use std::fs;
use std::path::{Path, PathBuf};

/// Times of files are this far apart at most: FAT has even seconds.
const RESOLUTION: Span = Span::seconds(2);

/// The folders and files that a listing read, and when each was last changed by then. While that stands, another listing
/// would find the same. The default notes nothing, for whoever lists once.
#[derive(Debug, Default)]
pub struct ListingCache(Option<Vec<(PathBuf, Option<Times>)>>);

/// When a file was last written, and when it or its metadata was last changed.
type Times = (Time, (i64, i64));

impl ListingCache {
    /// Those of a listing that is made again and again.
    pub(crate) const fn kept() -> Self {
        Self(Some(Vec::new()))
    }

    /// Notes what is about to be read.
    pub(crate) fn note(&mut self, path: &Path) {
        if let Some(noted) = &mut self.0 {
            noted.push((path.to_owned(), times(path)));
        }
    }

    /// Forgets those that `is_one` holds for, but for the last `kept` by name.
    pub(crate) fn retain_last(&mut self, kept: usize, is_one: impl Fn(&Path) -> bool) {
        let Some(noted) = &mut self.0 else { return };
        noted.sort_by(|(one, _), (other, _)| other.cmp(one));
        let mut found = 0;
        noted.retain(|(path, _)| {
            found += usize::from(is_one(path));
            !is_one(path) || found <= kept
        });
    }

    /// Whether nothing of it has changed since. `false` where nothing was noted.
    pub fn stand(&self) -> bool {
        self.0.as_ref().is_some_and(|noted| !noted.is_empty() && noted.iter().all(|(path, then)| times(path) == *then))
    }

    /// Whether every later change will show. `now` is the wall clock.
    pub fn are_settled(&self, now: Time) -> bool {
        // The clock may have been set back.
        let is_settled = |written: Time| written + RESOLUTION < now || now + RESOLUTION < written;
        self.0.iter().flatten().all(|(_, times)| times.is_none_or(|(written, _)| is_settled(written)))
    }
}

fn times(path: &Path) -> Option<Times> {
    fs::metadata(path).ok().map(|meta| (modified(&meta), changed(&meta)))
}
