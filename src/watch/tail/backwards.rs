//! A log read from its end: where to begin so that nothing that matters is missed.

use super::{Begun, LINE_END, LINE_MAX, read_at};
use crate::core::event;
use crate::core::time::Span;
use std::fs::File;
use std::io;

/// A log is read backwards at most this far for the start of its turn; beyond, the start counts as unknown.
const BACKWARDS_MAX: u64 = 64 * 1024 * 1024;

/// Where to begin reading so that the facts are those of the whole log: at the last prompt that closed whatever was open. Where
/// a sub-agent wrote before that, within the time for which it counts as working in the background, it is the last prompt
/// before all of that time: which of the sub-agents ended with their turns shows only where the turns are read whole.
pub(super) fn start_of_facts(back: &mut Backwards<'_>, background: Span) -> io::Result<(u64, Begun)> {
    let floor = back.length.saturating_sub(BACKWARDS_MAX);
    let mut prompt = None;
    let mut newest = None;
    let mut background = background;
    let mut has_agents = false;
    let Some(mut line_end) = back.newline_before(back.length, floor)? else {
        return Ok((floor, if floor > 0 { Begun::InsideLine } else { Begun::AtLine }));
    };
    loop {
        let line_start = match back.newline_before(line_end, floor)? {
            Some(newline) => newline + 1,
            None if floor > 0 => {
                let start = prompt.filter(|_| !has_agents).unwrap_or(line_end + 1);
                return Ok((start, Begun::AtLine));
            }
            None => 0,
        };
        let is_prompt = (prompt.is_none() || has_agents)
            && back.with_line(line_start, line_end, LINE_MAX, event::is_fresh_prompt)?;
        if is_prompt && prompt.is_none() {
            prompt = Some(line_start);
        }
        if newest.is_none() && back.with_line(line_start, line_end, LINE_END, event::is_shutdown)? {
            background = Span::ZERO;
        }
        let ends = line_start.max(line_end.saturating_sub(LINE_END as u64));
        if let Some((at, by_agent)) = back.with_line(ends, line_end, LINE_END, event::end_of)? {
            let age = *newest.get_or_insert(at) - at;
            has_agents |= prompt.is_some() && by_agent && age < background;
            if is_prompt && age >= background {
                (prompt, has_agents) = (Some(line_start), false);
            }
            if let Some(prompt) = prompt.filter(|_| age >= background && !has_agents) {
                return Ok((prompt, Begun::AtLine));
            }
        }
        if line_start == 0 {
            return Ok((0, Begun::AtLine));
        }
        line_end = line_start - 1;
    }
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

    /// Where the last newline before `before` stands; not looked for before `floor`.
    fn newline_before(&mut self, before: u64, floor: u64) -> io::Result<Option<u64>> {
        let mut before = before;
        loop {
            if before > self.start && before <= self.end {
                let held = &self.block[..self.index(before)];
                if let Some(at) = memchr::memrchr(b'\n', held) {
                    return Ok(Some(self.start + at as u64));
                }
                before = self.start;
            }
            if before <= floor {
                return Ok(None);
            }
            self.load(before)?;
        }
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
