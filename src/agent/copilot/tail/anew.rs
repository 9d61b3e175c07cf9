//! A log that is read anew, from its end: the tail and the facts that it will come to, until they are whole.

use super::backwards::{Backwards, Search};
use super::{Pass, Stamp, Tail};
use crate::core::session::Facts;
use crate::core::time::Span;
use crate::system::identity::Identity;
use std::fs::{File, Metadata};
use std::io;

/// A reading that may take several passes.
#[derive(Debug)]
pub(super) struct Anew {
    /// The log's, as it was begun.
    length: u64,
    /// How far the awake clock was ahead of the one on the wall when its events happened.
    pub(super) lead: Span,
    /// Looks for where to begin; over once that is found.
    search: Option<Search>,
    tail: Tail,
    facts: Facts,
}

impl Anew {
    pub(super) fn new(meta: &Metadata, stamp: Option<Stamp>, pass: Pass<'_>) -> Self {
        Self {
            length: meta.len(),
            lead: pass.lead,
            search: Some(Search::new(meta.len(), pass.look.limits.background_agent)),
            tail: Tail { file: Some(Identity::of(meta)), stamp, lead: Some(pass.lead), ..Tail::default() },
            facts: Facts::default(),
        }
    }

    /// Whether it was begun on this file, which may have grown since, and what was read of it still stands there.
    pub(super) fn is_of(&self, file: &File, meta: &Metadata) -> io::Result<bool> {
        let is_it = self.tail.file == Some(Identity::of(meta)) && meta.len() >= self.length;
        Ok(is_it && self.tail.mark_stands(file)?)
    }

    /// Goes on. Whether that was all.
    pub(super) fn read_on(&mut self, file: &File, pass: Pass<'_>, buffer: &mut [u8]) -> io::Result<bool> {
        let Self { length, search, tail, facts, lead: _ } = self;
        if let Some(under_way) = search {
            let mut back = Backwards::new(file, *length, buffer);
            let Some((start, begun)) = under_way.go_on(&mut back, pass)? else { return Ok(false) };
            (tail.read, tail.begun) = (start, begun);
            *search = None;
            // Most turns fit into the block that was read last.
            if let Some(held) = back.all_from(start) {
                tail.fold(held, facts, pass);
            }
        }
        if !tail.read_on(file, *length, facts, pass, buffer)? {
            return Ok(false);
        }
        if !tail.carry.is_empty() {
            pass.grew(facts);
        }
        Ok(true)
    }

    /// Whether the log has grown since it was begun. One that was cut meanwhile has not: all that stands there was read.
    pub(super) fn has_grown(&self, meta: &Metadata) -> bool {
        meta.len() > self.length
    }

    /// What it came to.
    pub(super) fn done(self) -> (Tail, Facts) {
        (self.tail, self.facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::copilot::tail::Look;
    use crate::core::limits::Limits;
    use crate::core::time::{Moment, Time};

    /// Case 86 (UP): what was cut while it was read was called "long, and still being read" by who looks once.
    #[test]
    fn a_log_that_is_cut_while_it_is_read_has_not_grown() {
        let scratch = tempfile::NamedTempFile::new().unwrap();
        let prompt =
            r#"{"type":"user.message","data":{"content":"do it"},"id":"a","timestamp":"2026-01-01T00:00:00.000Z"}"#;
        let limits = Limits::default();
        let look = Look { now: Moment::default(), limits: &limits, until: None };
        let pass = Pass { look, written: Time(i64::MAX), lead: Span::ZERO };
        for (becomes, events, has_grown) in [(0, 0, false), (50, 0, false), (200, 1, true), (120, 1, false)] {
            let text = format!("{prompt}\n{}", " ".repeat(120 - prompt.len() - 1));
            std::fs::write(scratch.path(), &text).unwrap();
            let file = File::options().read(true).write(true).open(scratch.path()).unwrap();
            let mut anew = Anew::new(&file.metadata().unwrap(), None, pass);
            file.set_len(becomes).unwrap();
            assert!(anew.read_on(&file, pass, &mut vec![0; 4096]).unwrap(), "{becomes}: that is all there is");
            assert_eq!(anew.has_grown(&file.metadata().unwrap()), has_grown, "{becomes}");
            assert_eq!(anew.done().1.events, events, "{becomes}");
        }
    }
}
