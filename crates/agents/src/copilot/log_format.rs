//! How Copilot writes its log: one line of `events.jsonl` -> one [`Event`].
//!
//! A line is `{type, data, id, timestamp, parentId, agentId?}`, in this order. Most lines, and most bytes, of Copilot's
//! logs mean no more than "something happened". For those the type is enough, and the envelope is read from the end of
//! the line, so `data` is never touched. From the others only the fields that a rule needs are read, borrowed from the
//! line.
//!
//! Other layouts (another order of fields, more fields, white space) are read too, only slower. An unreadable line is
//! [`Malformed`]; nothing panics.

mod data;
mod types;

use crate::tail::{FIRST_LINES, LogFormat, SubAgentsInLog};
use data::Data;
use pilotlight_core::event::{Besides, Body, Event};
use pilotlight_core::scan::{LastMembers, Malformed, Scan, Text, keys};
use pilotlight_core::time::Time;
use types::without_data;

/// How Copilot writes its log.
pub const LOG_FORMAT: LogFormat = LogFormat {
    is_start,
    parse,
    parse_ends,
    is_fresh_prompt,
    sub_agents: Some(SubAgentsInLog { is_shutdown, end_of }),
};

/// Whether a log that begins so is Copilot's: the type of one of its first lines has a dot.
fn is_start(log: &[u8]) -> bool {
    log.split(|byte| *byte == b'\n')
        .take(FIRST_LINES)
        .any(|line| kind_of(line).is_some_and(|kind| kind.contains(&b'.')))
}

/// Parses one line, without its line break.
///
/// # Errors
/// [`Malformed`] if the line is not an event: broken JSON, no `type`, no readable `timestamp`, or without a field that
/// its type requires (an id that pairs it with another event).
pub fn parse(line: &[u8]) -> Result<Event<'_>, Malformed> {
    let line = line.trim_ascii();
    if let Some(kind) = kind_by_prefix(line)
        && let Some(body @ (Body::Step | Body::Aside | Body::Record)) = without_data(kind)
        && memchr::memmem::find(&line[1..], TYPE_PREFIX).is_none() // no torn line precedes another event
        && let Some(envelope) = Envelope::from_end(line)
    {
        return envelope.event(kind, body);
    }
    parse_whole(line).or_else(|malformed| after_torn_line(line).ok_or(malformed))
}

/// Parses the event after a torn line: a writer that died in the middle of a line leaves a piece of it, or a run of
/// NULs, in front of the next one.
///
/// Inside a string the prefix would be escaped, and no nested object parses as an event, so a match is a whole line.
fn after_torn_line(line: &[u8]) -> Option<Event<'_>> {
    let whole = |at: usize| parse_whole(&line[at..]).ok();
    let usual = memchr::memmem::rfind_iter(line, TYPE_PREFIX).filter(|&at| at > 0).take(4).find_map(whole);
    usual.or_else(|| {
        // In another spelling. An event ends with the line, so nothing nested in it does.
        let begins = |at: &usize| {
            let key = line[at + 1..].trim_ascii_start();
            FIELDS.iter().any(|field| key.strip_prefix(b"\"").is_some_and(|key| key.starts_with(field)))
        };
        memchr::memrchr_iter(b'{', line).filter(|&at| at > 0).filter(begins).take(8).find_map(whole)
    })
}

/// Parses the first and last bytes of a line that is too long to hold in memory. Only types that need no data, and
/// fields at the front of `data`, are recognized.
///
/// # Errors
/// As [`parse`].
pub fn parse_ends<'a>(head: &'a [u8], tail: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let envelope = Envelope::from_end(tail).ok_or(Malformed)?;
    let kind = kind_of(head).or(envelope.kind).ok_or(Malformed)?;
    if let Some(body) = without_data(kind) {
        return envelope.event(kind, body);
    }
    let mut data = Data::default();
    let mut scan = Scan::new(head);
    // The head ends in the middle of a value. The fields before it are kept.
    let _ = scan.object(|key, scan| if key == b"data" { data.read(kind, scan) } else { scan.skip() });
    let besides = data.besides(kind);
    let message = (kind == b"assistant.message").then(|| Scan::cut_text(head, b"content")).flatten();
    let besides = Besides { message: besides.message.or(message), ..besides };
    Ok(Event { besides, ..envelope.event(kind, data.body(kind).unwrap_or(Body::Step))? })
}

/// Whether a line is a prompt that closes whatever was open. Reading a log backwards stops at such a line.
pub fn is_fresh_prompt(line: &[u8]) -> bool {
    kind_by_prefix(line).is_none_or(|kind| kind == b"user.message")
        && matches!(
            parse(line),
            Ok(Event {
                sub_agent: None,
                body: Body::Prompt { joins: false, continuation: false, .. },
                // What a schedule prompts follows from what its user did before.
                besides: Besides { schedule: None, .. },
                ..
            })
        )
}

