//! A log read from its end: where to begin so that nothing that matters is missed.

use super::{Begun, LINE_END, LINE_MAX, Pass, REACH, read_at};
use crate::core::event;
use crate::core::time::{Span, Time};
use std::fs::File;
use std::io;

/// Where to begin reading so that the facts are those of the whole log: at the last prompt that closed whatever was open. Where
/// a sub-agent wrote before that, within the time for which it counts as working in the background, it is the last prompt
/// before all of that time: which of the sub-agents ended with their turns shows only where the turns are read whole.
#[derive(Debug)]
pub(super) struct Search {
    /// It goes no further than this.
    floor: u64,
    background: Span,
    prompt: Option<u64>,
    newest: Option<Time>,
    has_agents: bool,
    /// Where the line ends whose start is looked for; before all lines, the end of the last whole one is.
    line_end: Option<u64>,
    /// From here on there is no newline that was not found yet.
    sought: u64,
}

impl Search {
    pub(super) const fn new(length: u64, background: Span) -> Self {
        let floor = length.saturating_sub(REACH);
        Self { floor, background, prompt: None, newest: None, has_agents: false, line_end: None, sought: length }
    }

    /// Goes on; `None` where it is broken off.
    pub(super) fn go_on(&mut self, back: &mut Backwards<'_>, pass: Pass<'_>) -> io::Result<Option<(u64, Begun)>> {
        loop {
            let newline = match back.newline_before(self.sought, self.floor)? {
                Newline::At(at) => Some(at),
                Newline::Nowhere => None,
                Newline::NotDownTo(start) => {
                    self.sought = start;
                    if pass.is_over() {
                        return Ok(None);
                    }
                    continue;
                }
            };
            let Some(line_end) = self.line_end else {
                let Some(newline) = newline else {
                    return Ok(Some((self.floor, if self.floor > 0 { Begun::InsideLine } else { Begun::AtLine })));
                };
                (self.line_end, self.sought) = (Some(newline), newline);
                continue;
            };
            let line_start = match newline {
                Some(newline) => newline + 1,
                None if self.floor > 0 => {
                    let start = self.prompt.filter(|_| !self.has_agents).unwrap_or(line_end + 1);
                    return Ok(Some((start, Begun::AtLine)));
                }
                None => 0,
            };
            if let Some(start) = self.look_at(back, line_start, line_end, pass)? {
                return Ok(Some((start, Begun::AtLine)));
            }
            if line_start == 0 {
                return Ok(Some((0, Begun::AtLine)));
            }
            (self.line_end, self.sought) = (Some(line_start - 1), line_start - 1);
        }
    }

    /// Looks at a line; where to begin, if that is known by it.
    fn look_at(
        &mut self,
        back: &mut Backwards<'_>,
        line_start: u64,
        line_end: u64,
        pass: Pass<'_>,
    ) -> io::Result<Option<u64>> {
        let is_prompt = (self.prompt.is_none() || self.has_agents)
            && back.with_line(line_start, line_end, LINE_MAX, event::is_fresh_prompt)?;
        if is_prompt && self.prompt.is_none() {
            self.prompt = Some(line_start);
        }
        if self.newest.is_none() && back.with_line(line_start, line_end, LINE_END, event::is_shutdown)? {
            self.background = Span::ZERO;
        }
        let ends = line_start.max(line_end.saturating_sub(LINE_END as u64));
        let Some((at, by_agent)) = back.with_line(ends, line_end, LINE_END, event::end_of)? else { return Ok(None) };
        let at = pass.dated(at);
        let age = *self.newest.get_or_insert(at) - at;
        self.has_agents |= self.prompt.is_some() && by_agent && age < self.background;
        if is_prompt && age >= self.background {
            (self.prompt, self.has_agents) = (Some(line_start), false);
        }
        Ok(self.prompt.filter(|_| age >= self.background && !self.has_agents))
    }
}

/// Where a newline stands.
enum Newline {
    At(u64),
    /// Not between here and where it was looked for.
    NotDownTo(u64),
    /// Nowhere down to the floor.
    Nowhere,
}

/// Looks at a file block by block from its end.
pub(super) struct Backwards<'a> {
    file: &'a File,
    /// The file's, as it was opened.
    length: u64,
    block: &'a mut [u8],
    /// The part of the file that the block holds.
    start: u64,
    end: u64,
    /// The file was found shorter than that: nothing is where it was.
    shrank: bool,
}

impl<'a> Backwards<'a> {
    pub(super) const fn new(file: &'a File, length: u64, block: &'a mut [u8]) -> Self {
        Self { file, length, block, start: length, end: length, shrank: false }
    }

    /// All that stands from `start` on, if the block still holds it: most turns fit into one, and need not be read again.
    pub(super) fn all_from(&self, start: u64) -> Option<&[u8]> {
        let whole = self.end == self.length && start >= self.start && !self.shrank;
        whole.then(|| &self.block[self.index(start)..self.index(self.end)])
    }

    /// Where in the block that stands.
    fn index(&self, at: u64) -> usize {
        usize::try_from(at - self.start).unwrap_or(usize::MAX)
    }

    /// Where the last newline before `before` stands; not looked for before `floor`, and in one block at a time.
    fn newline_before(&mut self, before: u64, floor: u64) -> io::Result<Newline> {
        if before <= self.start || before > self.end {
            if before <= floor {
                return Ok(Newline::Nowhere);
            }
            self.load(before)?;
        }
        let found = memchr::memrchr(b'\n', &self.block[..self.index(before)]);
        Ok(match found {
            Some(at) => Newline::At(self.start + at as u64),
            None if self.start <= floor => Newline::Nowhere,
            None => Newline::NotDownTo(self.start),
        })
    }

    /// Fills the block with what stands before `end`.
    fn load(&mut self, end: u64) -> io::Result<()> {
        let length = end.min(self.block.len() as u64);
        let mut filled = 0;
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        while filled < wanted {
            let n = read_at(self.file, &mut self.block[filled..wanted], end - length + filled as u64)?;
            if n == 0 {
                // The next reading begins afresh.
                self.shrank = true;
                self.block[filled..wanted].fill(0);
                break;
            }
            filled += n;
        }
        (self.start, self.end) = (end - length, end);
        Ok(())
    }

    /// Calls `look` with the bytes between, at most the first `most` of them.
    fn with_line<T>(&mut self, start: u64, end: u64, most: usize, look: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        if start >= self.start && end <= self.end {
            return Ok(look(&self.block[self.index(start)..self.index(end)]));
        }
        // It spans blocks. Whether it can be of interest shows in its first bytes.
        let mut line = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX).min(most)];
        let n = read_at(self.file, &mut line, start)?;
        line.truncate(n);
        Ok(look(&line))
    }
}
