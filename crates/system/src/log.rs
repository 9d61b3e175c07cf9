//! Our own log: warnings on standard error, and for programs whose standard error nobody reads, a log file as well.
//!
//! The file is bounded: when it is full it is rotated, replacing the previously rotated one. Its level is set by `[log]
//! level`, or by `PILOTLIGHT_LOG`, which also applies to standard error. Messages of the bus library below errors are
//! left out; we log ourselves that a bus is gone. Prompts, commands and answers are never logged, at any level.
//!
//! Each change of status is a line, with its reason.

mod capped;

use crate::clock::Clock;
use capped::Capped;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::writer::MakeWriterExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

pub use capped::last_lines;

/// The file's name in the state folder.
pub const FILE: &str = "pilotlight.log";

/// The level of our log. Each includes the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures that cannot be recovered from.
    Error,
    /// Other failures.
    Warn,
    /// Changes of status with their reasons, and actions on sessions.
    #[default]
    Info,
    /// Details for debugging.
    Debug,
}

impl LogLevel {
    /// Every level.
    pub const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Info, Self::Debug];

    /// Its name in the config.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

static FILE_LEVEL: Mutex<Level> = Mutex::new(Level::INFO);

/// Changes the level of the file. Set if there is a file whose level may change.
static SET_LEVEL: OnceLock<Box<dyn Fn(LogLevel) + Send + Sync>> = OnceLock::new();

/// Whether the terminal shows a table, over which nothing else may write.
static SCREEN_TAKEN: AtomicBool = AtomicBool::new(false);

/// Keeps the log off a terminal while something else is drawn there. A standard error that is redirected still gets it.
pub fn keep_off_screen(taken: bool) {
    SCREEN_TAKEN.store(taken, Ordering::Relaxed);
}

/// Starts the log; call it once. If `file` cannot be opened, only standard error is used.
///
/// Each writer checks its own level, below one filter for both: with a filter per layer, one layer's cached decision
/// may apply to the other, and a warning is lost.
pub fn start(file: Option<&Path>, level: LogLevel) {
    let named: Option<Level> = std::env::var("PILOTLIGHT_LOG").ok().and_then(|level| level.parse().ok());
    let stderr_level = named.unwrap_or(Level::WARN);
    let terminal = io::stderr().is_terminal();
    let to_stderr = io::stderr.with_max_level(stderr_level);
    let stderr = tracing_subscriber::fmt::layer()
        .with_writer(to_stderr.with_filter(move |_| !(terminal && SCREEN_TAKEN.load(Ordering::Relaxed))))
        .with_target(false)
        .without_time()
        .with_ansi(false);
    let opened = file.map(Capped::open);
    let mut open_error = None;
    let opened = opened.and_then(|opened| opened.inspect_err(|error| open_error = Some(error.to_string())).ok());
    set_file_level(named.unwrap_or(level_of(level)));
    let most_verbose = if opened.is_some() { stderr_level.max(file_level()) } else { stderr_level };
    let (filter, handle) = reload::Layer::new(up_to(most_verbose));
    if named.is_none() && opened.is_some() {
        let set = move |level| {
            set_file_level(level_of(level));
            // Fails only once nothing is logged any more.
            let _ = handle.reload(up_to(stderr_level.max(level_of(level))));
        };
        let _ = SET_LEVEL.set(Box::new(set)); // a log is started only once
    }
    let to_file = opened.map(|file| {
        let writer = Mutex::new(file).with_filter(|event| *event.level() <= file_level());
        tracing_subscriber::fmt::layer().with_writer(writer).with_timer(Utc).with_target(false).with_ansi(false)
    });
    tracing_subscriber::registry().with(filter).with(to_file).with(stderr).init();
    if let Some(error) = open_error {
        tracing::warn!("no log is kept: {error}");
    }
}

/// Changes the level of the file. `PILOTLIGHT_LOG` takes precedence.
pub fn set_level(level: LogLevel) {
    if let Some(set) = SET_LEVEL.get() {
        set(level);
    }
}

fn file_level() -> Level {
    *FILE_LEVEL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set_file_level(level: Level) {
    *FILE_LEVEL.lock().unwrap_or_else(PoisonError::into_inner) = level;
}

const fn level_of(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    }
}

fn up_to(level: Level) -> Targets {
    let ours = Targets::new().with_default(level).with_target("zbus", Level::ERROR);
    // The SDK repeats what servers say, and servers repeat what sessions say.
    ours.with_target("github_copilot_sdk", LevelFilter::OFF)
}

/// Timestamps in RFC 3339, as everywhere.
struct Utc;

impl FormatTime for Utc {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", Clock::start().now().wall)
    }
}
