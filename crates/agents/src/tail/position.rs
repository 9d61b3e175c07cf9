//! How far a log was read, and whether a log is still the one that was read: by its times, its length, and the last
//! bytes that were read.

use super::backwards::{REACH, Start};
use super::carry::Carry;
use super::file::read_at;
use super::pass::Pass;
use super::stamp::Stamp;
use pilotlight_core::event::Event;
use pilotlight_core::facts::Facts;
use pilotlight_core::scan::Malformed;
use pilotlight_core::time::Span;
use pilotlight_system::file_times::changed;
use pilotlight_system::identity::Identity;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

/// How many bytes before the current position are compared to detect a log rewritten in place.
const MARK: usize = 32;

/// The position in a log, and what identifies the log.
#[derive(Debug, Default)]
pub(super) struct Position {
    file: Option<Identity>,
    /// How many bytes were read, including the carry.
    pub(super) read: u64,
    pub(super) carry: Carry,
    /// Whether reading began inside a line, whose rest is then not parsed.
    pub(super) start: Start,
    /// The last [`MARK`] bytes that were read.
    mark: Vec<u8>,
    /// The end of the last complete line, and the bytes before it. If a part of the next line was read, `mark` alone
    /// may be too common to identify the log.
    line: Option<(u64, Vec<u8>)>,
    /// The file's times, taken before it was last read.
    pub(super) stamp: Option<Stamp>,
    /// How far the awake clock was ahead of the wall clock then.
    pub(super) lead: Option<Span>,
}

/// A log compared to the one that was read.
pub(super) enum Compared {
    /// The same, unchanged.
    Same,
    /// The same, with more at its end.
    Grown,
    /// The same, but grown by more than a new reader would read.
    FarAhead,
    /// Of the same length and end, but something before the end may have been overwritten.
    Rewritten,
    /// A different log.
    Other,
}

impl Position {
    /// A position in this file, of which nothing was read yet.
    pub(super) fn in_file(meta: &Metadata, stamp: Option<Stamp>, lead: Span) -> Self {
        Self { file: Some(Identity::of(meta)), stamp, lead: Some(lead), ..Self::default() }
    }

    /// Whether the log was read to its end and not written since, found without opening it: on Linux, opening a file is
    /// an event for whoever asks for such events, and a rescan would cause one for each session.
    pub(super) fn is_unchanged(&self, path: &Path) -> bool {
        let Some(stamp) = self.stamp.filter(|stamp| stamp.settled) else { return false };
        fs::symlink_metadata(path).is_ok_and(|meta| {
            let same = self.file == Some(Identity::of(&meta)) && meta.len() == self.read;
            same && meta.is_file() && meta.modified().is_ok_and(|at| (at, changed(&meta)) == stamp.times)
        })
    }

    /// Whether as much of the same file was read.
    pub(super) fn is_of_length(&self, other: &Self) -> bool {
        self.file.is_some() && (self.file, self.read) == (other.file, other.read)
    }

    /// Compares the log to what was last read.
    pub(super) fn compare(&self, file: &File, meta: &Metadata) -> io::Result<Compared> {
        if meta.len() < self.read || !self.is_in_file(file, meta)? {
            return Ok(Compared::Other);
        }
        if meta.len() - self.read > REACH {
            return Ok(Compared::FarAhead);
        }
        if meta.len() > self.read {
            return Ok(Compared::Grown);
        }
        let times = meta.modified().ok().map(|at| (at, changed(meta)));
        let same = self.stamp.is_some_and(|stamp| stamp.sure && times == Some(stamp.times));
        Ok(if same { Compared::Same } else { Compared::Rewritten })
    }

    /// Whether this is the file that was read, with the last bytes that were read still in place: a log may be rewritten
    /// in place and become longer.
    pub(super) fn is_in_file(&self, file: &File, meta: &Metadata) -> io::Result<bool> {
        if self.file != Some(Identity::of(meta)) {
            return Ok(false);
        }
        if let Some((end, mark)) = self.line.as_ref().filter(|(end, _)| *end < self.read)
            && !matches_at(file, mark, *end)?
        {
            return Ok(false);
        }
        matches_at(file, &self.mark, self.read)
    }

    /// Folds what follows, up to `length`; later writes cause file events of their own. Returns whether it got there
    /// before the deadline.
    pub(super) fn read_on(
        &mut self,
        file: &File,
        length: u64,
        facts: &mut Facts,
        pass: Pass<'_>,
        buffer: &mut [u8],
    ) -> io::Result<bool> {
        while self.read < length {
            let most = usize::try_from(length - self.read).unwrap_or(usize::MAX).min(buffer.len());
            let n = read_at(file, &mut buffer[..most], self.read)?;
            if n == 0 {
                return Ok(true);
            }
            self.fold(&buffer[..n], facts, pass);
            if self.read < length && pass.is_over() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Folds the block at the current position.
    pub(super) fn fold(&mut self, block: &[u8], facts: &mut Facts, pass: Pass<'_>) {
        if let Some(end) = memchr::memrchr(b'\n', block) {
            let line = &block[..=end];
            let mut mark = self.mark.clone();
            mark.extend_from_slice(&line[line.len().saturating_sub(MARK)..]);
            mark.drain(..mark.len().saturating_sub(MARK));
            self.line = Some((self.read + line.len() as u64, mark));
        }
        self.read += block.len() as u64;
        self.mark.extend_from_slice(&block[block.len().saturating_sub(MARK)..]);
        self.mark.drain(..self.mark.len().saturating_sub(MARK));
        let mut rest = block;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.line(&rest[..end], facts, pass);
            rest = &rest[end + 1..];
            // A log may be millions of line breaks.
            let breaks = rest.iter().take_while(|byte| **byte == b'\n').count();
            rest = &rest[breaks..];
        }
        self.carry.push(rest);
    }

    /// Folds a complete line. Its beginning may be in the carry.
    fn line(&mut self, end: &[u8], facts: &mut Facts, pass: Pass<'_>) {
        if std::mem::take(&mut self.start) == Start::InsideLine {
            facts.skip();
            return self.carry.clear();
        }
        if self.carry.is_empty() {
            return fold((pass.log_format.parse)(end), end, facts, pass);
        }
        self.carry.push(end);
        if self.carry.end.is_empty() {
            fold((pass.log_format.parse)(&self.carry.head), &self.carry.head, facts, pass);
        } else {
            fold((pass.log_format.parse_ends)(&self.carry.head, &self.carry.end), &self.carry.head, facts, pass);
        }
        self.carry.clear();
    }
}

fn fold(event: Result<Event<'_>, Malformed>, line: &[u8], facts: &mut Facts, pass: Pass<'_>) {
    match event {
        Ok(event) => facts.fold(&event, pass.moment_of(&event), pass.context.limits),
        Err(_) if line.trim_ascii().is_empty() => {}
        Err(_) => facts.skip(),
    }
}

/// Whether the file has these bytes right before `end`.
fn matches_at(file: &File, mark: &[u8], end: u64) -> io::Result<bool> {
    let mut current = [0; MARK];
    let current = &mut current[..mark.len()];
    let n = read_at(file, current, end.saturating_sub(mark.len() as u64))?;
    Ok(n == mark.len() && *current == *mark)
}
