//! Words as the user reads them in a message, and as they are typed into a shell.

use pilotlight_core::text::plain;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Maximum length of a path or word in a message, in characters.
const SHOWN_MAX: usize = 200;

/// A path or a word in a message: one line, bounded.
pub(super) fn shown(text: impl AsRef<OsStr>) -> Box<str> {
    plain(&text.as_ref().to_string_lossy(), SHOWN_MAX)
}

/// The command as the user would type it into a shell. A folder or value that cannot be shown as it is becomes `…`.
pub(super) fn shell_line(command: &[OsString], folder: Option<&Path>, env: &[(OsString, OsString)]) -> String {
    let (then, set) = if cfg!(windows) { ("; ", "set ") } else { (" && ", "") };
    let mut out = folder.map(|folder| format!("cd {}{then}", quoted(folder))).unwrap_or_default();
    for (name, value) in env {
        out += &format!("{set}{}={}{}", name.to_string_lossy(), quoted(value), if cfg!(windows) { then } else { " " });
    }
    out + &command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word as the user would type it into a shell; `…` if it cannot be shown as it is.
pub(super) fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let text = word.to_string_lossy();
    if word.to_str().is_none() || *text != *plain(&text, usize::MAX / 8) {
        "…".to_owned()
    } else if is_literal(word) {
        text.into_owned()
    } else if cfg!(windows) {
        format!("\"{text}\"")
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Whether every shell, and every shell-like parser, takes a word literally. Words of hyphens alone are excluded,
/// because they may end a terminal's own options.
pub(super) fn is_literal(word: &OsStr) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "_@+=:,./-".contains(c) || (cfg!(windows) && c == '\\');
    let is_word = |word: &str| word.chars().all(is_plain) && !word.starts_with('=') && word.chars().any(|c| c != '-');
    word.to_str().is_some_and(is_word)
}
