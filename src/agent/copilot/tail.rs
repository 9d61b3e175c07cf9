//! One growing log: read backwards once, as far as the facts need, then forwards as it grows.
//!
//! A file event is only a hint: every reading looks at the file anew, and notices by itself whether it grew, was cut, was
//! rewritten, was replaced by another, or is gone. What was read before is never read again, but a log that is not the one it
//! was is read anew, so that no status outlives what it rested on.
//!
//! However long a log is, and however fast it grows, a reading can be broken off at a given time and be continued later: see
//! [`Look::until`]. While a log is read anew, the facts of before stand; they are replaced when the new ones are whole.

mod anew;
mod backwards;
mod stamp;

use crate::core::event;
use crate::core::limits::Limits;
use crate::core::scan::Malformed;
use crate::core::session::Facts;
use crate::core::time::{Moment, Span, Time};
use crate::system::identity::Identity;
use anew::Anew;
use stamp::{Compared, Stamp};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How much is read at once: of logs made of recorded turns, 99 in 100 last turns fit into it.
const BLOCK: usize = 64 * 1024;
/// Of a line longer than this only the ends are kept (the longest seen in a real log was 430 KB).
const LINE_MAX: usize = 1024 * 1024;
/// What is kept of the end of such a line: enough for the fields after `data`.
const LINE_END: usize = 1024;
/// The bytes before the point reached that must still be the same, or the log was rewritten in place.
const MARK: usize = 32;
/// A log is read backwards at most this far for the start of its turn; beyond, the start counts as unknown. One that has grown
/// by more since it was last read is read anew from its end, because that is all that a new reader would know of it.
const REACH: u64 = 64 * 1024 * 1024;

/// On some file systems a file's time is told in steps of two seconds: what was written just now may be written again without a
/// trace.
const SETTLES: Duration = Duration::from_secs(2);
/// The same where times have fractions of a millisecond: two ticks of a slow kernel's clock.
const TICKS: Duration = Duration::from_millis(20);
/// How much newer than its file an event may seem. Beyond, the clock that it was dated by was wrong.
const SLACK: Span = Span::seconds(2);

/// What a reading needs to know beside the file.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Both clocks, now: their difference turns an event's own time into awake time.
    pub now: Moment,
    /// The limits that the fold closes turns by.
    pub limits: &'a Limits,
    /// When it breaks off. Something is read each time, at most one block too late.
    pub until: Option<Instant>,
}

impl Look<'_> {
    /// How far the awake clock is ahead of the one on the wall.
    fn lead(&self) -> Span {
        self.now.awake - self.now.wall
    }
}

/// One pass over a log that is open: what it knows beside the file's bytes.
#[derive(Clone, Copy)]
struct Pass<'a> {
    look: Look<'a>,
    /// When the file was last written, by the wall clock.
    written: Time,
    /// How far the awake clock was ahead of the one on the wall when the events happened.
    lead: Span,
}

impl Pass<'_> {
    /// When an event happened that is dated like this: it is no newer than the file it stands in.
    fn dated(&self, wall: Time) -> Time {
        if wall > self.written + SLACK { self.written } else { wall }
    }

    fn moment(&self, wall: Time) -> Moment {
        let wall = self.dated(wall);
        // An event from the future is one of now: a clock that was wrong must not keep a session from growing silent.
        Moment { wall, awake: (wall + self.lead).min(self.look.now.awake) }
    }

    /// Half a line was progress when it was written.
    fn grew(&self, facts: &mut Facts) {
        facts.grew(self.moment(self.written.min(self.look.now.wall)), self.look.limits);
    }

    fn is_over(&self) -> bool {
        self.look.until.is_some_and(|until| until <= Instant::now())
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
    /// Time was over before the end was reached: to be continued.
    More,
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
    /// The last whole line's end, and the bytes before it, where a part of the next was read: that alone may look like any other.
    line: Option<(u64, Vec<u8>)>,
    /// The file's times, taken before it was last read.
    stamp: Option<Stamp>,
    /// How far the awake clock was ahead of the one on the wall then.
    lead: Option<Span>,
    /// The log is not the one it was, and is being read anew.
    anew: Option<Box<Anew>>,
}

/// So much room for the beginning of a line is kept for the next.
const CARRIED: usize = 512;

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
        // A long line's memory is given back: hundreds of logs may be followed.
        if self.head.capacity() > CARRIED {
            *self = Self::default();
        }
        self.head.clear();
        self.end.clear();
    }
}

