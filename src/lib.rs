//! Pilotlight: a pilot light for your coding agents.
//!
//! GitHub Copilot sessions leave their traces on disk: a folder each, a log that grows with every event, a lock that names the
//! process. Pilotlight reads these traces, says of each session what it does, how stale it is, and why, and puts it right when
//! the user asks for that.
//!
//! Data runs one way through the house:
//!
//! - [`system`] is what the operating system tells, and knows no agent; [`agent`] observes what an agent's sessions leave behind, and
//!   talks to its servers. Neither knows what it means.
//! - [`core`] judges: pure functions from observations to a verdict, with no clock and no file in sight, so that every
//!   rule can be tested by writing down its inputs, and a recorded log can be replayed in its own time.
//! - [`engine`] is the one loop that brings both together and sleeps in between; [`engine::snapshot`] does the same once.
//! - [`control`] hands orders ([`core::order`]) from a command to the tray that runs; [`terminal`] opens and shows terminals.
//! - [`tray`] shows it all in an icon with a menu; [`cli`] in a terminal: each file there is a subcommand.
//! - [`demo`] plays sessions where there are none, and [`doctor`] looks at what may keep all of this from working.
//!
//! [`config`] says what the user has set.

// Linux, where the tests run, says what is used by nobody. What the other systems have no use for, of that, is compiled for them
// all the same.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

/// The version, with the commit that a release was built from: `0.1.0 (1a2b3c4d5e6f)`. Builds for testing have the number alone
/// (build.rs).
pub const VERSION: &str = env!("PILOTLIGHT_VERSION");

pub mod agent;
pub mod cli;
pub mod config;
pub mod control;
pub mod core;
pub mod demo;
pub mod doctor;
pub mod engine;
pub mod system;
pub mod terminal;
pub mod tray;
