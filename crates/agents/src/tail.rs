//! Follows one growing log: reads it backwards once, as far as the facts require, then forwards as it grows.
//!
//! A file event is only a hint: every read checks whether the file has grown, was truncated, rewritten or replaced, or
//! is gone. Bytes are read once, but if the file is no longer the one that was read, the facts are rebuilt from the
//! start, so that no status outlives its evidence.
//!
//! A log is first read from its end, in blocks, back to the last prompt that closed everything open. Where sub-agents write
//! into it ([`SubAgentsInLog`]), reading goes on to twenty minutes before its last event, because a sub-agent in the
//! background may work that long in silence. It never goes further back than 64 MB. From there the log is folded
//! forwards, and what is added later is folded as it comes. A log that grew by more than 64 MB at once is read as a new one.
//!
//! The file's identity, the last bytes that were read and, if it has not grown, its times show whether it is still the same
//! log. One change goes unnoticed: a log that is both overwritten in the middle and extended between two reads.
//!
//! However long a log is, and however fast it grows, a read can stop at a deadline and be resumed later: see
//! [`ReadContext::until`]. During a rebuild, the previous facts are kept until the new ones are complete.

mod backwards;
mod carry;
mod file;
mod log_format;
mod pass;
mod position;
mod rebuild;
mod stamp;

use backwards::Start;
use file::{open, written};
use pass::Pass;
use pilotlight_core::facts::Facts;
use position::{Compared, Position};
use rebuild::Rebuild;
use stamp::Stamp;
use std::io;
use std::path::Path;

pub use file::LogError;
pub use file::length;
pub(crate) use log_format::{FIRST_LINES, has_line_with};
pub use log_format::{LogFormat, SubAgentsInLog};
pub use pass::ReadContext;

/// How much is read at once, in bytes. Of logs made of recorded turns, 99 in 100 last turns fit into it.
const BLOCK: usize = 64 * 1024;
/// A log that is no longer than this, in bytes, is read to its end whatever the deadline: that takes about a millisecond, and
/// one that is replaced again and again would otherwise never be read.
const SHORT: u64 = 8 * BLOCK as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// There is no log.
    Absent,
    /// Nothing new.
    Unchanged,
    /// New events were folded.
    Grown,
    /// The deadline passed before the end was reached.
    More,
}

/// Follows a log.
#[derive(Debug, Default)]
pub struct Tail {
    position: Position,
    /// A rebuild in progress, because the log is no longer the one that was read.
    rebuild: Option<Box<Rebuild>>,
}

impl Tail {
    /// Reads what is new and folds it into `facts`; rebuilds them if the log is no longer the one that was read. After
    /// [`ReadOutcome::More`], the next call continues.
    ///
    /// # Errors
    /// Where there is a log that cannot be read. `facts` are then empty, because none of them is certain any more.
    pub fn read(
        &mut self,
        log_format: &LogFormat,
        path: &Path,
        facts: &mut Facts,
        context: ReadContext<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<ReadOutcome, LogError> {
        let result = self.read_if_there(log_format, path, facts, context, buffer);
        if matches!(result, Ok(ReadOutcome::Absent)) {
            self.forget(facts);
        }
        result
    }

    /// As [`read`](Self::read), but where there is no log, all stays as it was.
    pub(crate) fn read_if_there(
        &mut self,
        log_format: &LogFormat,
        path: &Path,
        facts: &mut Facts,
        context: ReadContext<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<ReadOutcome, LogError> {
        let result = self.try_read(log_format, path, facts, context, buffer);
        if result.is_err() {
            self.forget(facts);
        }
        result
    }

    fn forget(&mut self, facts: &mut Facts) {
        *self = Self::default();
        *facts = Facts::default();
    }

    /// Whether the log is too long to have been read up to the deadline, since it is no longer the one that was read.
    pub(crate) const fn is_rebuilding(&self) -> bool {
        self.rebuild.is_some()
    }

    /// Whether nothing of the log could be parsed, because all that is within reach is a single line.
    pub fn is_inside_line(&self) -> bool {
        self.position.start == Start::InsideLine
    }

    fn try_read(
        &mut self,
        log_format: &LogFormat,
        path: &Path,
        facts: &mut Facts,
        context: ReadContext<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<ReadOutcome, LogError> {
        if self.rebuild.is_none() && self.position.is_unchanged(path) {
            return Ok(ReadOutcome::Unchanged);
        }
        let (file, meta) = match open(path) {
            Ok(opened) => opened,
            Err(LogError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(ReadOutcome::Absent),
            Err(error) => return Err(error),
        };
        let context = ReadContext { until: context.until.filter(|_| meta.len() > SHORT), ..context };
        let mut pass = Pass { log_format, context, written: written(&meta), lead: context.lead() };
        buffer.resize(BLOCK, 0);
        let mut resumed = None;
        if let Some(rebuild) = self.rebuild.take()
            && rebuild.is_of(&file, &meta)?
        {
            resumed = Some(rebuild);
        }
        let mut rebuild = match resumed {
            Some(rebuild) => rebuild,
            None => {
                let stamp = Stamp::of(&meta, context.now.wall);
                match self.position.compare(&file, &meta)? {
                    Compared::Same => {
                        self.position.stamp = stamp;
                        return Ok(ReadOutcome::Unchanged);
                    }
                    Compared::Grown => {
                        (self.position.stamp, self.position.lead) = (stamp, Some(pass.lead));
                        let complete = self.position.read_on(&file, meta.len(), facts, pass, buffer)?;
                        if !self.position.carry.is_empty() {
                            pass.grew(facts);
                        }
                        return Ok(if complete { ReadOutcome::Grown } else { ReadOutcome::More });
                    }
                    // The events happened before it was first read, whatever was done to the clocks since.
                    Compared::Rewritten => pass.lead = self.position.lead.unwrap_or(pass.lead),
                    Compared::FarAhead => pass.grew(facts),
                    Compared::Other => {}
                }
                Box::new(Rebuild::new(&meta, stamp, pass))
            }
        };
        pass.lead = rebuild.lead;
        if !rebuild.read_on(&file, pass, buffer)? {
            self.rebuild = Some(rebuild);
            return Ok(ReadOutcome::More);
        }
        let has_grown = rebuild.has_grown(&meta);
        let (position, mut rebuilt) = rebuild.finish();
        // A log that may have been rewritten was in most cases only written while it was read.
        if self.position.is_of_length(&position) {
            rebuilt.recall(facts);
        }
        (self.position, *facts) = (position, rebuilt);
        Ok(if has_grown { ReadOutcome::More } else { ReadOutcome::Grown })
    }
}
