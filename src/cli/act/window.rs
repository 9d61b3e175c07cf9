//! A window that the tray opened at a click: it closes when this program ends.

use crate::cli::ask::prompt;
use crate::cli::context::{Context, runtime};
use crate::cli::report::{exit_code, say};
use pilotlight_engine::control::opened::UNREAD;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Longer than what the tray takes for unread, however long the order takes to reach it.
const SENT_AFTER: Duration = UNREAD.saturating_add(Duration::from_millis(300));

/// Keeps the window open if nothing was done, until the user closes it: they must be able to read why, and to copy what
/// they typed.
pub(in crate::cli) fn keep_open(context: &Context, result: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    if context.window.as_ref().is_none_or(String::is_empty) {
        return result;
    }
    let code = exit_code(result);
    if code != ExitCode::SUCCESS {
        say(
            "this window stays open, with what you typed; the session's menu in the tray, and its own terminal, answer it as well",
        );
        prompt("Press Enter to close this window. ");
    }
    Ok(code)
}

/// Waits until the tray takes an answer for read that is given to what was shown at this time, if this is a window.
pub(super) fn let_be_read(context: &Context, shown: Instant) -> anyhow::Result<()> {
    if context.window.is_some() {
        runtime()?.block_on(async { sleep_until(shown + SENT_AFTER).await });
    }
    Ok(())
}
