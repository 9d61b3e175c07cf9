//! A log file of bounded length. When it is full, it is rotated, replacing the previously rotated one.
//!
//! If somebody else has removed or moved the file, a new one is created: nobody would find what is written to the old
//! one.

#![allow(clippy::disallowed_methods, reason = "passes options to the one place")]

use crate::identity::Identity;
use crate::paths;
use crate::plain_file::{self, Links, OpenError};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum length of a log, in bytes. With the rotated one, at most twice as much is kept.
const LENGTH_MAX: u64 = 1 << 20;

/// The minimum interval between checks whether the file is still in its place. It is also checked when the file is
/// full.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// An open log file.
#[derive(Debug)]
pub(super) struct Capped {
    path: PathBuf,
    file: File,
    length: u64,
    /// When it was last checked whether the file is still in its place.
    checked: Instant,
}

impl Capped {
    /// Opens the file to append to it, and creates it if necessary.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            paths::make_folder(folder)?;
        }
        let (file, meta) = plain_file::open_with(File::options().create(true).append(true), path, Links::Followed)
            .map_err(|error| match error {
                OpenError::NotAFile(what) => io::Error::other(format!("{} is {what}, not a file", path.display())),
                OpenError::Io(error) => error,
            })?;
        Ok(Self { path: path.to_owned(), file, length: meta.len(), checked: Instant::now() })
    }

    /// Checks whether the file is still in its place. If not, opens the one that is, or creates it. Returns whether the
    /// open file is in its place now.
    fn check_place(&mut self) -> bool {
        self.checked = Instant::now();
        match (fs::metadata(&self.path), self.file.metadata()) {
            (Ok(in_place), Ok(ours)) if Identity::of(&in_place) == Identity::of(&ours) => {
                self.length = in_place.len(); // somebody may have emptied it
                return true;
            }
            _ => {}
        }
        Self::open(&self.path).map(|new| *self = new).is_ok()
    }

    fn is_full_with(&self, line: &[u8]) -> bool {
        self.length > 0 && self.length + line.len() as u64 > LENGTH_MAX
    }

    /// Makes room in a full file: rotates it. A file that cannot be rotated, or is not in its place, is emptied.
    fn make_room(&mut self, in_place: bool) -> io::Result<()> {
        let is_rotated = in_place
            && match fs::rename(&self.path, rotated(&self.path)) {
                Ok(()) => true,
                Err(error) => error.kind() == ErrorKind::NotFound,
            };
        if is_rotated && let Ok(new) = Self::open(&self.path) {
            *self = new;
            return Ok(());
        }
        // Not every system truncates a file that is open only for appending.
        if self.file.set_len(0).is_err() {
            plain_file::open_with(File::options().write(true), &self.path, Links::Followed)?.0.set_len(0)?;
        }
        self.length = 0;
        Ok(())
    }
}

impl Write for Capped {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // If no file can be opened in its place, the old one is still written to: it is bounded as well.
        let is_due = self.is_full_with(line) || self.checked.elapsed() >= CHECK_INTERVAL;
        let in_place = !is_due || self.check_place();
        if self.is_full_with(line) {
            self.make_room(in_place)?;
        }
        let written = self.file.write(line)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The path of the rotated log.
fn rotated(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

/// Reads a log as text; of one that is too long, only its end. Empty if it cannot be read.
fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok((mut file, meta)) = plain_file::open(path, Links::Followed) {
        let start = SeekFrom::Start(meta.len().saturating_sub(2 * LENGTH_MAX));
        let _ = file.seek(start).and_then(|_| file.take(2 * LENGTH_MAX).read_to_end(&mut bytes)); // what was read counts
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last lines of a log and its rotated one, at most `max`, oldest first.
pub fn last_lines(path: &Path, max: usize) -> Vec<String> {
    let (before, now) = (text(&rotated(path)), text(path));
    let lines: Vec<_> = before.lines().chain(now.lines()).collect();
    lines[lines.len().saturating_sub(max)..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_rotated_while_it_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("made").join("x.log");
        let mut log = Capped::open(&path).unwrap();
        let line = [b'x'; 1023].iter().chain(b"\n").copied().collect::<Vec<u8>>();
        for _ in 0..3000 {
            log.write_all(&line).unwrap();
            assert!(fs::metadata(&path).unwrap().len() <= LENGTH_MAX);
        }
        assert_eq!(fs::metadata(rotated(&path)).unwrap().len(), LENGTH_MAX);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
        assert_eq!(last_lines(&path, 2000).len(), 1976, "the rotated one is read too");
        drop(log);
        assert_eq!(
            Capped::open(&path).unwrap().length,
            fs::metadata(&path).unwrap().len(),
            "the next run continues it"
        );
    }

    /// Writes lines of 1024 bytes.
    fn write_lines(log: &mut Capped, lines: usize) {
        let line = [b'x'; 1023].iter().chain(b"\n").copied().collect::<Vec<u8>>();
        for _ in 0..lines {
            log.write_all(&line).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_log_that_was_removed_or_moved_is_created_again() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, moved) = (scratch.path().join("x.log"), scratch.path().join("x.log.1"));
        let mut log = Capped::open(&path).unwrap();
        write_lines(&mut log, 1);
        fs::remove_file(&path).unwrap();
        log.checked -= CHECK_INTERVAL;
        write_lines(&mut log, 1);
        assert_eq!(fs::metadata(&path).unwrap().len(), 1024);
        fs::rename(&path, &moved).unwrap();
        fs::write(&path, "another's\n").unwrap();
        log.checked -= CHECK_INTERVAL;
        write_lines(&mut log, 1);
        assert_eq!((fs::metadata(&moved).unwrap().len(), fs::metadata(&path).unwrap().len()), (1024, 1034));
        // A full log is checked before the interval is over.
        fs::remove_file(&path).unwrap();
        write_lines(&mut log, 1025);
        assert!(log.file.metadata().unwrap().len() <= LENGTH_MAX && path.is_file());
        assert!(!rotated(&path).exists(), "a new file is not rotated");
        fs::write(&path, "").unwrap();
        log.checked -= CHECK_INTERVAL;
        write_lines(&mut log, 1);
        assert_eq!(log.length, 1024, "the file was emptied");
    }

    #[test]
    fn a_log_that_cannot_be_rotated_is_emptied() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.log");
        fs::create_dir_all(rotated(&path).join("not empty")).unwrap();
        let mut log = Capped::open(&path).unwrap();
        write_lines(&mut log, 1030);
        assert_eq!(fs::metadata(&path).unwrap().len(), 6 * 1024);
        assert_eq!(last_lines(&path, 10).len(), 6);
    }

    #[test]
    fn of_a_log_that_is_too_long_only_the_end_is_read() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.log");
        let line = "x".repeat(1023) + "\n";
        fs::write(&path, line.repeat(3000) + "the last\n").unwrap();
        assert!(text(&path).len() as u64 == 2 * LENGTH_MAX && text(&path).ends_with("the last\n"));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_not_opened_as_a_log() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(Capped::open(scratch.path()).is_err());
        assert_eq!(text(scratch.path()), "");
    }
}
