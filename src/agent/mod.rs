//! The agents whose sessions are watched: a folder each, with all that knows its files, names, processes, protocol and words.
//! What is everybody's knows no agent's name.
//!
//! May import: core, system.

pub mod copilot;
