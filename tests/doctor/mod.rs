//! `pilotlight doctor`, `diagnostics`, `config` and `setup`: the real program on fake homes in which things are wrong,
//! and settings that change while it runs.

mod bridge;
mod checks;
mod diagnostics;
mod fixes;
mod settings;
mod setup;
