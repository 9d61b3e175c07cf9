//! The real program on made-up sessions. Tests that need the real CLI are in `tests/e2e.rs`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test should say where")]

mod control;
mod desktop;
mod disk;
mod doctor;
mod faults;
mod program {
    mod asking;
    mod background;
    mod bars;
    mod demo;
    mod messages;
    mod openmetrics;
    mod reports;
    pub(crate) mod resume;
    mod resume_hosts;
    mod starter;
    mod wait;
    mod wakes;
}
mod support;

use support::desktop as desk;
