//! Rebuilds the facts of a log from its end, over as many passes as the deadlines require.

use super::backwards::{Backwards, Search};
use super::pass::Pass;
use super::position::Position;
use super::stamp::Stamp;
use pilotlight_core::facts::Facts;
use pilotlight_core::time::Span;
use std::fs::{File, Metadata};
use std::io;

/// A rebuild in progress.
#[derive(Debug)]
pub(super) struct Rebuild {
    /// The log's length when the rebuild began.
    length: u64,
    /// How far the awake clock was ahead of the wall clock when the log's events happened.
    pub(super) lead: Span,
    /// The search for where to begin; `None` once that is found.
    search: Option<Search>,
    position: Position,
    facts: Facts,
}

impl Rebuild {
    pub(super) fn new(meta: &Metadata, stamp: Option<Stamp>, pass: Pass<'_>) -> Self {
        Self {
            length: meta.len(),
            lead: pass.lead,
            search: Some(Search::new(meta.len(), pass.context.limits.background_agent)),
            position: Position::in_file(meta, stamp, pass.lead),
            facts: Facts::default(),
        }
    }

    /// Whether the rebuild began on this file and what it has read is still there. The file may have grown since.
    pub(super) fn is_of(&self, file: &File, meta: &Metadata) -> io::Result<bool> {
        Ok(meta.len() >= self.length && self.position.is_in_file(file, meta)?)
    }

    /// Continues. Returns whether the rebuild is complete.
    pub(super) fn read_on(&mut self, file: &File, pass: Pass<'_>, buffer: &mut [u8]) -> io::Result<bool> {
        let Self { length, search, position, facts, lead: _ } = self;
        if let Some(searching) = search {
            let mut back = Backwards::new(file, *length, buffer);
            let Some((at, start)) = searching.advance(&mut back, pass)? else { return Ok(false) };
            (position.read, position.start) = (at, start);
            *search = None;
            // Most turns fit into the block that was read last, and need not be read again.
            if let Some(rest) = back.all_from(at) {
                position.fold(rest, facts, pass);
            }
        }
        if !position.read_on(file, *length, facts, pass, buffer)? {
            return Ok(false);
        }
        if !position.carry.is_empty() {
            pass.grew(facts);
        }
        Ok(true)
    }

    /// Whether the log has grown since the rebuild began. A log that was truncated meanwhile has not: all of it was
    /// read.
    pub(super) fn has_grown(&self, meta: &Metadata) -> bool {
        meta.len() > self.length
    }

    /// Returns the result.
    pub(super) fn finish(self) -> (Position, Facts) {
        (self.position, self.facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copilot::log_format::LOG_FORMAT;
    use crate::tail::pass::ReadContext;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::time::{Moment, Time};

    /// Case 86: a log truncated while it was read was reported as "long, and still being read" by commands that
    /// read once.
    #[test]
    fn a_log_truncated_while_it_is_read_has_not_grown() {
        let scratch = tempfile::NamedTempFile::new().unwrap();
        let prompt =
            r#"{"type":"user.message","data":{"content":"do it"},"id":"a","timestamp":"2026-01-01T00:00:00.000Z"}"#;
        let limits = Limits::default();
        let context = ReadContext { now: Moment::default(), limits: &limits, until: None };
        let pass = Pass { log_format: &LOG_FORMAT, context, written: Time(i64::MAX), lead: Span::ZERO };
        for (becomes, events, has_grown) in [(0, 0, false), (50, 0, false), (200, 1, true), (120, 1, false)] {
            let text = format!("{prompt}\n{}", " ".repeat(120 - prompt.len() - 1));
            std::fs::write(scratch.path(), &text).unwrap();
            let file = File::options().read(true).write(true).open(scratch.path()).unwrap();
            let mut rebuild = Rebuild::new(&file.metadata().unwrap(), None, pass);
            file.set_len(becomes).unwrap();
            assert!(rebuild.read_on(&file, pass, &mut vec![0; 4096]).unwrap(), "{becomes}: everything was read");
            assert_eq!(rebuild.has_grown(&file.metadata().unwrap()), has_grown, "{becomes}");
            assert_eq!(rebuild.finish().1.events, events, "{becomes}");
        }
    }
}
