//! What reading a session depends on besides its own files, and its result.

use super::openings::OpenSessions;
use crate::agent::tail::ReadContext;
use crate::core::session::Observed;
use crate::core::time::{Span, Time};
use std::collections::HashSet;

/// How long after its first trace at a session a process counts as its owner, although it does not hold it yet: a
/// hundred times the longest that Copilot took on a busy machine.
pub(crate) const GRACE: Span = Span(250);

/// What reading a session depends on besides its own files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// Both clocks, the limits, and the deadline.
    pub context: ReadContext<'a>,
    /// Names of further programs that count as the agent.
    pub owner_names: &'a [String],
    /// Processes whose exit is watched.
    pub known: &'a HashSet<u32>,
    /// The sessions that processes have open without a lock.
    pub openings: &'a OpenSessions,
    /// Whether to read even logs that are too old to matter.
    pub all: bool,
}

impl Reading<'_> {
    /// Whether a session without an owner has certainly ended, given when its log was last written.
    pub(in crate::agent) fn is_past(&self, touched: Time) -> bool {
        self.context.now.wall - touched > self.context.limits.ownerless
    }
}

/// Whether a read reached the end before its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadStatus {
    /// Everything was read.
    Complete,
    /// The folder or the log has more to read.
    Partial,
}

/// The state of a folder without a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Glimpse {
    /// When the log was last written, or the folder if there is no log.
    pub touched: Time,
    /// Whether there is a log, or something else of its name.
    pub has_log: bool,
}

impl Glimpse {
    /// Records that nobody has the session open and that its log is too old to matter.
    pub(crate) const fn note(self, observed: &mut Observed) {
        (observed.touched, observed.has_log, observed.unread) = (self.touched, self.has_log, true);
    }
}
