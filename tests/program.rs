//! The real program on made-up sessions. Tests that need the real CLI are in `tests/e2e`, tests that need a desktop in
//! `tests/desktop`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test should say where")]

mod control;
mod disk;
mod doctor;
mod program {
    mod bars;
    mod demo;
}
mod support;
