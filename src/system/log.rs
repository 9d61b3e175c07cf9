//! Our own log: warnings on standard error, and where the program runs without anybody reading that, in a file as well.
//!
//! The file is bounded: when it is full it is set aside, in place of the one that was set aside before, and begun anew. How much
//! goes into it is set by `[log] level`, or by `PILOTLIGHT_LOG`, which also counts for standard error. What the bus library says
//! is left out: that a bus went away, we say ourselves. Prompts, commands and answers are never logged, at any level.
//!
//! Each change of a status stands in it with its reason, in a form that [`story`] reads again: `pilotlight explain ID --at
//! 12:03` answers from it. When a run began and ended, and how much was logged, stands in it at every level: else nobody could
//! tell what was not logged from what was not so.

mod capped;
pub mod story;

use crate::system::clock::Clock;
use capped::Capped;
use std::io;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::writer::MakeWriterExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) use capped::last_lines;

/// The file's name in the state folder.
pub(crate) const FILE: &str = "pilotlight.log";

/// How much is written to our log; each holds what those before it do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// What went wrong beyond repair.
    Error,
    /// What went wrong.
    Warn,
    /// Changes of status with their reasons, and what was done with sessions.
    #[default]
    Info,
    /// What helps to find a fault.
    Debug,
}

impl LogLevel {
    /// Every level.
    pub(crate) const ALL: [Self; 4] = [Self::Error, Self::Warn, Self::Info, Self::Debug];

    /// Its word in the config.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// How much goes into the file.
static KEPT: Mutex<Level> = Mutex::new(Level::INFO);

/// Sets the level of the file, once there is one.
static SET_LEVEL: OnceLock<Box<dyn Fn(LogLevel) + Send + Sync>> = OnceLock::new();

/// Starts the log; once a run. What `file` cannot take goes to standard error alone.
///
/// Each writer goes by a level of its own, below one filter for both: of filters a layer, one may take the other's word for
/// its own, and a warning is lost.
pub(crate) fn start(file: Option<&Path>, level: LogLevel) {
    let named: Option<Level> = std::env::var("PILOTLIGHT_LOG").ok().and_then(|level| level.parse().ok());
    let told = named.unwrap_or(Level::WARN);
    let stderr = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr.with_max_level(told))
        .with_target(false)
        .without_time()
        .with_ansi(false);
    let opened = file.map(Capped::open);
    let mut trouble = None;
    let opened = opened.and_then(|opened| opened.inspect_err(|error| trouble = Some(error.to_string())).ok());
    keep(named.unwrap_or(level_of(level)));
    let most = |kept: Level| up_to(if opened.is_some() { told.max(kept) } else { told });
    let (filter, handle) = reload::Layer::new(most(kept()));
    if named.is_none() && opened.is_some() {
        let set = move |level| {
            let before = keep(level_of(level));
            let _ = handle.reload(up_to(told.max(level_of(level)))); // fails only when nothing is logged any more
            if before != kept() {
                tracing::info!(target: story::TARGET, tag = story::LEVEL, level = self::level(), "the log's level was changed");
            }
        };
        let _ = SET_LEVEL.set(Box::new(set)); // a log is started once
    }
    let to_file = opened.map(|file| {
        let writer = Mutex::new(file).with_filter(|event| *event.level() <= kept() || event.target() == story::TARGET);
        tracing_subscriber::fmt::layer().with_writer(writer).with_timer(Utc).with_target(false).with_ansi(false)
    });
    tracing_subscriber::registry().with(filter).with(to_file).with(stderr).init();
    if let Some(error) = trouble {
        tracing::warn!("no log is kept: {error}");
    }
}

/// From now on so much goes into the file; `PILOTLIGHT_LOG` counts more.
pub(crate) fn set_level(level: LogLevel) {
    if let Some(set) = SET_LEVEL.get() {
        set(level);
    }
}

/// How much goes into the file, as [`story`] reads it.
pub(crate) fn level() -> &'static str {
    match kept() {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

fn kept() -> Level {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets how much goes into the file; what it was before.
fn keep(level: Level) -> Level {
    std::mem::replace(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner), level)
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
    let ours =
        Targets::new().with_default(level).with_target("zbus", Level::ERROR).with_target(story::TARGET, Level::INFO);
    // The SDK repeats what servers say, and servers repeat what sessions say.
    ours.with_target("github_copilot_sdk", LevelFilter::OFF)
}

/// RFC 3339, as everywhere.
struct Utc;

impl FormatTime for Utc {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", Clock::start().now().wall)
    }
}
