//! Our own log: warnings on standard error, and for programs whose standard error nobody reads, a log file as well.
//!
//! The file is bounded: when it is full it is rotated, replacing the previously rotated one. Its level is set by `[log]
//! level`, or by `PILOTLIGHT_LOG`, which also applies to standard error. Messages of the bus library below errors are
//! left out; we log ourselves that a bus is gone. Prompts, commands and answers are never logged, at any level.
//!
//! A line is written by [`error`], [`warn`], [`info`] or [`debug`], for example
//!
//! ```
//! # use pilotlight_system::log::{self, cause, private};
//! # let (folder, error) = (std::path::Path::new("/home/alice"), std::io::Error::other("no"));
//! log::warn!(tag = "home", "the sessions in {} cannot be listed: {}", private(&folder.display()), cause(&error));
//! ```
//!
//! The message is a literal. Each value in it, and in the fields before it, is [`Public`] by its type or marked as
//! [`private`]. Nothing else compiles, be it an argument or a variable that the literal names:
//!
//! ```compile_fail
//! # use pilotlight_system::log;
//! let path = String::from("/home/alice");
//! log::warn!("{} is not read", path);
//! ```
//! ```compile_fail
//! # use pilotlight_system::log;
//! let count = 3;
//! log::warn!("{count} are not read");
//! ```
//! ```compile_fail
//! # use pilotlight_system::log;
//! let path = String::from("/home/alice");
//! log::warn!(path = path.as_str(), "not read");
//! ```
//!
//! A bug report shows what is public. `tracing`, which carries the lines, is a
//! dependency of this crate alone, so that there is no other way into the log.
//!
//! Each change of status is a line, with its reason.

mod capped;
mod line;

use crate::clock::Clock;
use capped::Capped;
use pilotlight_core::time::Time;
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::MakeWriterExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

pub use crate::{log_debug as debug, log_error as error, log_info as info, log_warn as warn};
pub use capped::last_lines;
pub use line::{Cause, Line, Piece, Private, Public, cause, private};
#[doc(hidden)]
pub use line::{Inserted, is_plain};

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
        .with_ansi(false)
        .event_format(line::Format { time: None });
    let opened = file.map(Capped::open);
    let mut open_error = None;
    let opened = opened.and_then(|opened| opened.map_err(|error| open_error = Some(error)).ok());
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
        tracing_subscriber::fmt::layer()
            .with_writer(writer)
            .with_ansi(false)
            .event_format(line::Format { time: Some(now) })
    });
    tracing_subscriber::registry().with(filter).with(to_file).with(stderr).init();
    if let Some(error) = open_error {
        crate::log_warn!("no log is kept: {}", cause(&error));
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

/// The time in RFC 3339, as everywhere.
fn now() -> Time {
    Clock::start().now().wall
}

/// Whether lines of this level are written anywhere. For the macros.
#[doc(hidden)]
pub fn is_on(level: LogLevel) -> bool {
    match level {
        LogLevel::Error => tracing::enabled!(target: line::TARGET, Level::ERROR),
        LogLevel::Warn => tracing::enabled!(target: line::TARGET, Level::WARN),
        LogLevel::Info => tracing::enabled!(target: line::TARGET, Level::INFO),
        LogLevel::Debug => tracing::enabled!(target: line::TARGET, Level::DEBUG),
    }
}

/// Writes a line, in which what is private is marked. For the macros.
#[doc(hidden)]
pub fn write(level: LogLevel, line: fmt::Arguments<'_>) {
    match level {
        LogLevel::Error => tracing::event!(target: line::TARGET, Level::ERROR, "{line}"),
        LogLevel::Warn => tracing::event!(target: line::TARGET, Level::WARN, "{line}"),
        LogLevel::Info => tracing::event!(target: line::TARGET, Level::INFO, "{line}"),
        LogLevel::Debug => tracing::event!(target: line::TARGET, Level::DEBUG, "{line}"),
    }
}

/// Logs a failure that cannot be recovered from; see [`crate::log`].
#[macro_export]
macro_rules! log_error {
    ($($line:tt)+) => { $crate::log_line!(Error, $($line)+) };
}

/// Logs another failure; see [`crate::log`].
#[macro_export]
macro_rules! log_warn {
    ($($line:tt)+) => { $crate::log_line!(Warn, $($line)+) };
}

/// Logs an action on a session, or a change; see [`crate::log`].
#[macro_export]
macro_rules! log_info {
    ($($line:tt)+) => { $crate::log_line!(Info, $($line)+) };
}

/// Logs a detail for debugging; see [`crate::log`].
#[macro_export]
macro_rules! log_debug {
    ($($line:tt)+) => { $crate::log_line!(Debug, $($line)+) };
}

/// A literal that another macro has made names no variables, so `"{variable}"` does not compile: whatever is inserted
/// is an argument, and checked.
#[doc(hidden)]
#[macro_export]
macro_rules! log_line {
    ($level:ident, $($key:ident = $value:expr,)* $message:literal $(, $inserted:expr)* $(,)?) => {{
        const { assert!($crate::log::is_plain($message), "a message has printable ASCII characters only") };
        if $crate::log::is_on($crate::log::LogLevel::$level) {
            $crate::log::write(
                $crate::log::LogLevel::$level,
                format_args!(
                    concat!($message, $(" ", stringify!($key), "={}",)*),
                    $($crate::log::Inserted(&$inserted),)*
                    $($crate::log::Inserted(&$value),)*
                ),
            );
        }
    }};
}

/// All that is logged on this thread while `run` runs, as it would be in the file.
#[cfg(any(test, feature = "testing"))]
pub fn captured(run: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(std::sync::Arc<Mutex<Vec<u8>>>);
    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    // With a single subscriber, the first thread that reaches a callsite decides for all whether it is enabled, and
    // that thread may be another test's (tracing-core 0.1, `Rebuilder::JustOne`). A second one prevents that.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::fmt().with_max_level(Level::TRACE).with_writer(move || writer.clone());
    let subscriber = subscriber.with_ansi(false).event_format(line::Format { time: Some(now) }).finish();
    tracing::subscriber::with_default(subscriber, run);
    let bytes = log.0.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
