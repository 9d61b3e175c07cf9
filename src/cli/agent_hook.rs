//! `pilotlight hook claude-code`, `pilotlight hook opencode`: what an agent starts when it asks its user something, once the bridge is installed.
//!
//! The agent waits for it, so nothing is done before: no settings are read, and no log is kept. It says nothing, and ends
//! with 0, whatever is wrong: then the agent's own dialog decides.

use clap::ValueEnum;
use pilotlight_agents::{claude_code, opencode};
use std::ffi::{OsStr, OsString};
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
    /// opencode, by its plugin
    #[value(name = "opencode")]
    OpenCode,
}

impl Agent {
    fn named(name: &OsStr) -> Option<Self> {
        match name.to_str()? {
            claude_code::bridge::AGENT => Some(Self::ClaudeCode),
            opencode::NAME => Some(Self::OpenCode),
            _ => None,
        }
    }

    fn answer(self) -> ExitCode {
        // Without an answer, the dialog decides.
        #[cfg(unix)]
        let _ = match self {
            Self::ClaudeCode => claude_code::bridge::hook::run(),
            Self::OpenCode => opencode::bridge::hook::run(),
        };
        ExitCode::SUCCESS
    }
}

/// Runs it if this command line is an agent's.
pub(super) fn run_first(words: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut words = words.into_iter().skip(1);
    let agent = (words.next()? == "hook").then(|| words.next())?.as_deref().and_then(Agent::named)?;
    words.next().is_none().then(|| agent.answer())
}

/// The same, of a command line that was parsed.
pub(super) fn run(Arguments { agent }: &Arguments) -> ExitCode {
    agent.answer()
}
