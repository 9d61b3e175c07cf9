//! Small files in the state folder: read whole, replaced whole.
//!
//! A file is replaced by rename, so that a crash or a full disk leaves the old one. What a process that was killed had half
//! written stays beside it, and is taken away by the next that writes.

use crate::system::paths;
use anyhow::Context;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A larger file is not ours. In bytes.
const LENGTH_MAX: u64 = 1 << 20;
/// What was begun so long before is not written on: writing takes milliseconds.
const ABANDONED: Duration = Duration::from_secs(60);

/// What is kept there. A file that cannot be read is as good as none.
pub(crate) fn read(path: &Path) -> String {
    let mut text = String::new();
    if path.is_file() {
        let _ = File::open(path).and_then(|file| file.take(LENGTH_MAX).read_to_string(&mut text));
    }
    text
}

/// Keeps this there from now on, for whom the file that was there before was.
///
/// # Errors
/// Where it cannot be written; what was kept before is still there then.
pub(crate) fn replace(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    write(path, text, File::sync_all)
}

/// The same for what may be lost where the machine goes down: whoever writes does not wait for the disk.
///
/// # Errors
/// Where it cannot be written; what was kept before is still there then.
pub(crate) fn replace_at_once(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    write(path, text, |_| Ok(()))
}

fn write(path: &Path, text: &[u8], settle: impl FnOnce(&File) -> std::io::Result<()>) -> anyhow::Result<()> {
    let folder = path.parent().context("the file has no folder")?;
    paths::make_folder(folder)?;
    let (beside, mut file) = beside(path)?;
    sweep(path, &file);
    let written = keep_permissions(path, &file)
        .and_then(|()| file.write_all(text))
        .and_then(|()| settle(&file))
        .and_then(|()| fs::rename(&beside, path));
    written.inspect_err(|_| drop(fs::remove_file(&beside))).map_err(Into::into)
}

/// A private file does not become one for all to read.
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

/// A new file next to `path`, of this process alone.
fn beside(path: &Path) -> anyhow::Result<(PathBuf, File)> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let file = File::create(&beside).with_context(|| format!("cannot write {}", beside.display()))?;
    Ok((beside, file))
}

/// Takes away what processes that were killed had begun to write in place of `path`, long before `ours` was made.
fn sweep(path: &Path, ours: &File) {
    let (Some(folder), Some(stem), Ok(now)) =
        (path.parent(), path.file_stem(), ours.metadata().and_then(|meta| meta.modified()))
    else {
        return;
    };
    let is_of_another = |name: &Path| {
        let pid = name.file_stem().map(Path::new);
        let digits =
            pid.and_then(Path::extension).is_some_and(|pid| pid.as_encoded_bytes().iter().all(u8::is_ascii_digit));
        name.extension().is_some_and(|end| end == "new") && digits && pid.and_then(Path::file_stem) == Some(stem)
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let begun = entry.metadata().and_then(|meta| meta.modified());
        let is_old = begun.is_ok_and(|begun| now.duration_since(begun).is_ok_and(|age| age > ABANDONED));
        if is_old && is_of_another(Path::new(&entry.file_name())) {
            let _ = fs::remove_file(entry.path()); // what cannot be taken away does no harm
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn what_a_killed_process_left_behind_is_taken_away_and_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("seen.json");
        let names = ["seen.1.new", "seen.2.new", "seen.new", "seen.x.new", "other.1.new", "seen.1.json"];
        for name in names {
            let file = File::create(scratch.path().join(name)).unwrap();
            if name != "seen.2.new" {
                file.set_modified(UNIX_EPOCH).unwrap();
            }
        }
        replace(&path, b"{}").unwrap();
        let stands = |name: &&str| scratch.path().join(name).exists();
        assert_eq!(names.iter().filter(|name| !stands(name)).collect::<Vec<_>>(), [&"seen.1.new"]);
        assert_eq!(read(&path), "{}");
    }
}
