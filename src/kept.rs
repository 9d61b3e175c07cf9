//! Small files in the state folder: read whole, replaced whole.
//!
//! A file is replaced by rename, so that a crash or a full disk leaves the old one.

use anyhow::Context;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A larger file is not ours. In bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// What is kept there. A file that cannot be read is as good as none.
pub fn read(path: &Path) -> String {
    let mut text = String::new();
    if path.is_file() {
        let _ = File::open(path).and_then(|file| file.take(LENGTH_MAX).read_to_string(&mut text));
    }
    text
}

/// Keeps this there from now on.
///
/// # Errors
/// Where it cannot be written; what was kept before is still there then.
pub fn replace(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().context("the file has no folder")?;
    crate::paths::make_folder(folder)?;
    let (beside, mut file) = beside(path)?;
    let written = file.write_all(text).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&beside, path));
    written.inspect_err(|_| drop(fs::remove_file(&beside))).map_err(Into::into)
}

/// A new file next to `path`, of this process alone.
fn beside(path: &Path) -> anyhow::Result<(PathBuf, File)> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let file = File::create(&beside).with_context(|| format!("cannot write {}", beside.display()))?;
    Ok((beside, file))
}
