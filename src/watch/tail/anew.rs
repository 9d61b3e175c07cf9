//! A log that is read anew, from its end: the tail and the facts that it will come to, until they are whole.

use super::backwards::{Backwards, Search};
use super::{Pass, Stamp, Tail};
use crate::core::session::Facts;
use crate::core::time::Span;
use crate::watch::identity::Identity;
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
            tail: Tail { file: Some(Identity::of(meta)), stamp, ..Tail::default() },
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

    /// What it came to.
    pub(super) fn done(self) -> (Tail, Facts) {
        (self.tail, self.facts)
    }
}
