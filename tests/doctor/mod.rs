//! `pilotlight doctor`, `diagnostics`, `config` and `setup`: the real program on made-up homes in which nothing is as it should be, and
//! settings that change while it runs.

mod bridge;
mod checks;
mod diagnostics;
mod fixes;
mod settings;
mod setup;
