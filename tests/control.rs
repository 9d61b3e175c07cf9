//! The commands that act, and the socket over which they hand it to the tray: the real program on made-up sessions. What an
//! order then does to a real session is for `tests/e2e`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod made_up;
mod support;

mod control {
    mod beside;
    mod callers;
    mod commands;
    mod floods;
    mod keys;
    mod places;
    mod questions;
    mod resumed;
    mod socket;
    mod trays;
}
