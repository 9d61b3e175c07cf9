//! Whether a log is the one that was read: by its times, its length, and the end of what was read.

use super::{MARK, REACH, SETTLES, TICKS, Tail, read_at};
use crate::core::time::Time;
use crate::system::identity::Identity;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When a file was last written, and when anything of it last changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    times: (SystemTime, (i64, i64)),
    /// It was taken long enough after the last write that any later one shows in it.
    sure: bool,
    /// The same, on whatever file system.
    settled: bool,
}

impl Stamp {
    pub(super) fn of(meta: &Metadata, now: Time) -> Option<Self> {
        let modified = meta.modified().ok()?;
        let now = UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(now.0).ok()?))?;
        // A write from now on gets the time of now, which may be before that of the last one: clocks are set.
        let apart = now.duration_since(modified).unwrap_or_else(|error| error.duration());
        let is_fine = modified.duration_since(UNIX_EPOCH).is_ok_and(|age| age.subsec_nanos() % 1_000_000 != 0);
        let settled = apart > SETTLES;
        Some(Self { times: (modified, changed(meta)), sure: settled || is_fine && apart > TICKS, settled })
    }
}

#[cfg(unix)]
fn changed(meta: &Metadata) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (meta.ctime(), meta.ctime_nsec())
}

/// Not told here: the time of the last write has to do.
#[cfg(not(unix))]
const fn changed(_: &Metadata) -> (i64, i64) {
    (0, 0)
}

/// What a log is, beside the one that was read.
pub(super) enum Compared {
    /// The same, with nothing new.
    Same,
    /// The same, with more at its end.
    Grown,
    /// The same, with more at its end than anybody would read who came now.
    FarAhead,
    /// One as long as it was, with the same end: something before that may have been written over.
    Rewritten,
    /// Another one.
    Other,
}

impl Tail {
    /// Whether the log is the one that was read to its end, and was not written since. On Linux every opening is a file
    /// event for whoever asks for them, and this is done for each session whenever everything is looked at.
    pub(super) fn is_as_it_was(&self, path: &Path) -> bool {
        let Some(stamp) = self.stamp.filter(|stamp| stamp.settled && self.anew.is_none()) else { return false };
        fs::symlink_metadata(path).is_ok_and(|meta| {
            let same = self.file == Some(Identity::of(&meta)) && meta.len() == self.read;
            same && meta.is_file() && meta.modified().is_ok_and(|at| (at, changed(&meta)) == stamp.times)
        })
    }

    /// What became of the log since it was last read.
    pub(super) fn compare(&self, file: &File, meta: &Metadata) -> io::Result<Compared> {
        if self.file != Some(Identity::of(meta)) || meta.len() < self.read || !self.mark_stands(file)? {
            return Ok(Compared::Other);
        }
        if meta.len() - self.read > REACH {
            return Ok(Compared::FarAhead);
        }
        if meta.len() > self.read {
            return Ok(Compared::Grown);
        }
        let times = meta.modified().ok().map(|at| (at, changed(meta)));
        let same = self.stamp.is_some_and(|stamp| stamp.sure && times == Some(stamp.times));
        Ok(if same { Compared::Same } else { Compared::Rewritten })
    }

    /// Whether what was read last still stands where it stood: a log may be rewritten in place, and be longer than it was.
    pub(super) fn mark_stands(&self, file: &File) -> io::Result<bool> {
        if let Some((end, mark)) = self.line.as_ref().filter(|(end, _)| *end < self.read)
            && !stands(file, mark, *end)?
        {
            return Ok(false);
        }
        stands(file, &self.mark, self.read)
    }
}

/// Whether these bytes stand in the file before `end`.
fn stands(file: &File, mark: &[u8], end: u64) -> io::Result<bool> {
    let mut there = [0; MARK];
    let there = &mut there[..mark.len()];
    let n = read_at(file, there, end.saturating_sub(mark.len() as u64))?;
    Ok(n == mark.len() && *there == *mark)
}
