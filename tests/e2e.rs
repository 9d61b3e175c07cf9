//! The story of a session, told three times: whatever happens to a session of the real Copilot CLI, `pilotlight status
//! --json`, `pilotlight watch --json` and the live table say so.
//!
//! Each test is one story. It does something to a session (or holds it in the middle of something), makes sure by the
//! log that it has happened, and asks `told`. The doubles and the drivers are in `tests/support/`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod support;

mod e2e {
    mod actions;
    mod again;
    mod answers;
    mod attached;
    mod bridge;
    mod ends;
    mod going_on;
    mod holding;
    mod homes;
    mod hosted;
    mod interrupted;
    mod left;
    mod notifications;
    mod orders;
    mod owners;
    mod permissions;
    mod reach;
    mod recover;
    mod resumed;
    mod servers;
    mod silence;
    mod stage;
    mod terminal;
    mod told;
    mod turns;
    mod waiting;
    mod work;
}
