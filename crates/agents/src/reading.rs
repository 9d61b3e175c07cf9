//! What reading a session depends on besides its own files, and its result.

use super::openings::OpenSessions;
use crate::tail::{LogError, LogFormat, ReadContext, ReadOutcome, Tail};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Observed;
use pilotlight_core::time::{Moment, Span, Time};
use pilotlight_system::clock;
use pilotlight_system::process::SLACK;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long after its first trace at a session a process counts as its owner, although it does not hold it yet: a
/// hundred times the longest that Copilot took on a busy machine.
pub const GRACE: Span = Span(250);

/// How long a log must have rested for nobody to be writing it. Two steps of a turn are closer together, and a silence of a
/// model is longer: this tells only of a process that nothing else shows.
pub(crate) const RESTS: Span = Span::seconds(3);

/// Shown for a log that ends in a line too long to be read.
const ENDLESS: &str = "its log ends in a line of more than 64 MB, which is not read: what it does is unknown";

/// What reading a session depends on besides its own files.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
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
    /// Reads what is new in a session's log, and says why it cannot be read, if it cannot.
    ///
    /// # Errors
    /// The same reason.
    pub(crate) fn log(
        &self,
        tail: &mut Tail,
        log_format: &'static LogFormat,
        path: &Path,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> Result<ReadOutcome, LogError> {
        let result = tail.read(log_format, path, &mut observed.facts, self.context, buffer);
        self.note_read(tail, observed, &result);
        result
    }

    /// As [`log`](Self::log), but where there is no log, what was observed stays.
    pub(crate) fn log_if_there(
        &self,
        tail: &mut Tail,
        log_format: &'static LogFormat,
        path: &Path,
        observed: &mut Observed,
        buffer: &mut Vec<u8>,
    ) -> Result<ReadOutcome, LogError> {
        let result = tail.read_if_there(log_format, path, &mut observed.facts, self.context, buffer);
        if !matches!(result, Ok(ReadOutcome::Absent)) {
            self.note_read(tail, observed, &result);
        }
        result
    }

    fn note_read(&self, tail: &Tail, observed: &mut Observed, result: &Result<ReadOutcome, LogError>) {
        let facts = &observed.facts;
        let told = facts.wakes_at(None).or(facts.limit_until).unwrap_or(self.context.now.wall);
        observed.clock_offset = clock::offset(told);
        // A short log, of which nothing was there yet, may have grown meanwhile: that is no long one.
        observed.is_loading = tail.is_rebuilding() && observed.facts.events == 0;
        observed.problem = match result {
            Ok(_) if observed.is_loading => Some("its log is long, and still being read".into()),
            Ok(_) if tail.is_inside_line() => Some(ENDLESS.into()),
            Ok(_) => None,
            Err(error) => Some(error.to_string().into()),
        };
    }

    /// When a log that was written at this time will have rested, by the awake clock. `None`: it has.
    pub(crate) fn rests_at(&self, touched: Time) -> Option<Time> {
        let Moment { wall, awake } = self.context.now;
        let left = touched + RESTS - wall;
        (left > Span::ZERO && touched <= wall + SLACK).then(|| awake + left)
    }

    /// Whether a session without an owner has certainly ended, given when its log was last written.
    pub(crate) fn is_past(&self, touched: Time) -> bool {
        self.context.now.wall - touched > self.context.limits.ownerless
    }

    /// Whether a session with a log is history, whatever that says, so that it is left unread: nobody has it open, and it is
    /// old. A process that is gone without an end has crashed, which is told for longer. What was once read is read on.
    pub(crate) fn is_history(&self, observed: &Observed) -> bool {
        let is_old = match observed.owner {
            Owner::Never => self.is_past(observed.touched),
            Owner::Gone { .. } => self.context.now.wall - observed.touched > self.context.limits.crashed,
            Owner::Alive { .. }
            | Owner::Opened { .. }
            | Owner::Unheld { .. }
            | Owner::Unknown { .. }
            | Owner::Doubtful { .. } => false,
        };
        is_old && observed.facts.progress.is_none() && !self.all
    }
}

/// Where a listing found the logs of sessions, of those agents whose ids do not tell.
pub type LogPaths = Arc<HashMap<Arc<str>, PathBuf>>;

/// Whether a read reached the end before its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStatus {
    /// Everything was read.
    Complete,
    /// The folder or the log has more to read.
    Partial,
}

/// The state of a folder without a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastSession {
    /// When the log was last written, or the folder if there is no log.
    pub touched: Time,
    /// Whether there is a log, or something else of its name.
    pub has_log: bool,
}

impl PastSession {
    /// Records that nobody has the session open and that its log is too old to matter.
    pub const fn note(self, observed: &mut Observed) {
        (observed.touched, observed.has_log, observed.unread) = (self.touched, self.has_log, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::time::Moment;

    #[test]
    fn what_nobody_has_open_is_history_once_it_is_old_and_a_crash_a_day_later() {
        let (limits, known, touched) = (Limits::default(), HashSet::new(), Time(1_795_000_000_000));
        let is_history = |owner: Owner, after, all| {
            let context = ReadContext { now: Moment::of(touched + after), limits: &limits, until: None };
            let reading = Reading { context, owner_names: &[], known: &known, openings: OpenSessions::NONE, all };
            let mut observed = Observed { owner, touched, has_log: true, ..Observed::default() };
            let is_history = reading.is_history(&observed);
            observed.facts.progress = Some(Moment::of(touched));
            assert!(!reading.is_history(&observed), "it was read already");
            is_history
        };
        let pid = 17;
        for (owner, expected) in [
            (Owner::Never, [false, true, true]),
            (Owner::Gone { pid, at: None }, [false, false, true]),
            (Owner::Unknown { pid }, [false; 3]),
            (Owner::Alive { pid, started: None }, [false; 3]),
        ] {
            let ages = [Span::seconds(1), Span::hours(1), Span::hours(25)];
            assert_eq!(ages.map(|age| is_history(owner.clone(), age, false)), expected, "{owner:?}");
            assert!(!ages.iter().any(|age| is_history(owner.clone(), *age, true)), "{owner:?}");
        }
    }
}
