//! How Claude Code writes its log: one line -> one [`Event`].
//!
//! A line has its fields in any order, and is spelled with blanks or without. Most bytes are in lines that say nothing of
//! a turn (`api-request-shape`, `attachment`) and in results of tools: of these only what stands before their text, and
//! after it, is looked at. An unreadable line is [`Malformed`]; nothing panics.

mod line;

use crate::tail::{LogFormat, has_line_with};
use line::Line;
use pilotlight_core::event::{Besides, Body, Event};
use pilotlight_core::scan::{LastMembers, Malformed, Scan, Text};
use pilotlight_core::time::Time;

/// How Claude Code writes its log.
pub const LOG_FORMAT: LogFormat = LogFormat { is_start, parse, parse_ends, is_fresh_prompt, sub_agents: None };

/// The types of lines that say nothing of a turn and may be long. Each begins with its type.
const SKIPPED: [&[u8]; 4] =
    [b"api-request-shape", b"api-request-blob", b"file-history-snapshot", b"file-history-delta"];
const TYPE_PREFIX: &[u8] = b"{\"type\":\"";

/// Whether a log that begins so is Claude Code's: one of its first lines names the session as only Claude Code does.
fn is_start(log: &[u8]) -> bool {
    has_line_with(log, &["sessionId", "type"], &["data"])
}

/// Parses one line, without its line break.
///
/// # Errors
/// [`Malformed`] if the line is no JSON object with a type, or without a field that its type requires.
pub fn parse(text: &[u8]) -> Result<Event<'_>, Malformed> {
    let text = text.trim_ascii();
    if let Some(kind) = SKIPPED.into_iter().find(|kind| starts_with_type(text, kind)) {
        return Ok(aside(kind));
    }
    let mut line = Line::default();
    let mut scan = Scan::new(text);
    line.read(&mut scan)?;
    scan.end()?;
    if let Some(kind) = line.kind.and_then(|kind| SKIPPED.into_iter().find(|skipped| *skipped == kind.0)) {
        return Ok(aside(kind));
    }
    line.event()
}

/// Parses the first and last bytes of a line that is too long to hold in memory.
///
/// # Errors
/// As [`parse`].
pub fn parse_ends<'a>(head: &'a [u8], tail: &'a [u8]) -> Result<Event<'a>, Malformed> {
    if let Some(kind) = SKIPPED.into_iter().find(|kind| starts_with_type(head, kind)) {
        return Ok(aside(kind));
    }
    let mut line = Line::default();
    // The head ends in the middle of a value. What stands before it is kept.
    let _ = line.read(&mut Scan::new(head));
    for (name, value) in LastMembers::of(tail).into_iter().flatten() {
        match name {
            b"timestamp" => line.at = line.at.or_else(|| Time::parse(value?)),
            b"type" => line.kind = line.kind.or(value.map(Text)),
            _ => {}
        }
    }
    if line.kind.is_none() {
        line.kind = Some(Text(b"attachment"));
    }
    let event = line.event()?;
    let message = (event.kind == b"assistant").then(|| Scan::cut_text(head, b"text")).flatten();
    Ok(Event { besides: Besides { message: event.besides.message.or(message), ..event.besides }, ..event })
}

/// Whether a line is a prompt that closes whatever was open.
fn is_fresh_prompt(text: &[u8]) -> bool {
    let may_be = memchr::memmem::find(text, b"\"user\"").is_some();
    may_be && matches!(parse(text), Ok(Event { body: Body::Prompt { joins: false, continuation: false, .. }, .. }))
}

fn starts_with_type(text: &[u8], kind: &[u8]) -> bool {
    text.strip_prefix(TYPE_PREFIX).and_then(|rest| rest.strip_prefix(kind)).is_some_and(|rest| rest.starts_with(b"\""))
}

const fn aside(kind: &[u8]) -> Event<'_> {
    Event {
        kind,
        at: None,
        id: b"",
        parent: b"",
        round: b"",
        sub_agent: None,
        body: Body::Aside,
        besides: Besides::NONE,
    }
}

#[cfg(test)]
mod tests;
