//! Reads one session, whichever agent it is of.

use super::evidence::Evidence;
use super::reading::{ReadStatus, Reading};
use pilotlight_core::session::{About, Observed};
use pilotlight_core::time::Time;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads one session.
pub type Reader = Box<dyn SessionReader>;

/// Reads one session. Knows what it has read; what it observed is kept by the caller.
pub trait SessionReader: fmt::Debug + Send {
    /// Reads what is new: who owns the session, its description, and its log. Where nothing can be open any more and the
    /// log is old, the session has ended, and the log is left unread.
    ///
    /// # Errors
    /// Where the session is gone.
    fn refresh(
        &mut self,
        reading: &Reading<'_>,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadStatus>;

    /// Reads the log of an old session, to show how it ended.
    fn read_history(&mut self, _reading: &Reading<'_>, _observed: &mut Observed, _buffer: &mut Vec<u8>) -> ReadStatus {
        ReadStatus::Complete
    }

    /// Reads the session's description without keeping it.
    fn about(&self) -> About;

    /// Frees the state for reading on in the log; another read would start over. With tens of thousands of logs, this
    /// is most of the memory kept for them.
    fn forget_log(&mut self) {}

    /// Where the session is: its folder, or its file.
    fn path(&self) -> &Path;

    /// Further folders that change with it, as of the last look, whether they are there or not.
    fn folders(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The session's log.
    fn log(&self) -> PathBuf {
        self.path().to_owned()
    }

    /// The command that resumes it, for the user to type. `None` if there is none, or its id must not reach a command line.
    fn resume_line(&self) -> Option<String> {
        None
    }

    /// Whether the agent itself tells its user when a turn ends.
    fn agent_notifies(&self) -> bool {
        false
    }

    /// The processes whose exit may change who owns it.
    fn pids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Processes that are just opening it and do not hold it yet.
    fn newcomers(&self) -> &[u32] {
        &[]
    }

    /// When to read it again, by the awake clock, even without an event: it was too new to show who owns it.
    fn owner_recheck_at(&self) -> Option<Time> {
        None
    }

    /// The home in which its owner has it, where that may be another than its own: homes can share sessions.
    fn owner_home(&self) -> Option<&Path> {
        None
    }

    /// What shows that its owner owns it, where that is enough to signal a process.
    fn evidence(&self, _observed: &Observed) -> Option<Arc<dyn Evidence>> {
        None
    }

    /// Handles a process's exit: it owns the session no longer.
    fn process_ended(&mut self, observed: &mut Observed, pid: u32, at: Time);
}
