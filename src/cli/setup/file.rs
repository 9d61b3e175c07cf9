//! A file that `setup` writes, and whether it still belongs to us.
//!
//! Its last line has our mark and a checksum of everything before it. A file that was edited no longer matches and
//! belongs to the user; so does a file without the line, a link, or a folder.

use anyhow::{Context as _, bail};
use pilotlight_core::hash::hash;
use pilotlight_system::state_file;
use std::fs;
use std::path::{Path, PathBuf};

/// The mark in the last line, before the checksum.
const MARK: &str = "Written by `pilotlight setup`, which renews or removes it while nobody edits it; sum ";
/// The length of the checksum, in hexadecimal digits.
const DIGITS: usize = 16;

/// The comment syntax of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommentStyle {
    /// `# comment`
    Hash,
    /// `<!-- comment -->`
    Xml,
}

/// The state of a file on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Missing,
    /// Ours, and up to date.
    Current,
    /// Ours, but written by another version or for a program at another path.
    Outdated,
    /// Not ours, for this reason.
    Theirs(&'static str),
}

/// A file to write.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// What it is for, in a few words.
    pub(super) what: &'static str,
    text: String,
}

impl File {
    /// A file with this text; `path` is relative to the folder `data`.
    pub(super) fn new(data: &Path, path: &str, what: &'static str, style: CommentStyle, text: &str) -> Self {
        let body = format!("{}\n", text.trim_end_matches('\n'));
        let sum = sum(&body);
        let last = match style {
            CommentStyle::Hash => format!("# {MARK}{sum}\n"),
            CommentStyle::Xml => format!("<!-- {MARK}{sum} -->\n"),
        };
        Self { path: data.join(path), what, text: body + &last }
    }

    /// Reads the state on disk.
    pub(super) fn state(&self) -> State {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return State::Missing,
            Err(_) => return State::Theirs("it cannot be read"),
            Ok(meta) if !meta.is_file() => return State::Theirs("it is not a plain file"),
            Ok(_) => {}
        }
        let text = state_file::read(&self.path);
        match is_ours(&text) {
            None => State::Theirs("it is yours: `pilotlight setup` did not write it"),
            Some(false) => State::Theirs("it is yours: it was edited since `pilotlight setup` wrote it"),
            Some(true) if text == self.text => State::Current,
            Some(true) => State::Outdated,
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If a file that is not ours is there by now, or it cannot be written.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        self.ensure_ours()?;
        state_file::replace(&self.path, self.text.as_bytes())
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// Removes the file.
    ///
    /// # Errors
    /// If it is not ours any more, or it cannot be removed.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        self.ensure_ours()?;
        fs::remove_file(&self.path).with_context(|| format!("{} cannot be removed", self.path.display()))
    }

    fn ensure_ours(&self) -> anyhow::Result<()> {
        if let State::Theirs(why) = self.state() {
            bail!("{} was left alone: {why}", self.path.display());
        }
        Ok(())
    }
}

/// Whether a text that we wrote is unchanged; `None` if we did not write it.
fn is_ours(text: &str) -> Option<bool> {
    let start = text.rfind(MARK)?;
    let last = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let (body, rest) = (&text[..last], &text[start + MARK.len()..]);
    let (stored_sum, end) = rest.split_at_checked(DIGITS).unwrap_or_default();
    Some(stored_sum == sum(body) && ["\n", " -->\n"].contains(&end))
}

/// Detects edits, and is no protection against forgery.
fn sum(text: &str) -> String {
    format!("{:016x}", hash(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(data: &Path, text: &str) -> File {
        File::new(data, "some/where/pilotlight", "a test", CommentStyle::Hash, text)
    }

    #[test]
    fn a_written_file_is_ours_until_it_is_edited() {
        let scratch = tempfile::tempdir().unwrap();
        let (old, new) = (file(scratch.path(), "one\n"), file(scratch.path(), "two\n"));
        assert_eq!(new.state(), State::Missing);
        old.write().unwrap();
        assert_eq!((old.state(), new.state()), (State::Current, State::Outdated));
        new.write().unwrap();
        assert_eq!(new.state(), State::Current);
        let written = fs::read_to_string(&new.path).unwrap();
        for edited in [
            written.replace("two", "three"),
            format!("# mine\n{written}"),
            format!("{written}#\n"),
            written.trim_end().to_owned(),
            written.replace("sum ", "sum 0"),
        ] {
            fs::write(&new.path, &edited).unwrap();
            assert_eq!(new.state(), State::Theirs("it is yours: it was edited since `pilotlight setup` wrote it"));
            assert!(new.write().is_err() && new.remove().is_err());
            assert_eq!(fs::read_to_string(&new.path).unwrap(), edited);
        }
        fs::write(&new.path, &written).unwrap();
        new.remove().unwrap();
        assert_eq!(new.state(), State::Missing);
    }

    #[test]
    fn each_comment_style_is_recognized() {
        for style in [CommentStyle::Hash, CommentStyle::Xml] {
            let file = File::new(Path::new("/"), "x", "a test", style, "<svg/>");
            assert_eq!(is_ours(&file.text), Some(true), "{}", file.text);
        }
        assert_eq!(is_ours("<svg/>\n"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_a_folder_are_not_ours() {
        let scratch = tempfile::tempdir().unwrap();
        let wanted = file(scratch.path(), "text\n");
        fs::create_dir_all(wanted.path.parent().unwrap()).unwrap();
        let elsewhere = scratch.path().join("dotfiles");
        fs::write(&elsewhere, &wanted.text).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &wanted.path).unwrap();
        assert_eq!(wanted.state(), State::Theirs("it is not a plain file"));
        fs::remove_file(&wanted.path).unwrap();
        fs::create_dir(&wanted.path).unwrap();
        assert!(wanted.write().is_err() && wanted.path.is_dir());
    }
}
