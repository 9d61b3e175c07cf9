//! `pilotlight hook claude-code`: what an agent starts when it asks its user something, once the bridge is installed.
//!
//! The agent waits for it, so nothing is done before: no settings are read, and no log is kept. It says nothing, and ends
//! with 0, whatever is wrong: then the agent's own dialog decides.

use clap::ValueEnum;
use std::ffi::OsString;
use std::process::ExitCode;

/// Arguments of `hook`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The agent that starts it
    #[arg(value_name = "AGENT")]
    agent: Agent,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Agent {
    /// Claude Code
    ClaudeCode,
}

/// Runs it if this command line is an agent's.
pub(super) fn run_first(words: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    use pilotlight_agents::claude_code::bridge::{AGENT, COMMAND};
    let mut words = words.into_iter().skip(1);
    let is_hook = words.next()? == COMMAND && words.next()? == AGENT && words.next().is_none();
    is_hook.then(answer)
}

/// The same, of a command line that was parsed.
pub(super) fn run(Arguments { agent: Agent::ClaudeCode }: &Arguments) -> ExitCode {
    answer()
}

fn answer() -> ExitCode {
    #[cfg(unix)]
    let _ = pilotlight_agents::claude_code::bridge::hook::run(); // without an answer, the dialog decides
    ExitCode::SUCCESS
}
