//! How Codex writes a thread's log: one line `{timestamp, ordinal, type, payload}` -> one [`Event`].
//!
//! A turn begins with `task_started` and ends with `task_complete` or `turn_aborted`: nothing has to be guessed. A tool
//! is requested by one line and closed by another; nothing says when it really starts, nor that it waits for the user's
//! permission. A call that asks to leave the sandbox is the only one of which that can be supposed
//! ([`Body::ToolStart::asks_unseen`]).
//!
//! An unreadable line is [`Malformed`]; nothing panics.

mod payload;

use crate::tail::{LogFormat, has_line_with};
use payload::Payload;
use pilotlight_core::event::{Besides, Body, Event};
use pilotlight_core::scan::{Malformed, Scan, Text, keys};
use pilotlight_core::time::Time;

/// How Codex writes a thread's log. What runs in the background of a thread is a thread of its own, with its own log, so
/// reading one never has to go back beyond the last prompt.
pub const LOG_FORMAT: LogFormat = LogFormat { is_start, parse, parse_ends, is_fresh_prompt, sub_agents: None };

/// Whether a log that begins so is one of Codex's: no other's lines have a payload.
fn is_start(log: &[u8]) -> bool {
    has_line_with(log, &["timestamp", "type", "payload"], &[])
}

/// The longest line that begins a turn, in bytes: they have 600. In a longer one, so much shows whether it may be one.
const BEGINNING: usize = 4096;

/// Parses one line, without its line break.
///
/// # Errors
/// [`Malformed`] if the line is not an event.
pub fn parse(line: &[u8]) -> Result<Event<'_>, Malformed> {
    let mut fields = Fields::default();
    let mut scan = Scan::new(line.trim_ascii());
    fields.read(&mut scan)?;
    scan.end()?;
    fields.event()
}

/// Parses the first and last bytes of a line that is too long to hold in memory.
///
/// # Errors
/// As [`parse`].
pub fn parse_ends<'a>(head: &'a [u8], _tail: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let mut fields = Fields::default();
    // The head ends in the middle of a value. The fields before it are kept.
    let _ = fields.read(&mut Scan::new(head));
    fields.event()
}

/// Whether a line begins a turn, which closes whatever was open.
fn is_fresh_prompt(line: &[u8]) -> bool {
    let beginning = &line[..line.len().min(BEGINNING)];
    memchr::memmem::find(beginning, b"task_started").is_some()
        && matches!(parse(line), Ok(Event { body: Body::Prompt { .. }, .. }))
}

/// The prompt in this line, if it is the user's.
pub(super) fn prompt_of(line: &[u8]) -> Option<String> {
    memchr::memmem::find(line, b"\"UserMessage\"")?;
    let mut fields = Fields::default();
    let _ = fields.read(&mut Scan::new(line));
    Some(fields.payload.prompt()?.read(1000).into_owned())
}

/// Whether a line opens a turn, or closes it. `None` if it does neither.
pub(super) fn opens_turn(line: &[u8]) -> Option<bool> {
    let (mut kind, mut inner) = (None, None);
    keys(line, |key, scan| match key {
        b"type" => scan.text().map(|text| kind = text),
        b"payload" => scan.object_or_skip(|key, scan| match key {
            b"type" => scan.text().map(|text| inner = text),
            _ => scan.skip(),
        }),
        _ => scan.skip(),
    });
    match (kind?.0, inner?.0) {
        (b"event_msg", b"task_started") => Some(true),
        (b"event_msg", b"task_complete" | b"turn_aborted") => Some(false),
        _ => None,
    }
}

#[derive(Default)]
struct Fields<'a> {
    timestamp: Option<Text<'a>>,
    kind: Option<Text<'a>>,
    payload: Payload<'a>,
}

impl<'a> Fields<'a> {
    fn read(&mut self, scan: &mut Scan<'a>) -> Result<(), Malformed> {
        scan.object(|key, scan| {
            match key {
                b"timestamp" => self.timestamp = scan.text()?,
                b"type" => self.kind = scan.text()?,
                b"payload" => self.payload.read(scan)?,
                _ => scan.skip()?,
            }
            Ok(())
        })
    }

    fn event(self) -> Result<Event<'a>, Malformed> {
        let at = self.timestamp.and_then(|at| Time::parse(at.0)).ok_or(Malformed)?;
        let Text(line) = self.kind.ok_or(Malformed)?;
        let kind = self.payload.kind.map_or(line, |kind| kind.0);
        let body = self.payload.body(line)?;
        let besides = Besides {
            tokens: self.payload.tokens(),
            limit: self.payload.limit(),
            message: self.payload.message(line),
            ..Besides::NONE
        };
        // Nothing tells responses apart but the end of each.
        let round: &[u8] = if line == b"response_item" && self.payload.is_by_model() { b"response" } else { b"" };
        // Nothing else has an id that no other line has.
        let id = if let Body::Prompt { joins: false, .. } = body {
            self.payload.turn.map_or(&b""[..], |turn| turn.0)
        } else {
            b""
        };
        Ok(Event { kind, at: Some(at), id, parent: b"", round, sub_agent: None, body, besides })
    }
}

#[cfg(test)]
mod tests;
