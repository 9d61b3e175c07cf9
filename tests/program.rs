//! The real program on made-up sessions. What takes the real CLI is in `tests/e2e`, what takes a desktop in `tests/desktop`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod control;
mod disk;
mod doctor;
mod program {
    mod bars;
    mod demo;
}
mod support;
