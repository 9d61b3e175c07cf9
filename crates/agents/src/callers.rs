//! Which agent started a process, whichever agent that is.
//!
//! An agent must not answer for the user, neither its own requests nor another agent's, so `approve` checks who calls it
//! with [`agent_above`]. A tool of a session is a descendant of the agent, unless it was handed to init on the way, as by
//! `setsid`, `nohup ... &` and every double fork. But agents mark the environment of their tools, and environments are
//! inherited. So both are checked.
//!
//! This keeps a script from answering for the user by accident or by habit. It is not a security boundary: a program
//! that clears its environment *and* leaves its family shows neither sign. What answers for the user is therefore also
//! judged by where it comes from (`control/origin`).

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use super::adapter::{ADAPTERS, FIRST};
use super::fingerprint::{Fingerprint, scripts};
use super::opencode;
use super::program_file::is_named;
use pilotlight_system::process::{ancestors, arguments, executable, is_started_with};
use std::ffi::OsString;
use std::path::Path;

/// The agent behind a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallingAgent {
    /// The process that is the agent, or has the marks of its tools.
    pub pid: u32,
    /// The agent, as its user knows it.
    pub agent: &'static str,
}

/// An agent: as its user knows it, and what it is recognised by.
type Known = (&'static str, &'static Fingerprint);

/// The agents without homes. Of Gemini CLI 0.61.0 the variable was read in its code.
const OTHERS: [(&str, Fingerprint); 2] = [
    (opencode::NAME, opencode::FINGERPRINT),
    (
        "Gemini CLI",
        Fingerprint {
            program: "gemini",
            releases: None,
            package: "@google/gemini-cli",
            marks: &["GEMINI_CLI"],
            content: None,
        },
    ),
];

/// All agents that can be recognised, the first one first.
fn known() -> impl Iterator<Item = Known> {
    let adapters = ADAPTERS.iter().map(|adapter| adapter.profile());
    let adapters = adapters.filter_map(|profile| Some((profile.names.word, profile.fingerprint.as_ref()?)));
    adapters.chain(OTHERS.iter().map(|(name, fingerprint)| (*name, fingerprint)))
}

/// The nearest process, starting with `pid` itself, that is an agent. `names` are further programs
/// that count as the first one. Otherwise the nearest that has the marks of an agent's tools: a process of the agent's started it and
/// handed it to init, or has ended.
///
/// A process that cannot be read (another user's, like `sudo`) is skipped: it is not taken for an agent.
pub fn agent_above(pid: u32, names: &[String]) -> Option<CallingAgent> {
    let mut line = vec![pid];
    line.extend(ancestors(pid));
    let runs = |pid: &u32| Some(CallingAgent { pid: *pid, agent: agent_of(*pid, names)? });
    let marked = |pid: &u32| Some(CallingAgent { pid: *pid, agent: mark_of(*pid)? });
    line.iter().find_map(runs).or_else(|| line.iter().find_map(marked))
}

/// The variables by which [`agent_above`] recognises what agents start.
pub fn marks() -> impl Iterator<Item = &'static str> {
    known().flat_map(|(_, fingerprint)| fingerprint.marks).copied()
}

/// The agent that a process is, as its user knows it.
fn agent_of(pid: u32, names: &[String]) -> Option<&'static str> {
    agent_that_runs(&executable(pid)?, names, || arguments(pid))
}

/// The agent that a program is, by its path and, where that does not tell, its arguments. `names` are further programs
/// that count as the first agent.
pub(super) fn agent_that_runs(
    path: &Path,
    names: &[String],
    arguments: impl FnOnce() -> Option<Vec<OsString>>,
) -> Option<&'static str> {
    if path.file_name().is_some_and(|name| names.iter().any(|other| is_named(name, other))) {
        return Some(first());
    }
    let scripts = scripts(path, arguments);
    known().find(|(_, fingerprint)| fingerprint.is_of(path, scripts.as_deref())).map(|(name, _)| name)
}

fn mark_of(pid: u32) -> Option<&'static str> {
    // Of most processes, one look is enough.
    if !is_started_with(pid, &marks().collect::<Vec<_>>()) {
        return None;
    }
    let its = known().find(|(_, fingerprint)| is_started_with(pid, fingerprint.marks)).map(|(name, _)| name);
    its.or_else(|| Some(first()))
}

/// The first agent, as its user knows it.
fn first() -> &'static str {
    FIRST.profile().names.word
}
