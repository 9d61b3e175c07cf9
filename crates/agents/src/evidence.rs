//! What shows that a process owns a session: verified before that process is signalled.

use super::claude_code::target as claude_code;
use super::codex::target as codex;
use super::copilot::owner::Lock;
use super::copilot::target as copilot;
use pilotlight_core::time::Time;
use pilotlight_system::process::Force;
use std::path::PathBuf;

/// What shows that a process owns a session.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// A lock in the session's folder.
    Copilot { lock: Lock, folder: PathBuf },
    /// The file of the process.
    ClaudeCode(claude_code::Claim),
    /// A lock in the home, which the process holds.
    Codex { home: PathBuf, id: Box<str>, pid: u32 },
}

/// An owner that can be signalled.
#[derive(Debug)]
pub enum Target {
    Copilot(copilot::Target),
    ClaudeCode(claude_code::Target),
    Codex(codex::Target),
}

impl Evidence {
    /// The process.
    pub const fn pid(&self) -> u32 {
        match self {
            Self::Copilot { lock, .. } => lock.pid,
            Self::ClaudeCode(claim) => claim.pid(),
            Self::Codex { pid, .. } => *pid,
        }
    }

    /// The signals that end it, each if the one before had no effect: of these, those that its agent ends cleanly by.
    pub fn ends_by(&self, forces: &[Force]) -> Vec<Force> {
        let takes = |force: &Force| match self {
            Self::Copilot { .. } => true,
            Self::ClaudeCode(_) => *force == Force::Terminate,
            // All signals end it alike, and leave its turn open.
            Self::Codex { .. } => *force != Force::Interrupt,
        };
        forces.iter().copied().filter(takes).collect()
    }

    /// Opens the process, and verifies that it is the session's owner and its agent. A `confirmed` order is the user's
    /// answer to a question of ours.
    ///
    /// # Errors
    /// Any other process is refused, with the reason for the user.
    pub fn open(&self, names: &[String], now: Time, confirmed: bool) -> Result<Target, String> {
        Ok(match self {
            Self::Copilot { lock, folder } => {
                Target::Copilot(copilot::Target::open(*lock, folder, names, now, confirmed)?)
            }
            Self::ClaudeCode(claim) => Target::ClaudeCode(claim.open(now)?),
            Self::Codex { home, id, pid } => Target::Codex(codex::Target::open(home, id, *pid, now)?),
        })
    }
}

impl Target {
    /// Signals the process if it has not ended and still is the session's owner. Does not wait for it to end. Returns at
    /// once, on Windows within 0.2 s.
    ///
    /// # Errors
    /// It has ended, is the owner no longer, or the system forbids the signal: the reason, for the user.
    pub fn signal(&self, force: Force) -> Result<(), String> {
        match self {
            Self::Copilot(target) => target.signal(force),
            Self::ClaudeCode(target) => target.signal(force),
            Self::Codex(target) => target.signal(force),
        }
    }

    /// Whether the process has ended.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Copilot(target) => target.has_ended(),
            Self::ClaudeCode(target) => target.has_ended(),
            Self::Codex(target) => target.has_ended(),
        }
    }
}
