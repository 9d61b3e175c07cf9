//! What others got wrong, as tests of the judgement: one test for each case, named by its number.
//!
//! A test writes down a story (`tests/cases/story.rs`): the lines of a log with the shape that the Copilot CLI gives them,
//! each at its offset from the start, and who owns the session. It then says which status must hold at which offset. The
//! core is pure, so a story of eight hours is told in microseconds.
//!
//! Where a case comes from stands in front of each test: PP is a pull request of PolyPilot, GW an issue of gh-aw, UP an
//! issue of the CLI or the SDK. Cases that need a process, a file or a notification are tested elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod cases {
    mod actions;
    mod alerts;
    mod answered;
    mod background;
    mod ends;
    mod going_on;
    mod judged;
    mod lines;
    mod live;
    mod naming;
    mod owners;
    mod permissions;
    mod places;
    mod properties;
    mod resumed;
    mod rows;
    mod silence;
    pub(crate) mod story;
    pub(crate) mod tales;
    mod traces;
    mod turns;
    mod words;
}

mod tail;
