//! Pilotlight: a pilot light for your coding agents.
//!
//! The sessions of coding agents leave traces on disk: a log that grows with what happens, and something that names the
//! process. Pilotlight reads these traces, reports what each session does, how stale it is and why, and repairs a session
//! when the user asks for it.
//!
//! Data flows one way:
//!
//! - [`system`] wraps the operating system and knows no agent. [`agent`] observes what an agent's sessions leave
//!   behind, and talks to its servers. Neither interprets what it sees.
//! - [`core`] judges: pure functions from observations to a verdict, without clock or file access, so that every rule
//!   can be tested by writing down its inputs, and a recorded log can be replayed in its own time.
//! - [`engine`] is the one loop that connects them and sleeps in between. [`engine::snapshot`] does the same once.
//! - [`control`] hands orders ([`core::order`]) from a command to the running tray; [`terminal`] opens and shows
//!   terminals.
//! - [`tray`] shows the result as an icon with a menu, [`cli`] in a terminal, with one file per subcommand.
//! - [`doctor`] checks for what may keep all of this from working.
//!
//! [`config`] holds the user's settings.

// Dead code is only reported on Linux, where the tests run. The other systems do not use all that is compiled for them.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

/// The version, with the commit that a release was built from: `0.1.0 (1a2b3c4d5e6f)`. Debug builds have the number
/// alone (see build.rs).
pub const VERSION: &str = env!("PILOTLIGHT_VERSION");

pub mod cli;
pub mod doctor;
pub mod tray;
