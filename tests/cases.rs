//! The rules of the core: one test for each case that others got wrong, by its number in `tests/cases/README.md`.
//!
//! A test builds a story (`tests/cases/story.rs`): log lines as the Copilot CLI writes them, each at an offset from
//! the start, and the session's owner. It then asserts the status at given offsets. The core is pure, so a story of
//! eight hours runs in microseconds.
//!
//! The comment above each test names the source of its case: PP is a pull request of PolyPilot, GW an issue of gh-aw,
//! UP an issue of the CLI or the SDK; superset, clawd, copilot-cli and IR are other programs for the tray. Cases that
//! need a process, a file or a desktop are tested elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing test should say where")]

mod cases {
    mod actions;
    mod alerts;
    mod answered;
    mod background;
    mod codex_traces;
    mod continuing;
    mod ends;
    mod fields;
    mod forms;
    mod last_activity;
    mod lines;
    mod liveness;
    mod lost_ends;
    mod naming;
    mod offers;
    mod open_lists;
    mod owners;
    mod permissions;
    mod places;
    mod properties;
    pub(crate) mod random;
    mod receiving;
    mod resumed;
    mod row_changes;
    mod rows;
    mod short_reasons;
    mod silence;
    mod silent_turns;
    mod spelling;
    pub(crate) mod story;
    mod traces;
    mod turn_ends;
    mod turns;
    mod verdicts;
    mod words;
}

mod tail;