impl Tail {
    /// Reads what is new and folds it into `facts`; begins anew where the log is not the one it was. What is broken off, with
    /// [`Found::More`], goes on from there the next time.
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
        if matches!(result, Ok(Found::Absent) | Err(_)) {
            *self = Self::default();
            *facts = Facts::default();
        }
        result
    }

    /// Whether nothing of the log could be read as lines: the end of it is one, and longer than anything that would be read.
    pub fn is_inside_line(&self) -> bool {
        self.begun == Begun::InsideLine
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
        let (file, meta) = match open(path) {
            Ok(opened) => opened,
            Err(LogError::Io(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(error) => return Err(error),
        };
        let mut pass = Pass { look, written: written(&meta), lead: look.lead() };
        buffer.resize(BLOCK, 0);
        let mut begun = None;
        if let Some(anew) = self.anew.take()
            && anew.is_of(&file, &meta)?
        {
            begun = Some(anew);
        }
        let mut anew = match begun {
            Some(begun) => begun,
            None => {
                let stamp = Stamp::of(&meta, look.now.wall);
                match self.compare(&file, &meta)? {
                    Compared::Same => {
                        self.stamp = stamp;
                        return Ok(Found::Unchanged);
                    }
                    Compared::Grown => {
                        (self.stamp, self.lead) = (stamp, Some(pass.lead));
                        let whole = self.read_on(&file, meta.len(), facts, pass, buffer)?;
                        if !self.carry.is_empty() {
                            pass.grew(facts);
                        }
                        return Ok(if whole { Found::Grown } else { Found::More });
                    }
                    // What stands there happened when it was first read, however the clocks were set since.
                    Compared::Rewritten => pass.lead = self.lead.unwrap_or(pass.lead),
                    Compared::FarAhead => pass.grew(facts),
                    Compared::Other => {}
                }
                Box::new(Anew::new(&meta, stamp, pass))
            }
        };
        pass.lead = anew.lead;
        if !anew.read_on(&file, pass, buffer)? {
            self.anew = Some(anew);
            return Ok(Found::More);
        }
        let has_grown = anew.has_grown(&meta);
        (*self, *facts) = anew.done();
        Ok(if has_grown { Found::More } else { Found::Grown })
    }

    /// Folds what follows, up to `length`: what is written from now on comes with an event of its own. Whether that was all,
    /// and not only all that there was time for.
    fn read_on(
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

    /// Folds what stands at the point reached.
    fn fold(&mut self, block: &[u8], facts: &mut Facts, pass: Pass<'_>) {
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
        }
        self.carry.push(rest);
    }

    /// One complete line, of which the carry holds the beginning.
    fn line(&mut self, end: &[u8], facts: &mut Facts, pass: Pass<'_>) {
        if std::mem::take(&mut self.begun) == Begun::InsideLine {
            facts.skip();
            return self.carry.clear();
        }
        if self.carry.is_empty() {
            return fold(event::parse(end), end, facts, pass);
        }
        self.carry.push(end);
        if self.carry.end.is_empty() {
            fold(event::parse(&self.carry.head), &self.carry.head, facts, pass);
        } else {
            fold(event::parse_ends(&self.carry.head, &self.carry.end), &self.carry.head, facts, pass);
        }
        self.carry.clear();
    }
}

fn fold(event: Result<event::Event<'_>, Malformed>, line: &[u8], facts: &mut Facts, pass: Pass<'_>) {
    match event {
        Ok(event) => facts.fold(&event, pass.moment(event.at), pass.look.limits),
        Err(_) if line.trim_ascii().is_empty() => {}
        Err(_) => facts.skip(),
    }
}

/// The length of a log that can be read, in bytes, without reading it.
///
/// # Errors
/// Where it is no plain file, which is not opened, or cannot be read.
pub(crate) fn length(path: &Path) -> Result<u64, LogError> {
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

/// When a file was last written, by the wall clock.
fn written(meta: &Metadata) -> Time {
    let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    // Where that is not told, its events are believed.
    meta.modified().map_or(Time(i64::MAX), |at| match at.duration_since(UNIX_EPOCH) {
        Ok(age) => Time(millis(age)),
        Err(before) => Time(-millis(before.duration())),
    })
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
