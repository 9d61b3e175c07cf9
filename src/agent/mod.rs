//! The agents whose sessions are watched. Each has a folder with everything specific to it: files, names, processes,
//! protocol and wording. Code outside these folders is agent-neutral.
//!
//! May import: core, system.

pub mod copilot;
