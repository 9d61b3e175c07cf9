//! A log as a file: opens it, and reads bytes at a position.

use pilotlight_core::time::Time;
use pilotlight_system::plain_file::{self, Links, OpenError};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Why a log cannot be read, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It is not a regular file, and is not opened.
    #[error("its log is {0}, not a file; it is left alone")]
    NotAFile(&'static str),
    /// The system reported an error.
    #[error("its log cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Returns the length of a readable log, in bytes.
///
/// # Errors
/// Where it is not a regular file, or cannot be opened.
pub fn length(path: &Path) -> Result<u64, LogError> {
    open(path).map(|(_, meta)| meta.len())
}

/// Opens a log if it is a regular file. Does not follow links, and does not block on pipes.
pub(super) fn open(path: &Path) -> Result<(File, Metadata), LogError> {
    Ok(plain_file::open(path, Links::Refused)?)
}

impl From<OpenError> for LogError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NotAFile(what) => Self::NotAFile(what),
            OpenError::Io(error) => Self::Io(error),
        }
    }
}

/// When a file was last written, by the wall clock.
pub(super) fn written(meta: &Metadata) -> Time {
    let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    // Where the system does not provide it, the events' own times are trusted.
    meta.modified().map_or(Time(i64::MAX), |at| match at.duration_since(UNIX_EPOCH) {
        Ok(age) => Time(millis(age)),
        Err(before) => Time(-millis(before.duration())),
    })
}

/// Reads bytes at a position.
#[cfg(unix)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    retry(|| file.read_at(buffer, at))
}

/// Reads bytes at a position.
#[cfg(windows)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::windows::fs::FileExt;
    retry(|| file.seek_read(buffer, at))
}

fn retry(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
