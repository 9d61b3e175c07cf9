//! Searches a log from its end for the point where reading must begin so that no relevant event is missed.

use super::carry::{LINE_END, LINE_MAX};
use super::file::read_at;
use super::pass::Pass;
use pilotlight_core::time::{Span, Time};
use std::fs::File;
use std::io;

/// How far back the start of a turn is searched for, in bytes; further back it counts as unknown. A log that has grown
/// by more since it was last read is rebuilt from its end, because a new reader would not know more of it.
pub(super) const REACH: u64 = 64 * 1024 * 1024;

/// Where reading begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Start {
    #[default]
    AtLine,
    InsideLine,
}

/// A search for the point from which the log must be read to get the same facts as from the whole log: the last prompt
/// that closed whatever was open. If a sub-agent wrote before that prompt, within the time for which it counts as
/// working in the background, it is the last prompt before all of that time: only turns that are read whole show which
/// sub-agents ended with them.
#[derive(Debug)]
pub(super) struct Search {
    /// The search goes no further back than this.
    floor: u64,
    background: Span,
    prompt: Option<u64>,
    newest: Option<Time>,
    has_sub_agents: bool,
    /// The end of the line whose start is searched for; `None` while the end of the last complete line is searched for.
    line_end: Option<u64>,
    /// Newlines are searched for before this position; later ones have been found.
    before: u64,
}

impl Search {
    pub(super) const fn new(length: u64, background: Span) -> Self {
        let floor = length.saturating_sub(REACH);
        Self { floor, background, prompt: None, newest: None, has_sub_agents: false, line_end: None, before: length }
    }

    /// Continues the search. `None` where the deadline passed.
    pub(super) fn advance(&mut self, back: &mut Backwards<'_>, pass: Pass<'_>) -> io::Result<Option<(u64, Start)>> {
        loop {
            let newline = match back.newline_before(self.before, self.floor)? {
                Newline::At(at) => Some(at),
                Newline::Nowhere => None,
                Newline::NotDownTo(start) => {
                    self.before = start;
                    if pass.is_over() {
                        return Ok(None);
                    }
                    continue;
                }
            };
            let Some(line_end) = self.line_end else {
                let Some(newline) = newline else {
                    return Ok(Some((self.floor, if self.floor > 0 { Start::InsideLine } else { Start::AtLine })));
                };
                (self.line_end, self.before) = (Some(newline), newline);
                continue;
            };
            let line_start = match newline {
                Some(newline) => newline + 1,
                None if self.floor > 0 => {
                    let start = self.prompt.filter(|_| !self.has_sub_agents).unwrap_or(line_end + 1);
                    return Ok(Some((start, Start::AtLine)));
                }
                None => 0,
            };
            if let Some(start) = self.inspect(back, line_start, line_end, pass)? {
                return Ok(Some((start, Start::AtLine)));
            }
            if line_start == 0 {
                return Ok(Some((0, Start::AtLine)));
            }
            (self.line_end, self.before) = (Some(line_start - 1), line_start - 1);
        }
    }

    /// Inspects a line. Returns where to begin, if that is then known.
    fn inspect(
        &mut self,
        back: &mut Backwards<'_>,
        line_start: u64,
        line_end: u64,
        pass: Pass<'_>,
    ) -> io::Result<Option<u64>> {
        let is_prompt = (self.prompt.is_none() || self.has_sub_agents)
            && back.with_line(line_start, line_end, LINE_MAX, pass.log_format.is_fresh_prompt)?;
        if is_prompt && self.prompt.is_none() {
            self.prompt = Some(line_start);
        }
        let Some(sub_agents) = pass.log_format.sub_agents else { return Ok(self.prompt) };
        if self.newest.is_none() && back.with_line(line_start, line_end, LINE_END, sub_agents.is_shutdown)? {
            self.background = Span::ZERO;
        }
        let ends = line_start.max(line_end.saturating_sub(LINE_END as u64));
        let Some((at, by_sub_agent)) = back.with_line(ends, line_end, LINE_END, sub_agents.end_of)? else {
            return Ok(None);
        };
        let at = pass.dated(at);
        let age = *self.newest.get_or_insert(at) - at;
        self.has_sub_agents |= self.prompt.is_some() && by_sub_agent && age < self.background;
        if is_prompt && age >= self.background {
            (self.prompt, self.has_sub_agents) = (Some(line_start), false);
        }
        Ok(self.prompt.filter(|_| age >= self.background && !self.has_sub_agents))
    }
}

