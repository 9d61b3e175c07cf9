//! One growing log: read backwards once, as far as the facts need, then forwards as it grows.
//!
//! A file event is only a hint: every reading looks at the file anew, and notices by itself whether it grew, was cut, was
//! replaced by another, or is gone. What was read before is never read again, but a log that is not the one it was is read
//! afresh, so that no status outlives what it rested on.

mod backwards;

use crate::core::event;
use crate::core::limits::Limits;
use crate::core::session::Facts;
use crate::core::time::{Moment, Time};
use backwards::{Backwards, start_of_facts};
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How much is read at once: of logs made of recorded turns, 99 in 100 last turns fit into it.
const BLOCK: usize = 64 * 1024;
/// Of a line longer than this only the ends are kept (the longest seen in a real log was 430 KB).
const LINE_MAX: usize = 1024 * 1024;
/// What is kept of the end of such a line: enough for the fields after `data`.
const LINE_END: usize = 1024;
/// The bytes before the point reached that must still be the same, or the log was rewritten in place.
const MARK: usize = 32;

/// File times are coarse: what was written just now may be written again without a trace.
const SETTLES: Duration = Duration::from_secs(2);

/// What a reading needs to know beside the file.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Both clocks, now: their difference turns an event's own time into awake time.
    pub now: Moment,
    /// The limits that the fold closes turns by.
    pub limits: &'a Limits,
}

impl Look<'_> {
    fn moment(&self, wall: Time) -> Moment {
        // An event from the future is one of now: a clock that was wrong must not keep a session from growing silent.
        Moment { wall, awake: (wall + (self.now.awake - self.now.wall)).min(self.now.awake) }
    }

    /// Whether a file of that time shows its next change in its time.
    fn is_long_past(&self, written: SystemTime) -> bool {
        let now = u64::try_from(self.now.wall.0).unwrap_or(0);
        written.duration_since(UNIX_EPOCH).is_ok_and(|age| age + SETTLES < Duration::from_millis(now))
    }
}

/// What a reading found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is no log.
    Absent,
    /// Nothing new.
    Unchanged,
    /// Something new was folded in.
    Grown,
}

/// Why a log cannot be read, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It is not a file, and is not opened.
    #[error("its log is {0}, not a file; it is left alone")]
    NotAFile(&'static str),
    /// The system refused.
    #[error("its log cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// A log, and how far it was read.
#[derive(Debug, Default)]
pub struct Tail {
    file: Option<Identity>,
    /// Bytes read, the carry included.
    read: u64,
    carry: Carry,
    /// Reading began inside a line: what comes of it is no line.
    begun: Begun,
    mark: Vec<u8>,
    /// When the log was last written, as of the last look into it; kept only where that was over for good.
    settled: Option<SystemTime>,
}

/// Where reading began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Begun {
    #[default]
    AtLine,
    InsideLine,
}

/// The beginning of a line whose end has not been written yet.
#[derive(Debug, Default)]
struct Carry {
    head: Vec<u8>,
    /// The last bytes of a line that is too long to be kept.
    end: Vec<u8>,
}

impl Carry {
    const fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = LINE_MAX.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        if !rest.is_empty() {
            self.end.extend_from_slice(&rest[rest.len().saturating_sub(LINE_END)..]);
            self.end.drain(..self.end.len().saturating_sub(LINE_END));
        }
    }

    fn clear(&mut self) {
        // A long line's memory is given back.
        if self.head.capacity() > BLOCK {
            *self = Self::default();
        }
        self.head.clear();
        self.end.clear();
    }
}

/// What tells a file from another of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    fn of(meta: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(meta.dev(), meta.ino())
    }

    /// Without an inode, the time of creation tells.
    #[cfg(not(unix))]
    fn of(meta: &Metadata) -> Self {
        let created = meta.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Self(created.map_or(0, |age| age.as_secs()), created.map_or(0, |age| u64::from(age.subsec_nanos())))
    }
}

