//! Small files in the state folder, read and replaced as a whole.
//!
//! A file is replaced by rename, so that after a crash or on a full disk the old one remains. A process that is killed
//! while writing leaves a partial file, which the next writer removes.
//!
//! A file names the version of its format: `{"version": 1, "content": …}`. A program reads the formats of all versions
//! before its own. It neither reads nor replaces a file of a later version, because it would lose what that one added.

use crate::paths;
use crate::plain_file::{self, Links};
use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use tempfile::{Builder, NamedTempFile};

/// The most bytes that are read. Our files are smaller.
const LENGTH_MAX: u64 = 1 << 20;
/// The age from which a partial file counts as abandoned: writing one takes milliseconds.
const ABANDONED: Duration = Duration::from_secs(60);
/// What the names of partial files begin and end with.
const PARTIAL: (&str, &str) = (".pilotlight-", ".new");
/// How much longer a replacement may become, in bytes: one more section of a page.
const LONGER: usize = 512;

/// Reads a file. Empty if it cannot be read.
pub fn read(path: &Path) -> String {
    let mut text = String::new();
    if let Ok((file, _)) = plain_file::open(path, Links::Followed) {
        let _ = file.take(LENGTH_MAX).read_to_string(&mut text); // what is no text counts as empty
    }
    text
}

/// What a file holds, with the version of its format.
#[derive(Serialize)]
struct Versioned<T> {
    version: u32,
    content: T,
}

/// Why the content of a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It is no JSON, or not of the expected form.
    #[error("it is broken: {0}")]
    Broken(#[from] serde_json::Error),
    /// A later version of Pilotlight wrote it, in a format that this one does not know.
    #[error("a later version of Pilotlight wrote it (format {0}); update this one")]
    Later(u64),
}

/// Reads the content of a file's text, in a format up to version `newest`. A text from before there were versions is its own
/// content.
///
/// # Errors
/// If the content cannot be used.
pub fn parse<T: DeserializeOwned>(text: &str, newest: u32) -> Result<T, Unusable> {
    let mut value: Value = serde_json::from_str(text)?;
    match value.get("version").and_then(Value::as_u64).filter(|_| value.get("content").is_some()) {
        None => {}
        Some(version) if version > u64::from(newest) => return Err(Unusable::Later(version)),
        Some(_) => value = value["content"].take(),
    }
    Ok(serde_json::from_value(value)?)
}

/// The text of a file with this content.
///
/// # Errors
/// If the content cannot be expressed as JSON.
pub fn text_of<T: Serialize>(version: u32, content: &T) -> anyhow::Result<Vec<u8>> {
    Ok(serde_json::to_vec_pretty(&Versioned { version, content })?)
}

/// Replaces a file, keeping its permissions.
///
/// # Errors
/// It cannot be written. The old file is unchanged.
pub fn replace(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    write(path, text, File::sync_all)
}

/// Like [`replace`], without waiting for the disk: the change may be lost if the machine crashes.
///
/// # Errors
/// It cannot be written. The old file is unchanged.
pub fn replace_without_sync(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    write(path, text, |_| Ok(()))
}

/// Checks that a file could be replaced by a slightly longer one. That one is written next to it, and removed.
///
/// # Errors
/// It cannot be written.
pub fn check_replaceable(path: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(!path.is_dir(), "{} is a folder", path.display());
    let mut text = read(path).into_bytes();
    text.resize(text.len() + LONGER, b' ');
    let temporary = write_temporary(path, &text)?;
    temporary.close().with_context(|| format!("cannot remove a file next to {}", path.display()))
}

fn write(path: &Path, text: &[u8], sync: impl FnOnce(&File) -> std::io::Result<()>) -> anyhow::Result<()> {
    let temporary = write_temporary(path, text)?;
    sync(temporary.as_file())
        .and_then(|()| temporary.persist(path).map_err(|error| error.error))
        .with_context(|| format!("cannot replace {}", path.display()))?;
    Ok(())
}

/// Writes a file next to `path`, with its permissions. It is removed unless it is persisted.
fn write_temporary(path: &Path, text: &[u8]) -> anyhow::Result<NamedTempFile> {
    let folder = path.parent().context("the file has no folder")?;
    paths::make_folder(folder)?;
    let written = Builder::new().prefix(PARTIAL.0).suffix(PARTIAL.1).tempfile_in(folder).and_then(|mut temporary| {
        remove_abandoned(folder, temporary.as_file());
        keep_permissions(path, temporary.as_file())?;
        temporary.write_all(text)?;
        Ok(temporary)
    });
    written.with_context(|| format!("cannot write a file in {}", folder.display()))
}

/// Copies the permissions of the old file, so that a private file does not become readable by everybody.
fn keep_permissions(before: &Path, file: &File) -> std::io::Result<()> {
    #[cfg(unix)]
    if let Ok(before) = fs::metadata(before).map(|meta| meta.permissions())
        && before != file.metadata()?.permissions()
    {
        file.set_permissions(before)?;
    }
    #[cfg(not(unix))]
    let _ = (before, file);
    Ok(())
}

/// Removes the partial files that killed processes left in this folder, if they are much older than `ours`.
fn remove_abandoned(folder: &Path, ours: &File) {
    let Ok(now) = ours.metadata().and_then(|meta| meta.modified()) else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_partial = name.to_str().is_some_and(|name| name.starts_with(PARTIAL.0) && name.ends_with(PARTIAL.1));
        let is_old = || {
            let modified = entry.metadata().and_then(|meta| meta.modified());
            modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > ABANDONED))
        };
        if is_partial && is_old() {
            let _ = fs::remove_file(entry.path()); // a leftover does no harm
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn threads_may_replace_the_same_file() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("seen.json");
        std::thread::scope(|scope| {
            for text in ["one", "two", "three", "four"] {
                let path = &path;
                scope.spawn(move || (0..50).for_each(|_| replace_without_sync(path, text.as_bytes()).unwrap()));
            }
        });
        assert!(["one", "two", "three", "four"].contains(&&*read(&path)));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_abandoned_partial_files_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("seen.json");
        let names = [".pilotlight-a1.new", ".pilotlight-b2.new", ".pilotlight-c3", "seen.new", "pilotlight-d4.new"];
        for name in names {
            let file = File::create(scratch.path().join(name)).unwrap();
            if name != ".pilotlight-b2.new" {
                file.set_modified(UNIX_EPOCH).unwrap();
            }
        }
        replace(&path, b"{}").unwrap();
        let exists = |name: &&str| scratch.path().join(name).exists();
        assert_eq!(names.iter().filter(|name| !exists(name)).collect::<Vec<_>>(), [&".pilotlight-a1.new"]);
        assert_eq!(read(&path), "{}");
    }

    #[test]
    fn whether_a_file_can_be_replaced_is_found_out_without_changing_it() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state").join("page.json");
        check_replaceable(&path).unwrap();
        replace(&path, b"{}").unwrap();
        check_replaceable(&path).unwrap();
        assert_eq!(read(&path), "{}");
        let names: Vec<_> =
            fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["page.json"]);
        // Neither a folder in its place, nor a file in the place of its folder.
        assert!(check_replaceable(path.parent().unwrap()).unwrap_err().to_string().contains("is a folder"));
        assert!(check_replaceable(&path.join("page.json")).is_err());
    }
}
