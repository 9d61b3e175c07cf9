//! The running tray, as commands ask it.

use pilotlight_system::paths;
use pilotlight_system::process::is_stopped;
use pilotlight_system::runtime::Runtime;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for the tray's answer, which usually takes a millisecond.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What the first tray says that answers.
///
/// # Errors
/// One does not answer in time: its process, if it is noted.
pub(super) async fn ask_first<T>(ask: impl AsyncFn(&Path) -> io::Result<Option<T>>) -> Result<Option<T>, Option<u32>> {
    ask_first_within(TIMEOUT, ask).await
}

/// The same of what takes the tray longer.
///
/// # Errors
/// The same.
pub(super) async fn ask_first_within<T>(
    most: Duration,
    ask: impl AsyncFn(&Path) -> io::Result<Option<T>>,
) -> Result<Option<T>, Option<u32>> {
    for folder in paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default() {
        // A runtime folder that fails its check is not used. Commands that give orders report the reason.
        let Ok(Some(checked)) = Runtime::open(&folder) else { continue };
        match timeout(most, ask(&folder)).await {
            Ok(Ok(None) | Err(_)) => {}
            Ok(Ok(answer)) => return Ok(answer),
            Err(_) => return Err(checked.note().map(|note| note.process)),
        }
    }
    Ok(None)
}

/// The message about a tray that does not answer: the consequence here (`consequence`), and what to do.
pub(super) fn unresponsive(tray: Option<u32>, consequence: &str) -> String {
    match tray {
        Some(process) if is_stopped(process) => {
            format!(
                "Pilotlight's tray (process {process}) is stopped: `kill -CONT {process}` continues it; {consequence}"
            )
        }
        Some(process) => format!(
            "Pilotlight's tray (process {process}) does not answer; {consequence}; if it hangs, end process {process} and try \
             again"
        ),
        None => format!("Pilotlight's tray does not answer; {consequence}; if it hangs, end it and try again"),
    }
}