impl Tail {
    /// Reads what is new and folds it into `facts`; begins afresh where the log is not the one it was.
    ///
    /// # Errors
    /// Where there is a log that cannot be read. `facts` are then empty: nothing that was known of it still holds.
    pub fn read(
        &mut self,
        path: &Path,
        facts: &mut Facts,
        look: Look<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Found, LogError> {
        let result = self.try_read(path, facts, look, buffer);
        if !matches!(result, Ok(Found::Unchanged | Found::Grown)) {
            *self = Self::default();
            *facts = Facts::default();
        }
        result
    }

    fn try_read(
        &mut self,
        path: &Path,
        facts: &mut Facts,
        look: Look<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Found, LogError> {
        if self.is_as_it_was(path) {
            return Ok(Found::Unchanged);
        }
        self.settled = None;
        let (file, meta) = match open(path) {
            Ok(opened) => opened,
            Err(LogError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(error) => return Err(error),
        };
        let identity = Identity::of(&meta);
        let settled = meta.modified().ok().filter(|at| look.is_long_past(*at));
        if self.file != Some(identity) || meta.len() < self.read || !self.mark_stands(&file)? {
            *self = Self { file: Some(identity), ..Self::default() };
            *facts = Facts::default();
            buffer.resize(BLOCK, 0);
            let mut back = Backwards::new(&file, meta.len(), buffer);
            (self.read, self.begun) = start_of_facts(&mut back, look.limits.background_agent)?;
            match back.all_from(self.read) {
                Some(held) => self.fold(held, facts, look),
                None => self.read_on(&file, meta.len(), facts, look, buffer)?,
            }
            // Half a line was progress when it was written.
            if let (false, Ok(written)) = (self.carry.is_empty(), meta.modified()) {
                let age =
                    written.duration_since(UNIX_EPOCH).map_or(0, |age| i64::try_from(age.as_millis()).unwrap_or(0));
                facts.grew(look.moment(Time(age).min(look.now.wall)), look.limits);
            }
            self.settled = settled;
            return Ok(Found::Grown);
        }
        if meta.len() == self.read {
            self.settled = settled;
            return Ok(Found::Unchanged);
        }
        buffer.resize(BLOCK, 0);
        self.read_on(&file, meta.len(), facts, look, buffer)?;
        if !self.carry.is_empty() {
            facts.grew(look.now, look.limits);
        }
        Ok(Found::Grown)
    }

    /// Whether the log is the one that was read to its end, and was not written since. On Linux every opening is a file
    /// event, which would wake us again for each session whenever everything is looked at.
    fn is_as_it_was(&self, path: &Path) -> bool {
        let Some(settled) = self.settled.filter(|_| cfg!(target_os = "linux")) else { return false };
        fs::symlink_metadata(path).is_ok_and(|meta| {
            let same = self.file == Some(Identity::of(&meta)) && meta.len() == self.read;
            same && meta.is_file() && meta.modified().is_ok_and(|at| at == settled)
        })
    }

    /// Whether what was read last still stands where it stood: a log may be rewritten in place, and be longer than it was.
    fn mark_stands(&self, file: &File) -> io::Result<bool> {
        let mut there = [0; MARK];
        let there = &mut there[..self.mark.len()];
        let n = read_at(file, there, self.read.saturating_sub(self.mark.len() as u64))?;
        Ok(n == self.mark.len() && *there == *self.mark)
    }

    /// Folds what follows; `length` is the log's as it was opened.
    fn read_on(
        &mut self,
        file: &File,
        length: u64,
        facts: &mut Facts,
        look: Look<'_>,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        loop {
            let n = read_at(file, buffer, self.read)?;
            if n == 0 {
                return Ok(());
            }
            self.fold(&buffer[..n], facts, look);
            // As long as it was when it was opened, and no longer: what is written from now on comes with an event of its own.
            if n < buffer.len() && self.read >= length {
                return Ok(());
            }
        }
    }

    /// Folds what stands at the point reached.
    fn fold(&mut self, block: &[u8], facts: &mut Facts, look: Look<'_>) {
        self.read += block.len() as u64;
        self.mark.extend_from_slice(&block[block.len().saturating_sub(MARK)..]);
        self.mark.drain(..self.mark.len().saturating_sub(MARK));
        let mut rest = block;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.line(&rest[..end], facts, look);
            rest = &rest[end + 1..];
        }
        self.carry.push(rest);
    }

    /// One complete line, of which the carry holds the beginning.
    fn line(&mut self, end: &[u8], facts: &mut Facts, look: Look<'_>) {
        if std::mem::take(&mut self.begun) == Begun::InsideLine {
            facts.skip();
            return self.carry.clear();
        }
        if self.carry.is_empty() {
            return fold(event::parse(end), end, facts, look);
        }
        self.carry.push(end);
        if self.carry.end.is_empty() {
            fold(event::parse(&self.carry.head), &self.carry.head, facts, look);
        } else {
            fold(event::parse_ends(&self.carry.head, &self.carry.end), &self.carry.head, facts, look);
        }
        self.carry.clear();
    }
}

fn fold(event: Result<event::Event<'_>, crate::core::scan::Malformed>, line: &[u8], facts: &mut Facts, look: Look<'_>) {
    match event {
        Ok(event) => facts.fold(&event, look.moment(event.at), look.limits),
        Err(_) if line.trim_ascii().is_empty() => {}
        Err(_) => facts.skip(),
    }
}

/// The length of a log that can be read, in bytes, without reading it.
///
/// # Errors
/// Where it is no plain file, which is not opened, or cannot be read.
pub fn length(path: &Path) -> Result<u64, LogError> {
    open(path).map(|(_, meta)| meta.len())
}

/// Opens a log that is a file; never follows a link, never blocks on a pipe.
fn open(path: &Path) -> Result<(File, Metadata), LogError> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = match options.open(path) {
        Ok(file) => file,
        Err(_) if path.is_symlink() => return Err(LogError::NotAFile("a symbolic link")),
        Err(_) if path.is_dir() => return Err(LogError::NotAFile("a folder")),
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    match meta.file_type() {
        kind if kind.is_file() => Ok((file, meta)),
        kind if kind.is_dir() => Err(LogError::NotAFile("a folder")),
        kind if kind.is_symlink() => Err(LogError::NotAFile("a symbolic link")),
        _ => Err(LogError::NotAFile("a pipe or a device")),
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    retry(|| file.read_at(buffer, at))
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::windows::fs::FileExt;
    retry(|| file.seek_read(buffer, at))
}

fn retry(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
