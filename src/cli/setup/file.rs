//! A file that `setup` writes, and whose it is.
//!
//! Its last line says that we wrote it, with a sum of all that stands before. What was edited since no longer fits the sum, and
//! is the user's from then on; so is whatever lacks the line, a link, or a folder.

use crate::system::state_file;
use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Stands in the last line, before the sum.
const MARK: &str = "Written by `pilotlight setup`, which renews or removes it while nobody edits it; sum ";
/// The length of the sum, in hexadecimal digits.
const DIGITS: usize = 16;

/// How a comment is written in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// From `#` on.
    Hash,
    /// Between `<!--` and `-->`.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the icon is for Linux"))]
    Xml,
}

/// What stands at its place now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing.
    Missing,
    /// Ours, as it should be.
    Current,
    /// Ours, as another version wrote it, or for a program elsewhere.
    Outdated,
    /// Not ours, and why.
    Theirs(&'static str),
}

/// A file that is wanted.
#[derive(Debug)]
pub(super) struct File {
    /// Its place.
    pub(super) path: PathBuf,
    /// What it is for, in a few words.
    pub(super) what: &'static str,
    text: String,
}

impl File {
    /// With this text at this path in the folder `data`.
    pub(super) fn new(data: &Path, path: &str, what: &'static str, form: Form, text: &str) -> Self {
        let body = format!("{}\n", text.trim_end_matches('\n'));
        let sum = sum(&body);
        let last = match form {
            Form::Hash => format!("# {MARK}{sum}\n"),
            Form::Xml => format!("<!-- {MARK}{sum} -->\n"),
        };
        Self { path: data.join(path), what, text: body + &last }
    }

    /// What stands there now.
    pub(super) fn state(&self) -> State {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return State::Missing,
            Err(_) => return State::Theirs("it cannot be looked at"),
            Ok(meta) if !meta.is_file() => return State::Theirs("it is not a plain file"),
            Ok(_) => {}
        }
        let there = state_file::read(&self.path);
        match is_ours(&there) {
            None => State::Theirs("it is yours: `pilotlight setup` did not write it"),
            Some(false) => State::Theirs("it is yours: it was edited since `pilotlight setup` wrote it"),
            Some(true) if there == self.text => State::Current,
            Some(true) => State::Outdated,
        }
    }

    /// Writes it, unless somebody else's stands there by now.
    ///
    /// # Errors
    /// Where that is so, or it cannot be written.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        self.is_still_ours()?;
        state_file::replace(&self.path, self.text.as_bytes())
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// Takes it away, unless somebody else's stands there by now.
    ///
    /// # Errors
    /// Where that is so, or it cannot be removed.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        self.is_still_ours()?;
        fs::remove_file(&self.path).with_context(|| format!("{} cannot be removed", self.path.display()))
    }

    fn is_still_ours(&self) -> anyhow::Result<()> {
        if let State::Theirs(why) = self.state() {
            bail!("{} was left alone: {why}", self.path.display());
        }
        Ok(())
    }
}

/// Whether we wrote this text and nobody changed it since; `None` where we never wrote it.
fn is_ours(text: &str) -> Option<bool> {
    let start = text.rfind(MARK)?;
    let last = text[..start].rfind('\n').map_or(0, |end| end + 1);
    let (body, rest) = (&text[..last], &text[start + MARK.len()..]);
    let (sum_there, end) = rest.split_at_checked(DIGITS).unwrap_or_default();
    Some(sum_there == sum(body) && ["\n", " -->\n"].contains(&end))
}

/// FNV-1a, 64 bits: it tells what was edited from what was not, and keeps nobody from forging it.
fn sum(text: &str) -> String {
    let sum = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(data: &Path, text: &str) -> File {
        File::new(data, "some/where/pilotlight", "a test", Form::Hash, text)
    }

    #[test]
    fn what_was_written_is_ours_until_somebody_edits_it() {
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
    fn each_form_is_known_again() {
        for form in [Form::Hash, Form::Xml] {
            let file = File::new(Path::new("/"), "x", "a test", form, "<svg/>");
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
