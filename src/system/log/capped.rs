//! A file that does not grow beyond a bound: full, it takes the place of the one that was full before.
//!
//! Where somebody else removed it or set it aside meanwhile, it is begun anew: nobody would find what is written into the old one,
//! nor see it grow.

use crate::system::paths;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A log is full when it would grow beyond this. In bytes; with the one set aside, twice as much is kept at most.
const LENGTH_MAX: u64 = 1 << 20;

/// Whether the file still stands in its place is looked at so often at most, and when it is full.
const LOOKS: Duration = Duration::from_secs(1);

/// The file.
#[derive(Debug)]
pub(super) struct Capped {
    path: PathBuf,
    file: File,
    length: u64,
    looked: Instant,
}

impl Capped {
    /// Goes on with the file that is there, or begins it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            paths::make_folder(folder)?;
        }
        // What is no plain file is not opened: a pipe would wait for its reader.
        if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            return Err(io::Error::other(format!("{} is not a plain file", path.display())));
        }
        let file = File::options().create(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, length, looked: Instant::now() })
    }

    /// Looks whether the file still stands in its place; where it does not, goes on with what stands there. Whether it does now.
    fn look(&mut self) -> bool {
        self.looked = Instant::now();
        match (fs::metadata(&self.path), self.file.metadata()) {
            (Ok(there), Ok(ours)) if is_same(&there, &ours) => {
                self.length = there.len(); // somebody may have emptied it
                return true;
            }
            _ => {}
        }
        Self::open(&self.path).map(|anew| *self = anew).is_ok()
    }

    fn is_full_with(&self, line: &[u8]) -> bool {
        self.length > 0 && self.length + line.len() as u64 > LENGTH_MAX
    }

    /// Makes room in a full file: sets it aside, or where it cannot be, or does not stand in its place, empties it.
    fn make_room(&mut self, in_place: bool) -> io::Result<()> {
        let is_aside = in_place
            && match fs::rename(&self.path, full(&self.path)) {
                Ok(()) => true,
                Err(error) => error.kind() == ErrorKind::NotFound,
            };
        if is_aside && let Ok(anew) = Self::open(&self.path) {
            *self = anew;
            return Ok(());
        }
        // Not every system shortens a file by way of one who may only add to it.
        if self.file.set_len(0).is_err() {
            File::create(&self.path)?;
        }
        self.length = 0;
        Ok(())
    }
}

/// Whether both are one file. Where the system does not say so, a file in its place is taken for ours.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
    #[cfg(not(unix))]
    {
        one.is_file() && other.is_file()
    }
}

impl Write for Capped {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Where nothing can be opened in its place, the old one is written on: it is bounded as well.
        let looks = self.is_full_with(line) || self.looked.elapsed() >= LOOKS;
        let in_place = !looks || self.look();
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

/// Where a log is set aside when it is full.
pub(crate) fn full(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

/// A log of ours, whatever stands there, of one that is too long its end; empty where nothing can be read.
pub(super) fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if path.is_file() {
        let _ = File::open(path).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(2 * LENGTH_MAX)))?;
            file.take(2 * LENGTH_MAX).read_to_end(&mut bytes)
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last lines of a log, the older first.
pub(crate) fn last_lines(path: &Path, most: usize) -> Vec<String> {
    let (before, now) = (text(&full(path)), text(path));
    let lines: Vec<_> = before.lines().chain(now.lines()).collect();
    lines[lines.len().saturating_sub(most)..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_set_aside_while_it_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("made").join("x.log");
        let mut log = Capped::open(&path).unwrap();
        let line = [b'x'; 1023].iter().chain(b"\n").copied().collect::<Vec<u8>>();
        for _ in 0..3000 {
            log.write_all(&line).unwrap();
            assert!(fs::metadata(&path).unwrap().len() <= LENGTH_MAX);
        }
        assert_eq!(fs::metadata(full(&path)).unwrap().len(), LENGTH_MAX);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
        assert_eq!(last_lines(&path, 2000).len(), 1976, "the one that was set aside is read too");
        drop(log);
        assert_eq!(Capped::open(&path).unwrap().length, fs::metadata(&path).unwrap().len(), "the next run goes on");
    }

    /// A log into which the same long line goes again and again.
    fn scribble(log: &mut Capped, lines: usize) {
        let line = [b'x'; 1023].iter().chain(b"\n").copied().collect::<Vec<u8>>();
        for _ in 0..lines {
            log.write_all(&line).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_log_that_was_removed_or_moved_is_begun_anew() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, moved) = (scratch.path().join("x.log"), scratch.path().join("x.log.1"));
        let mut log = Capped::open(&path).unwrap();
        scribble(&mut log, 1);
        fs::remove_file(&path).unwrap();
        log.looked -= LOOKS;
        scribble(&mut log, 1);
        assert_eq!(fs::metadata(&path).unwrap().len(), 1024);
        fs::rename(&path, &moved).unwrap();
        fs::write(&path, "another's\n").unwrap();
        log.looked -= LOOKS;
        scribble(&mut log, 1);
        assert_eq!((fs::metadata(&moved).unwrap().len(), fs::metadata(&path).unwrap().len()), (1024, 1034));
        // However fast it is written, and at the latest when it is full.
        fs::remove_file(&path).unwrap();
        scribble(&mut log, 1025);
        assert!(log.file.metadata().unwrap().len() <= LENGTH_MAX && path.is_file());
        assert!(!full(&path).exists(), "what is not full is not set aside");
        fs::write(&path, "").unwrap();
        log.looked -= LOOKS;
        scribble(&mut log, 1);
        assert_eq!(log.length, 1024, "that it was emptied counts");
    }

    #[test]
    fn a_log_that_cannot_be_set_aside_is_emptied() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.log");
        fs::create_dir_all(full(&path).join("not empty")).unwrap();
        let mut log = Capped::open(&path).unwrap();
        scribble(&mut log, 1030);
        assert_eq!(fs::metadata(&path).unwrap().len(), 6 * 1024);
        assert_eq!(last_lines(&path, 10).len(), 6);
    }

    #[test]
    fn of_a_log_that_is_too_long_the_end_is_read() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.log");
        let line = "x".repeat(1023) + "\n";
        fs::write(&path, line.repeat(3000) + "the last\n").unwrap();
        assert!(text(&path).len() as u64 == 2 * LENGTH_MAX && text(&path).ends_with("the last\n"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_opened() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(Capped::open(scratch.path()).is_err());
        assert_eq!(text(scratch.path()), "");
    }
}
