//! End-to-end tests: whatever happens to a session of the real Copilot CLI is shown by `pilotlight status --json`,
//! `pilotlight watch --json`, the live table and the menu.
//!
//! Each test does something to a session (or holds it in the middle of something), makes sure by the log that it has
//! happened, and checks all views with `wait_status`. Test doubles and drivers are in `tests/support/`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test should panic where it fails")]

mod soak;
mod support;

mod e2e {
    mod actions;
    mod answers;
    mod at_hand;
    mod attached;
    mod beside;
    mod bridge;
    mod claude_code;
    mod codex;
    mod continued;
    mod detached;
    mod ends;
    mod forged;
    mod holding;
    mod homes;
    mod hooks;
    mod hosted;
    mod hosts;
    mod interrupted;
    mod leftovers;
    mod notifications;
    mod opencode;
    mod orders;
    mod owners;
    mod permissions;
    mod plan_mode;
    mod popup_causes;
    mod profiles;
    mod reach;
    mod receiving;
    mod recover;
    mod repeated;
    mod resumed;
    mod servers;
    mod silence;
    mod stage;
    mod terminal;
    mod turns;
    mod waiting;
    mod windows;
    mod work;
}
