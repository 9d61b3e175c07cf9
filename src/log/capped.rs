//! A file that does not grow beyond a bound: full, it takes the place of the one that was full before.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A log is full when it would grow beyond this. In bytes; with the one set aside, twice as much is kept at most.
const LENGTH_MAX: u64 = 1 << 20;

/// The file.
#[derive(Debug)]
pub(super) struct Capped {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Capped {
    /// Goes on with the file that is there, or begins it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            crate::paths::make_folder(folder)?;
        }
        // What is no plain file is not opened: a pipe would wait for its reader.
        if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            return Err(io::Error::other(format!("{} is not a plain file", path.display())));
        }
        let file = File::options().create(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, length })
    }

    fn set_aside(&mut self) -> io::Result<()> {
        fs::rename(&self.path, full(&self.path))?;
        *self = Self::open(&self.path)?;
        Ok(())
    }
}

impl Write for Capped {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Where it cannot be set aside, going on is better than silence; the next line tries again.
        if self.length > 0 && self.length + line.len() as u64 > LENGTH_MAX {
            let _ = self.set_aside();
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
pub fn full(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

/// A log of ours, whatever stands there; empty where nothing can be read.
pub(super) fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    if path.is_file() {
        let _ = File::open(path).and_then(|file| file.take(2 * LENGTH_MAX).read_to_end(&mut bytes));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last lines of a log, the older first.
pub fn last_lines(path: &Path, most: usize) -> Vec<String> {
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

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_opened() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(Capped::open(scratch.path()).is_err());
        assert_eq!(text(scratch.path()), "");
    }
}
