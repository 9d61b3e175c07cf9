//! Pilotlight: a pilot light for your coding agents.
//!
//! GitHub Copilot sessions leave their traces on disk: a folder each, a log that grows with every event, a lock that names the
//! process. Pilotlight reads these traces, says of each session what it does, how stale it is, and why, and puts it right when
//! the user asks for that.
//!
//! Data runs one way through the house:
//!
//! - [`watch`] observes: folders, logs, locks, processes. It knows what stands there, not what it means.
//! - [`core`] judges: pure functions from observations to a verdict, with no clock and no file in sight, so that every
//!   rule can be tested by writing down its inputs, and a recorded log can be replayed in its own time.
//! - [`engine`] is the one loop that brings both together and sleeps in between; [`survey`] does the same once.
//! - [`copilot`] talks to the sessions' servers, for what the user asks, and for nothing else.
//! - [`bridge`] reaches sessions in plain terminals, where the user has switched it on.
//! - [`desktop`] shows it all in an icon with a menu.
//! - [`cli`] shows: each file there is a subcommand.
//! - [`demo`] plays sessions where there are none.
//!
//! [`doctor`] looks at what may keep all of this from working, when it is asked to.
//!
//! [`act`] has the words for what is asked of a session, and [`control`] hands them from a command to the tray that runs.
//!
//! [`config`] and [`paths`] say what the user has set and where things are, [`runtime`] whether the place of the tray that runs
//! is ours alone, [`seen`] what the user has looked at, [`kept`] how that is written down, [`ended`] what ended with one of our
//! processes, [`ledger`] what our processes must know of each other's doings, [`log`] what we say of ourselves, [`clock`] is the
//! one place that reads the time, [`alarm`] the one that waits for it, [`signals`] the one that is told to stop, and
//! [`descriptors`] sees to it that they last. What the allocator has to spare, `heap` gives back.

/// The version, with the commit that a release was built from: `0.1.0 (1a2b3c4d5e6f)`. Builds for testing have the number alone
/// (build.rs).
pub const VERSION: &str = env!("PILOTLIGHT_VERSION");

pub mod act;
pub mod alarm;
pub mod bridge;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
pub mod copilot;
pub mod core;
pub mod demo;
pub mod descriptors;
pub mod desktop;
pub mod doctor;
pub mod ended;
pub mod engine;
mod heap;
pub mod kept;
pub mod ledger;
pub mod log;
pub mod paths;
mod refused;
pub mod runtime;
pub mod seen;
pub mod signals;
pub mod survey;
pub mod watch;
