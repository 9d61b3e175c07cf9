//! `pilotlight doctor`, `diagnostics`, `config` and `setup`: the real program on made-up homes in which nothing is as it should be, and
//! settings that change while it runs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod made_up;
mod support;

mod doctor {
    mod checks;
    mod diagnostics;
    mod fixes;
    mod settings;
    mod setup;
}
