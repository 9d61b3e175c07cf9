//! The files of Claude Code that matter to the bridge: a home's `settings.json`, its lists of plugins, and the policy of
//! an organisation. They are only read here.

use pilotlight_system::plain_file::{self, Links};
use serde_json::Value;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Claude Code's files are never this large. In bytes.
const LENGTH_MAX: u64 = 4 << 20;
/// How many parts of a policy are read.
const PARTS_MAX: usize = 100;

/// What a file of Claude Code says.
pub(super) enum Content {
    /// There is none, or it is empty.
    Missing,
    Of(Value),
    /// It is there, and is no JSON object, or cannot be read.
    Unreadable,
}

/// Reads a home's `settings.json`. Like Claude Code, accepts neither comments nor trailing commas.
pub(super) fn user(home: &Path) -> Content {
    content(&path(home))
}

/// The path of a home's settings.
pub(super) fn path(home: &Path) -> PathBuf {
    home.join("settings.json")
}

/// Reads a text of Claude Code's. Empty if there is none.
///
/// # Errors
/// Where it cannot be read.
pub(super) fn text(path: &Path) -> io::Result<String> {
    let file = match plain_file::open(path, Links::Followed) {
        Ok((file, _)) => file,
        Err(error) => {
            let error = io::Error::from(error);
            return if error.kind() == io::ErrorKind::NotFound { Ok(String::new()) } else { Err(error) };
        }
    };
    let mut text = String::new();
    file.take(LENGTH_MAX).read_to_string(&mut text)?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

fn content(path: &Path) -> Content {
    match text(path) {
        Ok(text) if text.trim().is_empty() => Content::Missing,
        Ok(text) => match serde_json::from_str::<Value>(&text) {
            Ok(value) if value.is_object() => Content::Of(value),
            _ => Content::Unreadable,
        },
        Err(_) => Content::Unreadable,
    }
}

/// A list of plugins or marketplaces, or nothing.
pub(super) fn list(home: &Path, name: &str) -> Value {
    object(&home.join("plugins").join(name))
}

/// The object in a file, or nothing.
pub(super) fn object(path: &Path) -> Value {
    match content(path) {
        Content::Of(value) => value,
        Content::Missing | Content::Unreadable => Value::Null,
    }
}

/// Where the policy of an organisation is.
pub(super) const POLICY_FOLDER: &str =
    if cfg!(target_os = "macos") { "/Library/Application Support/ClaudeCode" } else { "/etc/claude-code" };

/// Reads an organisation's policy for all users of a machine, with its parts, as 2.1.332 does. What a server distributes is
/// unknown here.
pub(super) fn policy(folder: &Path) -> Vec<Value> {
    let parts = std::fs::read_dir(folder.join("managed-settings.d")).into_iter().flatten().flatten();
    let parts = parts.map(|part| part.path()).filter(|path| path.extension().is_some_and(|it| it == "json"));
    let all = [folder.join("managed-settings.json")].into_iter().chain(parts.take(PARTS_MAX));
    all.map(|path| object(&path)).filter(Value::is_object).collect()
}
