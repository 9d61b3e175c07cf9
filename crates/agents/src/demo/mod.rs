//! Sessions of the other agents in a demo, beside those that the [stage](super::copilot::demo::stage) plays: the *guests*.
//! They take no orders from here, as their agents take none, so they only play and can be ended and resumed.
//!
//! Each agent gives its [`Part`](guest::Part): which files its agent's process leaves, and how it holds a session. [`cast`] is the
//! table of who does what when. [`guests`] plays it, in the stage's process; [`owner`] is a process that runs one of them,
//! [`wait`] what ends that.
//!
//! A process of theirs runs this program under the name of the agent's own ([`programs`]). So whoever ends it verifies it as
//! always, and nothing counts as an agent only because this is a demo. Whatever would start an agent's program starts a
//! stand-in, and their homes are in the stage's folder: the user's own are neither read nor used.

pub(crate) mod cast;
pub(crate) mod guest;
pub(crate) mod guests;
pub mod owner;
pub mod programs;
pub(crate) mod wait;

use super::copilot::demo::HOME;
use super::source::Source;
use cast::PARTS;
use programs::stand_in;
use std::path::Path;

/// The homes of a demo, in the stage's folder. What is reported is in none of them.
pub fn sources(folder: &Path) -> Vec<Source> {
    let guests = PARTS.iter().filter(|part| part.resumes_with.is_some()).map(|part| {
        let program = stand_in(folder, part.adapter.profile().program);
        Source::of(part.adapter, folder.join(part.home)).with_stand_in(&program)
    });
    std::iter::once(Source::at(&folder.join(HOME))).chain(guests).collect()
}

#[cfg(test)]
mod tests;
