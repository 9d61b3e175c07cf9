//! How a command reports to whoever started it: lines on standard error, and an exit code.

use super::fold::on_stderr;
use pilotlight_core::text::plain;
use std::io::{self, Write};
use std::process::ExitCode;

/// Maximum length of a line to the user, in characters: it may quote a path or what a session wrote.
pub(super) const LINE_MAX: usize = 2000;
/// Exit code: tried, and failed.
pub(super) const FAILED: u8 = 1;
/// Exit code: bad usage, a name that is unknown or ambiguous.
pub(super) const USAGE: u8 = 2;
/// Exit code: no home could be read.
pub(super) const NO_HOME: u8 = 3;
/// Exit code: not tried; the reason is on standard error.
pub(super) const REFUSED: u8 = 4;
/// Exit code: sent, but not confirmed; details are on standard error.
pub(super) const UNCONFIRMED: u8 = 5;
/// Exit code: what was waited for did not come true in time.
pub(super) const TIMED_OUT: u8 = 6;

/// Writes one line for the user to standard error.
pub(super) fn say(line: &str) {
    let line = format!("pilotlight: {}", plain(line, LINE_MAX));
    let _ = writeln!(io::stderr(), "{}", on_stderr(&line)); // if stderr is closed, nobody is listening
}

/// Flushes standard output. A command whose output could not be written has failed.
pub(super) fn flush_stdout(code: ExitCode) -> anyhow::Result<ExitCode> {
    io::stdout().flush()?;
    Ok(code)
}

/// Reports a command's error, if any, and returns its exit code.
pub(super) fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    match error.downcast_ref().map(io::Error::kind) {
        // The reader closed the pipe, as `head` does. That is no failure.
        Some(io::ErrorKind::BrokenPipe) => return ExitCode::SUCCESS,
        Some(io::ErrorKind::StorageFull) => say(&format!("the output cannot be written: {error:#}")),
        _ => say(&format!("{error:#}")),
    }
    ExitCode::FAILURE
}
