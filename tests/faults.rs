//! What breaks around the program, and the program itself stopped and killed: nothing is lost, nothing is made up, and what
//! does not work any more is said.
//!
//! Limits of the system are set for the program alone: in namespaces of its own, or by its resource limits. Where a system
//! allows no namespaces, the tests that need them have nothing to look at and pass. What becomes of the program when the bus,
//! the panel or the notification server go is in `tests/desktop`, what when Copilot's servers do in `tests/e2e`.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod support;

use support::desktop as desk;

mod faults {
    mod beside;
    mod disk;
    mod floods;
    mod killed;
    mod limits;
    mod memory;
    mod refused;
    mod spaces;
    mod stopped;
    mod storms;
    mod swept;
}
