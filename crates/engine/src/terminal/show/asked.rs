//! Asks a program something. It may hang, and may say more than anybody wants to read. And what is asked over a socket: only
//! one of our user.

use pilotlight_system::deadline::run_within;
use pilotlight_system::descriptors;
use rustix::process::getuid;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Timeout for an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes of an answer that are read.
const ANSWER_MAX: u64 = 4 * 1024 * 1024;

/// What the command of the program of this name prints. `None`: it failed.
///
/// # Errors
/// It cannot be started, or does not answer: the reason, in words for the user.
pub(super) fn ask(name: &'static str, mut command: Command) -> Result<Option<String>, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    descriptors::restore(&mut command);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(format!("{name} cannot be asked, because there is no {name} program here"));
        }
        Err(error) => return Err(format!("{name} cannot be started: {error}")),
    };
    let stdout = child.stdout.take();
    let read = move || {
        let mut text = Vec::new();
        stdout?.take(ANSWER_MAX).read_to_end(&mut text).ok()?;
        Some(text)
    };
    let answer = run_within(name, TIMEOUT, read).ok().flatten();
    if answer.is_none() {
        let _ = child.kill(); // it may just have ended
    }
    let ended = child.wait().map_err(|error| format!("{name} cannot be waited for: {error}"))?;
    let text = answer.ok_or_else(|| format!("{name} did not answer within {} s", TIMEOUT.as_secs()))?;
    Ok(text.filter(|_| ended.success()).map(|text| String::from_utf8_lossy(&text).into_owned()))
}

/// Whether a path is a socket of this user.
pub(super) fn is_our_socket(path: &Path) -> bool {
    let meta = std::fs::symlink_metadata(path).ok().filter(|_| path.is_absolute());
    meta.is_some_and(|meta| meta.file_type().is_socket() && meta.uid() == getuid().as_raw())
}
