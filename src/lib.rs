//! Pilotlight: a pilot light for your coding agents.

pub mod core;
