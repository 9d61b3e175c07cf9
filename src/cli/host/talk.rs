//! What the commands of `host` say, ask and wait for.

use super::super::ask::confirm;
use super::super::charset::{has_unicode_stdout, words};
use super::super::report::{LINE_MAX, say};
use crate::core::text::plain;
use crate::system::signals::Signals;
use crate::system::state_file;
use anyhow::Context as _;
use std::io::{self, Write};
use std::path::Path;
use tokio::runtime::Runtime;

/// Waits for work that Ctrl-C ends. `None` if it did.
pub(super) fn wait<T>(runtime: &Runtime, work: impl Future<Output = T>) -> Option<T> {
    runtime.block_on(async {
        let Ok(mut signals) = Signals::new() else { return Some(work.await) };
        tokio::select! {
            done = work => Some(done),
            () = signals.end() => None,
        }
    })
}

/// Asks the user, unless that was answered beforehand; says so if nothing is done.
pub(super) fn is_confirmed(question: &str, yes: bool) -> bool {
    match if yes { Some(true) } else { confirm(question) } {
        Some(true) => return true,
        Some(false) => say("nothing was changed"),
        None => say("there is no terminal here to ask you on, so nothing was changed: add `--yes` if you mean it"),
    }
    false
}

/// Replaces the text of the settings. The target of a link is replaced, not the link.
pub(super) fn write_settings(path: &Path, text: &str) -> anyhow::Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    state_file::replace(&real, text.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))
}

/// Prints a line. Its spaces stay as they are, which `plain` would make one.
pub(super) fn tell(line: &str) -> io::Result<()> {
    let line: Vec<_> = line.split(' ').map(|word| plain(word, LINE_MAX)).collect();
    let mut out = io::stdout().lock();
    writeln!(out, "{}", words(&line.join(" "), has_unicode_stdout()))?;
    out.flush()
}
