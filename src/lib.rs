//! Pilotlight shows what every session of your coding agents is doing, and lets you fix what is wrong with one click.
//!
//! The sessions of coding agents leave traces on disk: a log that grows with what happens, and something that names the
//! process. Pilotlight reads these traces, reports what each session does, how stale it is and why, and repairs a session
//! when the user asks for it.
//!
//! Data flows one way, through the crates that the program is made of:
//!
//! - [`pilotlight_system`] wraps the operating system and knows no agent. [`pilotlight_agents`] observes what an agent's
//!   sessions leave behind, and talks to its servers. Neither interprets what it sees.
//! - [`pilotlight_core`] judges: pure functions from observations to a verdict.
//! - [`pilotlight_engine`] is the one loop that connects them and sleeps in between.
//!
//! Here it is shown: [`tray`] is the icon with its menu and popups, [`cli`] the commands, with one file per subcommand.
//! [`doctor`] checks for what may keep all of this from working.

// Dead code is only reported on Linux, where the tests run. The other systems do not use all that is compiled for them.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

/// The version, with the commit that a release was built from: `0.1.0 (1a2b3c4d5e6f)`. Debug builds have the number
/// alone (see build.rs).
pub const VERSION: &str = env!("PILOTLIGHT_VERSION");

pub mod cli;
pub mod doctor;
pub mod tray;
