//! The agents whose sessions are watched. Each has a folder with everything specific to it: files, names, processes,
//! protocol and wording. [`tail`] follows a growing log in any dialect. The core judges common facts; the
//! engine and the edges still name the one agent that there is.
//!
//! May import: core, system.

pub(crate) mod bridges;
pub mod callers;
pub mod channel;
pub mod copilot;
pub(crate) mod evidence;
pub(crate) mod openings;
mod profile;
mod program_file;
pub mod reader;
pub(crate) mod reading;
pub(crate) mod scanner;
pub mod source;
#[cfg(test)]
mod sundial;
pub mod tail;
pub(crate) mod wing;
