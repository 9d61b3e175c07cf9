//! Reads one session, whichever agent it is of. Knows what it has read; what it observed is kept by the caller.

use super::channel::Service;
use super::claude_code;
use super::codex::resume as codex_resume;
use super::codex::thread::Thread;
use super::copilot::resume;
use super::copilot::store::{Folder, LOG};
use super::copilot::user_settings;
use super::evidence::Evidence;
use super::reading::{ReadStatus, Reading};
use super::reported::Told;
#[cfg(test)]
use super::sundial;
use pilotlight_core::session::{About, Observed};
use pilotlight_core::time::Time;
use std::io;
use std::path::{Path, PathBuf};

/// Reads one session.
#[derive(Debug)]
pub enum Reader {
    /// A session's folder.
    Copilot(Box<Folder>),
    /// A session's log, and the files of its processes.
    ClaudeCode(Box<claude_code::session::Session>),
    /// What is reported of a session.
    Reported(Told),
    /// A thread's log, and its lock.
    Codex(Box<Thread>),
    /// A session's file.
    #[cfg(test)]
    Sundial(sundial::Dial),
}

impl Reader {
    /// Reads what is new: who owns the session, its description, and its log. Where nothing can be open any more and the
    /// log is old, the session has ended, and the log is left unread.
    ///
    /// # Errors
    /// Where the session is gone.
    pub fn refresh(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadStatus> {
        match self {
            Self::Copilot(folder) => folder.refresh(reading, observed, buffer),
            Self::ClaudeCode(session) => session.refresh(reading, observed, buffer),
            Self::Reported(told) => told.refresh(reading, observed),
            Self::Codex(thread) => thread.refresh(reading, observed, buffer),
            #[cfg(test)]
            Self::Sundial(dial) => dial.refresh(reading, observed),
        }
    }

    /// Reads the log of an old session, to show how it ended.
    pub fn read_history(&mut self, reading: &Reading<'_>, observed: &mut Observed, buffer: &mut Vec<u8>) -> ReadStatus {
        match self {
            Self::Copilot(folder) => folder.read_history(reading, observed, buffer),
            Self::ClaudeCode(session) => session.read_history(reading, observed, buffer),
            Self::Reported(_) => ReadStatus::Complete,
            Self::Codex(thread) => thread.read_history(reading, observed, buffer),
            #[cfg(test)]
            Self::Sundial(dial) => {
                dial.read(reading, observed);
                ReadStatus::Complete
            }
        }
    }

    /// Reads the session's description without keeping it.
    pub fn about(&self) -> About {
        match self {
            Self::Copilot(folder) => folder.about(),
            Self::ClaudeCode(session) => session.about(),
            Self::Reported(told) => told.about(),
            Self::Codex(thread) => thread.about(),
            #[cfg(test)]
            Self::Sundial(dial) => dial.about(),
        }
    }

    /// Frees the state for reading on in the log; another read would start over. With tens of thousands of logs, this
    /// is most of the memory kept for them.
    pub fn forget_log(&mut self) {
        match self {
            Self::Copilot(folder) => folder.forget_log(),
            Self::ClaudeCode(session) => session.forget_log(),
            Self::Reported(_) => {}
            Self::Codex(thread) => thread.forget_log(),
            #[cfg(test)]
            Self::Sundial(_) => {}
        }
    }

    /// Where the session is: its folder, or its file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Copilot(folder) => folder.path(),
            Self::ClaudeCode(session) => session.log(),
            Self::Reported(told) => told.path(),
            Self::Codex(thread) => thread.path(),
            #[cfg(test)]
            Self::Sundial(dial) => dial.path(),
        }
    }

    /// Further folders that change with it, as of the last look, whether they are there or not.
    pub fn folders(&self) -> Vec<PathBuf> {
        match self {
            Self::ClaudeCode(session) => session.folders(),
            Self::Copilot(_) | Self::Reported(_) | Self::Codex(_) => Vec::new(),
            #[cfg(test)]
            Self::Sundial(_) => Vec::new(),
        }
    }

    /// The session's log.
    pub fn log(&self) -> PathBuf {
        match self {
            Self::Copilot(folder) => folder.path().join(LOG),
            Self::ClaudeCode(session) => session.log().to_owned(),
            Self::Reported(told) => told.path().to_owned(),
            Self::Codex(thread) => thread.path().to_owned(),
            #[cfg(test)]
            Self::Sundial(dial) => dial.path().to_owned(),
        }
    }

    /// The command that resumes it, for the user to type. `None` if its id must not reach a command line.
    pub fn resume_line(&self) -> Option<String> {
        match self {
            Self::Copilot(folder) => resume::line(folder.id()),
            Self::ClaudeCode(session) => session.resume_line(),
            Self::Reported(_) => None,
            Self::Codex(thread) => codex_resume::line(thread.id()),
            #[cfg(test)]
            Self::Sundial(_) => None,
        }
    }

    /// Whether the agent itself tells its user when a turn ends.
    pub fn agent_notifies(&self) -> bool {
        match self {
            Self::Copilot(folder) => folder.home().is_some_and(user_settings::notifies),
            Self::ClaudeCode(_) | Self::Reported(_) | Self::Codex(_) => false,
            #[cfg(test)]
            Self::Sundial(_) => false,
        }
    }

    /// The processes whose exit may change who owns it.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        let (locks, files, noted) = match self {
            Self::Copilot(folder) => (Some(folder.pids()), None, None),
            Self::ClaudeCode(session) => (None, Some(session.pids()), None),
            Self::Reported(told) => (None, None, told.pid()),
            Self::Codex(thread) => (None, None, thread.pid()),
            #[cfg(test)]
            Self::Sundial(dial) => (None, None, dial.pid()),
        };
        locks.into_iter().flatten().chain(files.into_iter().flatten()).chain(noted)
    }

    /// Processes that are just opening it and do not hold it yet.
    pub fn newcomers(&self) -> &[u32] {
        match self {
            Self::Copilot(folder) => folder.newcomers(),
            Self::ClaudeCode(_) | Self::Reported(_) | Self::Codex(_) => &[],
            #[cfg(test)]
            Self::Sundial(_) => &[],
        }
    }

    /// When to read it again, by the awake clock, even without an event: it was too new to show who owns it.
    pub const fn owner_recheck_at(&self) -> Option<Time> {
        match self {
            Self::Copilot(folder) => folder.owner_recheck_at(),
            Self::ClaudeCode(session) => session.recheck_at(),
            Self::Reported(_) => None,
            Self::Codex(thread) => thread.recheck_at(),
            #[cfg(test)]
            Self::Sundial(_) => None,
        }
    }

    /// The service that runs it, if its owner is one that takes orders.
    pub fn service(&self, observed: &Observed) -> Option<Service> {
        match self {
            Self::Copilot(_) | Self::ClaudeCode(_) | Self::Reported(_) => None,
            Self::Codex(thread) => thread.door(observed),
            #[cfg(test)]
            Self::Sundial(_) => None,
        }
    }

    /// What shows that its owner owns it, where that is enough to signal a process.
    pub fn evidence(&self, observed: &Observed) -> Option<Evidence> {
        match self {
            Self::Copilot(folder) => {
                Some(Evidence::Copilot { lock: folder.owners_lock(observed)?, folder: folder.path().to_owned() })
            }
            Self::ClaudeCode(session) => session.claim(observed).map(Evidence::ClaudeCode),
            Self::Reported(_) => None,
            Self::Codex(thread) => thread.evidence(observed),
            #[cfg(test)]
            Self::Sundial(_) => None,
        }
    }

    /// Handles a process's exit: it owns the session no longer.
    pub fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time) {
        match self {
            Self::Copilot(folder) => folder.process_ended(observed, pid, at),
            Self::ClaudeCode(session) => session.process_ended(observed, pid, at),
            Self::Reported(told) => told.process_ended(observed, pid, at),
            Self::Codex(thread) => thread.process_ended(observed, pid, at),
            #[cfg(test)]
            Self::Sundial(dial) => dial.process_ended(observed, pid, at),
        }
    }
}
