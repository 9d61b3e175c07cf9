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

use super::copilot::identity::{AGENT_MARKS, runs_copilot};
use super::program_file::{is_named, is_node, is_script_of};
use crate::system::process::{ancestors, arguments, executable, is_started_with};
use std::ffi::OsString;
use std::path::Path;

/// The agent behind a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The process that is the agent, or has the marks of its tools.
    pub pid: u32,
    /// The agent, as its user knows it.
    pub agent: &'static str,
}

/// What an agent is recognised by above a process.
struct Fingerprint {
    name: &'static str,
    /// The file name of its program.
    program: &'static str,
    /// The folder of its programs, where these are named after their releases.
    releases: Option<&'static str>,
    /// The package in which npm has it, for those that node runs.
    package: &'static str,
    /// Variables that it sets for its tools, and not for itself.
    marks: &'static [&'static str],
}

/// Copilot, as its user knows it.
const COPILOT: &str = "Copilot";

/// The agents besides Copilot. Observed: Claude Code 2.1.330, Codex 0.169.0, opencode 1.18.33. Of Gemini CLI 0.61.0 the
/// variable was read in its code.
const OTHERS: [Fingerprint; 4] = [
    Fingerprint {
        name: "Claude Code",
        program: "claude",
        releases: Some("claude/versions"),
        package: "@anthropic-ai/claude-code",
        marks: &["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"],
    },
    Fingerprint {
        name: "Codex",
        program: "codex",
        releases: None,
        package: "@openai/codex",
        marks: &["CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID"],
    },
    Fingerprint { name: "opencode", program: "opencode", releases: None, package: "opencode-ai", marks: &["OPENCODE"] },
    Fingerprint {
        name: "Gemini CLI",
        program: "gemini",
        releases: None,
        package: "@google/gemini-cli",
        marks: &["GEMINI_CLI"],
    },
];

/// The nearest process, starting with `pid` itself, that is an agent; Copilot by the rules for owners, with the same
/// further `names`. Otherwise the nearest that has the marks of an agent's tools: a process of the agent's started it and
/// handed it to init, or has ended.
///
/// A process that cannot be read (another user's, like `sudo`) is skipped: it is not taken for an agent.
pub fn agent_above(pid: u32, names: &[String]) -> Option<Behind> {
    let mut line = vec![pid];
    line.extend(ancestors(pid));
    let runs = |pid: &u32| Some(Behind { pid: *pid, agent: agent_of(*pid, names)? });
    let marked = |pid: &u32| Some(Behind { pid: *pid, agent: mark_of(*pid)? });
    line.iter().find_map(runs).or_else(|| line.iter().find_map(marked))
}

/// The variables by which [`agent_above`] recognises what agents start.
pub(crate) fn marks() -> impl Iterator<Item = &'static str> {
    AGENT_MARKS.into_iter().chain(OTHERS.iter().flat_map(|agent| agent.marks).copied())
}

/// The agent that a process is, as its user knows it.
pub(crate) fn agent_of(pid: u32, names: &[String]) -> Option<&'static str> {
    agent_that_runs(&executable(pid)?, names, || arguments(pid))
}

/// The agent that a program is, by its path and, where that does not tell, its arguments.
pub(super) fn agent_that_runs(
    path: &Path,
    names: &[String],
    arguments: impl Fn() -> Option<Vec<OsString>>,
) -> Option<&'static str> {
    let scripts = if is_node(path) { arguments() } else { None };
    if runs_copilot(path, names, || scripts.clone()) == Some(true) {
        return Some(COPILOT);
    }
    let is_it = |agent: &&Fingerprint| {
        path.file_name().is_some_and(|name| is_named(name, agent.program))
            || path.parent().zip(agent.releases).is_some_and(|(folder, releases)| folder.ends_with(releases))
            || scripts.iter().flatten().any(|argument| is_script_of(argument, agent.package))
    };
    OTHERS.iter().find(is_it).map(|agent| agent.name)
}

fn mark_of(pid: u32) -> Option<&'static str> {
    // Of most processes, one look is enough.
    if !is_started_with(pid, &marks().collect::<Vec<_>>()) {
        return None;
    }
    let its = OTHERS.iter().find(|agent| is_started_with(pid, agent.marks)).map(|agent| agent.name);
    its.filter(|_| !is_started_with(pid, &AGENT_MARKS)).or(Some(COPILOT))
}
