//! A line of the log, as it is written and as it is read again.
//!
//! A message is a literal of our own. A value in it is private unless its type is [`Public`]: a count, a name from our
//! code, the kind of an error. The compiler refuses any other value until it is marked by [`private`], and such a value
//! is enclosed in `«` and `»`, escaped, so that nothing in it can end the enclosure or the line. [`Line::parse`] finds
//! the same pieces again, and a bug report shows the public ones only.

use pilotlight_core::text::is_invisible;
use pilotlight_core::time::{Span, Time};
use pilotlight_core::words::reason::Because;
use std::error::Error;
use std::fmt::{self, Display, Formatter, Write};
use std::io;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The target of our own events. Events of libraries have others.
pub(super) const TARGET: &str = "pilotlight";

const OPENS: char = '«';
const CLOSES: char = '»';
const LEVELS: [(&str, Level); 5] = [
    ("ERROR", Level::ERROR),
    ("WARN", Level::WARN),
    ("INFO", Level::INFO),
    ("DEBUG", Level::DEBUG),
    ("TRACE", Level::TRACE),
];

/// What is harmless in anybody's hands, whatever its value.
///
/// Do not implement it for a type whose values come from a session, a file, another process or the user. Nor for `u32`
/// and `u16`: an id of a process or a user is one, and so is a port.
pub trait Public {
    /// Writes the value as it is in the log.
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result;
}

/// A text in our code.
impl Public for &'static str {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Public for bool {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt(f)
    }
}

/// A count.
impl Public for usize {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt(f)
    }
}

impl Public for Span {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt(f)
    }
}

/// A reason, by name.
impl Public for Because {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named())
    }
}

/// A value that bug reports leave out; see [`private`].
#[derive(Debug)]
pub struct Private<'a, T: ?Sized>(&'a T);

/// Marks a value as private.
pub fn private<T: Display + ?Sized>(value: &T) -> Private<'_, T> {
    Private(value)
}

impl<T: Display + ?Sized> Public for Private<'_, T> {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char(OPENS)?;
        write!(Escaping(f), "{}", self.0)?;
        f.write_char(CLOSES)
    }
}

/// An error: its words as a private value, and the kind that the system gave it, if any; see [`cause`].
#[derive(Debug)]
pub struct Cause<'a>(&'a (dyn Error + 'static));

/// An error with all that caused it.
pub fn cause<'a>(error: &'a (dyn Error + 'static)) -> Cause<'a> {
    Cause(error)
}

impl<'a> Cause<'a> {
    fn chain(&self) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
        std::iter::successors(Some(self.0), |error| (*error).source())
    }
}

impl Public for Cause<'_> {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.chain().map(ToString::to_string).collect();
        private(&words.join(": ")).write(f)?;
        match self.chain().find_map(|error| error.downcast_ref::<io::Error>()) {
            Some(error) => write!(f, " ({:?})", error.kind()),
            None => Ok(()),
        }
    }
}

/// Keeps a value within its line and its marks.
struct Escaping<'a, 'b>(&'a mut Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            OPENS | CLOSES => write!(self.0, "{}", c.escape_unicode()),
            '\u{2028}' | '\u{2029}' => write!(self.0, "{}", c.escape_unicode()),
            c if c.is_control() || is_invisible(c) => write!(self.0, "{}", c.escape_default()),
            c => self.0.write_char(c),
        })
    }
}

/// A value in a message. For the macros.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "exists only while a line is written")]
pub struct Inserted<'a>(pub &'a dyn Public);

impl Display for Inserted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}

/// Whether a text has nothing but what stands outside the marks: printable ASCII characters. For the macros.
#[doc(hidden)]
pub const fn is_plain(text: &str) -> bool {
    let (bytes, mut at) = (text.as_bytes(), 0);
    while at < bytes.len() {
        if !matches!(bytes[at], b' '..=b'~') {
            return false;
        }
        at += 1;
    }
    true
}

/// How a line is written: `2026-11-20T18:07:25.003Z  WARN: the menu cannot be shown: «why»`.
///
/// The colon after the level says that the values are marked. Lines of versions that marked none have no colon.
pub(super) struct Format {
    /// What tells the time. Standard error shows none, and no marks: it is not read again, and whoever reads it knows
    /// what is theirs.
    pub(super) time: Option<fn() -> Time>,
}

impl<S, N> FormatEvent<S, N> for Format
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (event.metadata().level().as_str(), event.metadata().target());
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        if target != TARGET {
            text = Inserted(&private(&format_args!("{target}: {text}"))).to_string();
        }
        match self.time {
            Some(time) => writeln!(writer, "{} {level:>5}: {text}", time()),
            None => writeln!(writer, "{level}: {}", text.replace([OPENS, CLOSES], "")),
        }
    }
}

/// A piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// What is ours, and harmless.
    Public(&'a str),
    /// A private value, without its marks.
    Private(&'a str),
}

impl<'a> Piece<'a> {
    /// Its text.
    pub fn text(&self) -> &'a str {
        match self {
            Self::Public(text) | Self::Private(text) => text,
        }
    }
}

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// When it was written.
    pub at: Time,
    /// Its level.
    pub level: &'static str,
    /// Its pieces, in order.
    pub pieces: Vec<Piece<'a>>,
}

impl<'a> Line<'a> {
    /// Parses a line of the file. `None` if anything about it is not as we write it: then nobody knows what in it is
    /// private.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (at, rest) = line.split_once(' ')?;
        let at = Time::parse(at.as_bytes())?;
        let (level, mut rest) = rest.split_once(": ")?;
        let (level, _) = *LEVELS.iter().find(|(name, _)| *name == level.trim_start())?;
        let mut pieces = Vec::new();
        while let Some((public, after)) = rest.split_once(OPENS) {
            let (private, after) = after.split_once(CLOSES).filter(|(private, _)| !private.contains(OPENS))?;
            pieces.extend([Piece::Public(public), Piece::Private(private)]);
            rest = after;
        }
        pieces.push(Piece::Public(rest));
        let is_ours = |piece: &Piece<'_>| matches!(piece, Piece::Private(_)) || is_plain(piece.text());
        pieces.iter().all(is_ours).then_some(Self { at, level, pieces })
    }
}
