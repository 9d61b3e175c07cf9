//! The one place that opens files which others may have put there, or exchange for something else at any moment.
//!
//! Between a look at a path and its opening, a file may become a pipe, whose opening waits for a writer for ever. So
//! nothing is opened by what a look has shown: opening never waits, never makes a terminal ours, and what was opened
//! counts only if it is a regular file itself. The look before that only spares pipes and devices the opening, which
//! they notice. `clippy.toml` of each crate keeps everything else from
//! opening files.

#![allow(clippy::disallowed_methods, reason = "this is the one place")]

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// What becomes of a symlink in a file's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// It is followed: users keep their settings elsewhere, and link to them.
    Followed,
    Refused,
}

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It is something else, in words for the user.
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    /// The system reported an error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io(error) => error,
            OpenError::NotAFile(_) => Self::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

/// Opens a regular file to read it.
///
/// # Errors
/// Where it is something else, or the system reports an error.
pub fn open(path: &Path, links: Links) -> Result<(File, Metadata), OpenError> {
    open_with(File::options().read(true), path, links)
}

/// Opens a regular file with these options, which must not truncate it.
///
/// # Errors
/// Where it is something else, or the system reports an error.
pub fn open_with(options: &mut OpenOptions, path: &Path, links: Links) -> Result<(File, Metadata), OpenError> {
    let look = match links {
        Links::Followed => fs::metadata(path),
        Links::Refused => fs::symlink_metadata(path),
    };
    if let Some(what) = look.ok().and_then(|meta| other_kind(meta.file_type())) {
        return Err(OpenError::NotAFile(what));
    }
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // The standard library adds `O_CLOEXEC`.
        let link = if links == Links::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY | link).bits().cast_signed());
    }
    let file = options.open(path)?;
    let meta = file.metadata()?;
    match other_kind(meta.file_type()) {
        Some(what) => Err(OpenError::NotAFile(what)),
        None => Ok((file, meta)),
    }
}

/// What is in a file's place instead, in words for the user. `None` for a regular file.
fn other_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a folder")
    } else if kind.is_symlink() {
        Some("a symbolic link")
    } else {
        Some("a pipe or a device")
    }
}

/// Creates a file that did not exist, or replaces what is in its place.
///
/// # Errors
/// Where the system reports one.
pub fn create(path: &Path) -> io::Result<File> {
    let create = || File::options().write(true).create_new(true).open(path);
    create().or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| create()),
        _ => Err(error),
    })
}

/// Whether an error means that nothing is there, rather than that it could not be read: out of file descriptors, or
/// permission denied.
pub fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::process::testing::make_pipe;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_regular_file_is_opened_and_a_link_to_one_where_that_is_wanted() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::write(at("file"), "text").unwrap();
        fs::create_dir(at("folder")).unwrap();
        make_pipe(&at("pipe"));
        symlink("file", at("link")).unwrap();
        symlink("pipe", at("link to a pipe")).unwrap();
        let opened = |name: &str, links| match open(&at(name), links) {
            Ok((mut file, meta)) => {
                let mut text = String::new();
                assert_eq!(file.read_to_string(&mut text).unwrap() as u64, meta.len());
                text
            }
            Err(error) => error.to_string(),
        };
        for links in [Links::Followed, Links::Refused] {
            assert_eq!(opened("file", links), "text");
            assert_eq!(opened("folder", links), "it is a folder, not a file");
            assert_eq!(opened("pipe", links), "it is a pipe or a device, not a file");
            assert!(opened("nothing", links).contains("No such file"));
        }
        assert_eq!(opened("link", Links::Followed), "text");
        assert_eq!(opened("link", Links::Refused), "it is a symbolic link, not a file");
        assert_eq!(opened("link to a pipe", Links::Followed), "it is a pipe or a device, not a file");

        let mut append = File::options();
        let (mut log, _) = open_with(append.create(true).append(true), &at("log"), Links::Followed).unwrap();
        log.write_all(b"line").unwrap();
        assert_eq!(opened("log", Links::Refused), "line");
        for name in ["pipe", "link", "file", "new"] {
            create(&at(name)).unwrap().write_all(b"new").unwrap();
            assert_eq!(opened(name, Links::Refused), "new");
        }
    }

    /// Case 178: whatever a path leads to at the moment when it is opened, opening never waits.
    #[test]
    fn case_178_a_file_that_is_exchanged_for_a_pipe_is_never_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, pipe) = (scratch.path().join("it"), scratch.path().join("pipe"));
        fs::write(&path, "text").unwrap();
        make_pipe(&pipe);
        std::thread::scope(|scope| {
            let exchanges = scope.spawn(|| {
                let next = scratch.path().join("next");
                for (from, to) in [(&path, &next), (&pipe, &path), (&next, &pipe)].repeat(20_000) {
                    fs::rename(from, to).unwrap();
                }
            });
            let (mut files, mut pipes) = (0, 0);
            while !exchanges.is_finished() {
                match open(&path, Links::Refused) {
                    Ok((_, meta)) if meta.is_file() => files += 1,
                    Err(OpenError::NotAFile("a pipe or a device")) => pipes += 1,
                    Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
                    other => panic!("{other:?}"),
                }
            }
            assert!(files > 0 && pipes > 0, "{files} times a file, {pipes} times a pipe");
        });
    }
}