/// The result of a search for a newline.
enum Newline {
    At(u64),
    /// There is none from here up to where the search began.
    NotDownTo(u64),
    /// There is none down to the floor.
    Nowhere,
}

/// Reads a file block by block from its end.
pub(super) struct Backwards<'a> {
    file: &'a File,
    /// The file's length when it was opened.
    length: u64,
    block: &'a mut [u8],
    /// The part of the file that the block holds.
    start: u64,
    end: u64,
    /// Whether the file has become shorter, so that the block's contents are not to be relied on.
    shrank: bool,
}

impl<'a> Backwards<'a> {
    pub(super) const fn new(file: &'a File, length: u64, block: &'a mut [u8]) -> Self {
        Self { file, length, block, start: length, end: length, shrank: false }
    }

    /// Everything from `start` on, if the block holds it.
    pub(super) fn all_from(&self, start: u64) -> Option<&[u8]> {
        let whole = self.end == self.length && start >= self.start && !self.shrank;
        whole.then(|| &self.block[self.index(start)..self.index(self.end)])
    }

    /// The index in the block of this position in the file.
    fn index(&self, at: u64) -> usize {
        usize::try_from(at - self.start).unwrap_or(usize::MAX)
    }

    /// Searches one block for the last newline before `before`, not going back further than `floor`.
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

    /// Fills the block with the bytes before `end`.
    fn load(&mut self, end: u64) -> io::Result<()> {
        let length = end.min(self.block.len() as u64);
        let mut filled = 0;
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        while filled < wanted {
            let n = read_at(self.file, &mut self.block[filled..wanted], end - length + filled as u64)?;
            if n == 0 {
                // The next read starts over.
                self.shrank = true;
                self.block[filled..wanted].fill(0);
                break;
            }
            filled += n;
        }
        (self.start, self.end) = (end - length, end);
        Ok(())
    }

    /// Calls `inspect` with the line's bytes; if the line is not in one block, with the first `max` of them at most.
    fn with_line<T>(&mut self, start: u64, end: u64, max: usize, inspect: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        if start >= self.start && end <= self.end {
            return Ok(inspect(&self.block[self.index(start)..self.index(end)]));
        }
        // The line spans blocks. Its first bytes show whether it can be of interest.
        let mut line = vec![0; usize::try_from(end - start).unwrap_or(usize::MAX).min(max)];
        let n = read_at(self.file, &mut line, start)?;
        line.truncate(n);
        Ok(inspect(&line))
    }
}

#[cfg(test)]
mod tests {
    use crate::codex::log_format::LOG_FORMAT;
    use crate::tail::{ReadContext, Tail};
    use pilotlight_core::facts::Facts;
    use pilotlight_core::limits::Limits;
    use pilotlight_core::time::Moment;

    /// The times before a prompt matter for sub-agents alone. The clock may have been set back since.
    #[test]
    fn where_no_sub_agents_write_a_log_is_read_from_its_last_prompt_whatever_the_times_are() {
        let line = |at: &str, kind: &str| {
            format!(r#"{{"timestamp":"2026-01-01T{at}:00.000Z","type":"event_msg","payload":{{"type":"{kind}"}}}}"#)
        };
        let lines = [("12:00", "task_started"), ("12:01", "task_started"), ("10:00", "token_count")];
        let log = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(log.path(), lines.map(|(at, kind)| line(at, kind) + "\n").concat()).unwrap();
        let (limits, mut facts) = (Limits::default(), Facts::default());
        let context = ReadContext { now: Moment::default(), limits: &limits, until: None };
        Tail::default().read(&LOG_FORMAT, log.path(), &mut facts, context, &mut Vec::new()).unwrap();
        assert_eq!((facts.events, facts.skipped), (2, 0));
    }
}
