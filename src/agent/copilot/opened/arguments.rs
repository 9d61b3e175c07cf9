//! Parses a Copilot's command line for the session that it starts with.

use crate::core::text::is_uuid;
use std::ffi::OsString;

/// What a command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    /// The session of this id.
    pub(super) id: Option<Box<str>>,
    /// An existing session that only Copilot can identify: the last one, or one given by its name or the beginning of
    /// its id.
    pub(super) some: bool,
    /// Not to log which sessions it loads.
    pub(super) unlogged: bool,
    /// To serve sessions to other programs.
    pub(super) serves: bool,
}

/// The options that take a session's id, in the order of `copilot --help`. The value of the first may be left out.
const RESUME: [&str; 2] = ["--resume", "-r"];
const BY_ID: &str = "--session-id";
/// The levels at which a Copilot logs which sessions it loads, of `--log-level`.
const LOGGED: [&str; 5] = ["info", "debug", "all", "default", "trace"];
/// The options that make it a server.
const SERVES: [&str; 3] = ["--server", "--headless", "--acp"];

/// Parses a command line, including the program's name: `--resume=ID`, `--resume ID`, `-r ID`, `-rID`, `--session-id
/// ID`, `--continue`, `--log-level LEVEL`, `--server`. Stops at `--`.
pub(super) fn parse(arguments: &[OsString]) -> Arguments {
    let mut parsed = Arguments::default();
    let mut words =
        arguments.iter().skip(1).map(|word| word.to_string_lossy()).take_while(|word| word != "--").peekable();
    while let Some(word) = words.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => match word.strip_prefix("-r") {
                Some(value) if !value.is_empty() => ("-r".to_owned(), Some(value.to_owned())),
                _ => (word.into_owned(), None),
            },
        };
        if name == "--continue" {
            parsed.some = true;
        } else if SERVES.contains(&&*name) {
            parsed.serves = true;
        } else if name == "--log-level" {
            let level = joined.or_else(|| words.next_if(|next| !next.starts_with('-')).map(Into::into));
            parsed.unlogged = level.is_some_and(|level| !LOGGED.contains(&&*level));
        } else if RESUME.contains(&&*name) || name == BY_ID {
            let value = joined.or_else(|| words.next_if(|next| !next.starts_with('-')).map(Into::into));
            match value {
                Some(value) if is_uuid(&value) => parsed.id = Some(value.to_ascii_lowercase().into()),
                _ => parsed.some = true,
            }
        }
    }
    parsed
}
