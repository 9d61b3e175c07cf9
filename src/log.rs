//! Our own log: warnings on standard error, and where the program runs without anybody reading that, in a file as well.
//!
//! `PILOTLIGHT_LOG=debug` says more. What the bus library says is left out: that a bus went away, we say ourselves. Prompts, commands and answers are never logged, at any level.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The file's name in the state folder.
pub const FILE: &str = "pilotlight.log";
/// A longer log is set aside at the start, in place of the one that was set aside before. In bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// Starts the log; once a run. What `file` cannot take goes to standard error alone.
pub fn start(file: Option<&Path>) {
    let level = std::env::var("PILOTLIGHT_LOG").ok().and_then(|level| level.parse().ok());
    let up_to = |usual| {
        let ours = Targets::new().with_default(level.unwrap_or(usual)).with_target("zbus", Level::ERROR);
        // The SDK repeats what servers say, and servers repeat what sessions say.
        ours.with_target("github_copilot_sdk", LevelFilter::OFF)
    };
    let stderr = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_target(false)
        .without_time()
        .with_ansi(false)
        .with_filter(up_to(Level::WARN));
    let opened = file.map(open);
    let to_file = opened.as_ref().and_then(|opened| opened.as_ref().ok()?.try_clone().ok()).map(|file| {
        let layer = tracing_subscriber::fmt::layer().with_writer(std::sync::Mutex::new(file)).with_timer(Utc);
        layer.with_target(false).with_ansi(false).with_filter(up_to(Level::INFO))
    });
    tracing_subscriber::registry().with(stderr).with(to_file).init();
    if let Some(Err(error)) = opened {
        tracing::warn!("no log is kept: {error}");
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        crate::paths::make_folder(folder)?;
    }
    if fs::metadata(path).is_ok_and(|meta| meta.len() > LENGTH_MAX) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    File::options().create(true).append(true).open(path)
}

/// RFC 3339, as everywhere.
struct Utc;

impl FormatTime for Utc {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", crate::clock::Clock::start().now().wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_set_aside() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("made").join(FILE);
        open(&path).unwrap().set_len(LENGTH_MAX).unwrap();
        assert_eq!(open(&path).unwrap().metadata().unwrap().len(), LENGTH_MAX, "goes on");
        open(&path).unwrap().set_len(LENGTH_MAX + 1).unwrap();
        assert_eq!(open(&path).unwrap().metadata().unwrap().len(), 0);
        assert!(path.with_extension("log.old").is_file());
    }
}