/// Whether a line says that the session, and everything in its background, was shut down.
pub fn is_shutdown(line: &[u8]) -> bool {
    kind_of(line) == Some(b"session.shutdown")
}

/// Returns when a line was written, and whether by a sub-agent. Reads only the end of the line.
pub fn end_of(line: &[u8]) -> Option<(Time, bool)> {
    let envelope = Envelope::from_end(line)?;
    Some((Time::parse(envelope.timestamp)?, envelope.sub_agent.is_some()))
}

const TYPE_PREFIX: &[u8] = b"{\"type\":\"";
/// The fields of an event, one of which is its first.
const FIELDS: [&[u8]; 6] = [b"type\"", b"data\"", b"id\"", b"timestamp\"", b"parentId\"", b"agentId\""];

fn kind_by_prefix(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(TYPE_PREFIX)?;
    rest.get(..rest.iter().take(64).position(|&byte| byte == b'"')?)
}

/// The type of an event, if the line, or what is given of it, gets that far.
pub(super) fn kind_of(line: &[u8]) -> Option<&[u8]> {
    kind_by_prefix(line).or_else(|| {
        let mut kind = None;
        keys(line, |key, scan| if key == b"type" { scan.text().map(|text| kind = text) } else { scan.skip() });
        kind.map(|Text(kind)| kind)
    })
}

/// The fields around `data`.
#[derive(Default)]
struct Envelope<'a> {
    id: &'a [u8],
    parent: &'a [u8],
    timestamp: &'a [u8],
    sub_agent: Option<Text<'a>>,
    kind: Option<&'a [u8]>,
}

impl<'a> Envelope<'a> {
    /// Reads `...}[,"agentId":".."],"id":"..","timestamp":"..","parentId":..}` from the end of the line, in any order. This
    /// is sound without reading the rest: the last brace of a line closes the event itself.
    fn from_end(line: &'a [u8]) -> Option<Self> {
        let mut members = LastMembers::of(line)?;
        let (mut envelope, mut has_parent) = (Self::default(), false);
        for (name, value) in &mut members {
            match name {
                b"parentId" => (envelope.parent, has_parent) = (value.unwrap_or_default(), true),
                b"timestamp" => envelope.timestamp = value?,
                b"id" => envelope.id = value?,
                b"agentId" => envelope.sub_agent = value.filter(|id| !id.is_empty()).map(Text),
                b"type" => envelope.kind = value,
                _ => return None,
            }
        }
        (has_parent && members.rest().ends_with(b"}") && !envelope.timestamp.is_empty()).then_some(envelope)
    }

    fn event(self, kind: &'a [u8], body: Body<'a>) -> Result<Event<'a>, Malformed> {
        Ok(Event {
            kind,
            at: Some(Time::parse(self.timestamp).ok_or(Malformed)?),
            id: self.id,
            parent: self.parent,
            round: b"",
            sub_agent: self.sub_agent,
            body,
            besides: Besides::NONE,
        })
    }
}

/// Parses a line whose fields may be in any order.
fn parse_whole(line: &[u8]) -> Result<Event<'_>, Malformed> {
    let mut kind = None;
    let mut envelope = Envelope::default();
    let mut data = Data::default();
    let mut deferred = None; // data that came before its type
    let mut scan = Scan::new(line);
    scan.object(|key, scan| {
        match key {
            b"type" => kind = scan.text()?,
            b"id" => envelope.id = raw(scan)?,
            b"parentId" => envelope.parent = raw(scan)?,
            b"timestamp" => envelope.timestamp = raw(scan)?,
            b"agentId" => envelope.sub_agent = scan.text()?.filter(|text| !text.0.is_empty()),
            b"data" => match kind {
                Some(Text(kind)) => data.read(kind, scan)?,
                None => {
                    deferred = Some(scan.clone());
                    scan.skip()?;
                }
            },
            _ => scan.skip()?,
        }
        Ok(())
    })?;
    scan.end()?;
    let Text(kind) = kind.ok_or(Malformed)?;
    if let Some(mut scan) = deferred {
        data.read(kind, &mut scan)?;
    }
    let (round, besides) = (data.round(), data.besides(kind));
    let event = envelope.event(kind, without_data(kind).map_or_else(|| data.body(kind), Ok)?)?;
    let is_of_model = matches!(event.body, Body::Message { .. } | Body::ToolStart { .. });
    Ok(Event { round: if is_of_model { round } else { b"" }, besides, ..event })
}

fn raw<'a>(scan: &mut Scan<'a>) -> Result<&'a [u8], Malformed> {
    Ok(scan.text()?.map_or(&b""[..], |text| text.0))
}
