//! Whether a silent session receives its model's answer: the rule for what the kernel counted on its connections.
//!
//! Copilot writes an answer to the log only when it is whole, so a log says the same of an answer that streams and of a
//! model that hangs. The connections of the session's process do not: two looks at them, a few seconds apart, show
//! whether text arrives, mere signs of life, or nothing. [`probe_results`] is that rule, and [`ProbeResult`] its words.
//!
//! The numbers were measured on the real Copilot CLI 1.0.102 with a scripted model: of 433 samples of an answer that
//! streamed none was called silent, and of 864 others none was called an answer.

use super::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// How far apart two looks are; a shorter limit of silence has a shorter window.
pub const WINDOW: Span = Span::seconds(10);

/// A connection to a model has sent a request: one is 40 KB or more. Others, to MCP servers, send less.
const REQUEST: u64 = 8 * 1024;
/// At least this many segments in [`WINDOW`] are an answer: compressed text is as short as a sign of life, but comes more
/// often.
const SEGMENTS: u64 = 5;
/// So are this many bytes in [`WINDOW`], if each segment has [`SEGMENT`].
const BYTES: u64 = 200;
/// Bytes of a segment, on average: text has 135 and more, signs of life at most 64.
const SEGMENT: u64 = 90;
/// One look takes this many segments for an answer: fewer may be headers, or a refusal.
const ANSWER: u64 = 3;
/// Whoever has sent this many bytes between two looks has asked again.
const ASKED_AGAIN: u64 = 200;
/// A peer whose kernel lives acknowledges keepalive probes: Copilot's kernel sends one every 15 s, that of Claude Code one
/// a minute. One that is unanswered shows by itself, before this has passed.
const ACKNOWLEDGES_WITHIN: Span = Span::seconds(75);
/// Copilot reads what arrives within milliseconds. What it leaves for this long, it does not read.
const READS_WITHIN: Span = Span::seconds(2);
/// A request is sent this long after the log's entry, at most: 0.6 s, on a busy machine 2.7 s.
const SENT_WITHIN: Span = Span::seconds(3);
/// The two are measured by different clocks.
const SENT_BEFORE: Span = Span(300);

/// The TCP sockets of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    pub opened: Vec<Connection>,
    /// It has accepted others: it is a server with clients.
    pub serves: bool,
}

/// A connection that a process has opened, as its kernel describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Identifies it for as long as it is open.
    pub id: u64,
    /// How far it is.
    pub state: ConnectionState,
    /// What was sent last is unanswered and was sent again.
    pub is_resent: bool,
    /// Its kernel sends keepalive probes.
    pub keeps_alive: bool,
    /// How long ago data was last sent.
    pub last_sent: Span,
    /// How long ago data last arrived. If none has, the age of the connection.
    pub last_received: Span,
    /// How long ago its peer last acknowledged anything.
    pub last_acknowledged: Span,
    /// Bytes sent and acknowledged.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Segments with data received.
    pub segments: u64,
    /// Bytes that have arrived and that the process has not read.
    pub unread: u64,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConnectionState {
    /// It is being opened.
    Connecting,
    Open,
    /// It is being closed.
    Closing,
}

/// What was found out about a model's answer during a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeResult {
    /// It arrives.
    Receiving {
        /// This many bytes came, if that was measured,
        bytes: Option<u64>,
        /// in this time.
        within: Span,
    },
    /// Something arrives, but no text.
    Kept,
    /// The connection is open, and nothing arrives.
    Silent {
        /// Nobody knows whether this session has its answers streamed. If it has not, an answer arrives in one piece.
        may_not_stream: bool,
    },
    /// The peer acknowledges nothing. Copilot will notice, and try again.
    Unanswered,
    /// A connection is being opened.
    Connecting,
    /// No connection is open: Copilot waits before it tries again.
    NoConnection,
    /// It arrives, and Copilot does not read it.
    Unread,
    /// It cannot be seen.
    Unknown(Blind),
}

/// Why it cannot be seen whether an answer arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Blind {
    /// The system counts no bytes, or the process may not be inspected, or is in another network namespace.
    System,
    /// Several sessions of the process asked at the same moment.
    Shared,
    /// A program that uses this session may answer its requests to the model itself.
    Client,
}

/// A result about one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbedStream {
    pub probe_result: ProbeResult,
    /// How long ago data last arrived, if any has since the session asked.
    pub last: Option<Span>,
}

impl From<ProbeResult> for ProbedStream {
    fn from(probe_result: ProbeResult) -> Self {
        Self { probe_result, last: None }
    }
}

/// What Copilot itself says of one session's answer, over a server or a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Text arrives: this many bytes, if that was measured,
    Receives {
        /// in this time.
        bytes: Option<u64>,
        /// How long was measured.
        within: Span,
        /// How long ago the last piece came.
        last: Span,
    },
    /// No text came.
    Silent,
}

impl ProbedStream {
    /// Adds Copilot's own word, if there is one. `streams`: the session is known to have its answers streamed; only then
    /// does Copilot's silence say that no text came.
    #[must_use]
    pub fn with_word(self, word: Option<Word>, streams: bool) -> Self {
        let probe_result = match (word, self.probe_result) {
            (Some(Word::Receives { bytes, within, last }), _) => {
                return Self { probe_result: ProbeResult::Receiving { bytes, within }, last: Some(last) };
            }
            (Some(Word::Silent), ProbeResult::Receiving { .. }) if streams => ProbeResult::Kept,
            // A client that answers for the model sends nothing either.
            (Some(Word::Silent), ProbeResult::Unknown(Blind::Client)) => ProbeResult::NoConnection,
            (Some(Word::Silent), ProbeResult::Unknown(_)) | (_, ProbeResult::Silent { .. }) => {
                ProbeResult::Silent { may_not_stream: !streams }
            }
            (_, probe_result) => probe_result,
        };
        Self { probe_result, ..self }
    }
}

/// What one connection shows. In order of what it says about a session that has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Receiving,
    Unread,
    Kept,
    Silent,
    Connecting,
    Unanswered,
    Closed,
}

/// A connection, and what it shows.
type Signed<'a> = (&'a Connection, Sign);

/// Judges the sessions of a process by its connections, as of `now`. `earlier` is a look this long ago, if there was
/// one. `asked` has, for each session that waits for its model, when it last asked; the results are in the same order.
/// `has_client`: a program may answer the process's requests to its model.
pub fn probe_results(
    earlier: Option<(&Sockets, Span)>,
    sockets: &Sockets,
    asked: &[Time],
    has_client: bool,
    now: Time,
) -> Vec<ProbedStream> {
    let signs: Vec<Signed<'_>> = sockets.opened.iter().filter_map(|one| Some((one, sign(earlier, one)?))).collect();
    let has_client = has_client || sockets.serves;
    let found = |signed: Option<&Signed<'_>>| found_by(signed, earlier, has_client);
    if asked.len() == 1 {
        // All of them are its own.
        return vec![found(signs.iter().min_by_key(|(_, sign)| *sign))];
    }
    let fitting: Vec<_> = asked.iter().map(|&asked| fitting(&signs, asked, now)).collect();
    // Whichever is whose: nobody answers any of them.
    let is_dead = |sign: &Sign| matches!(sign, Sign::Unanswered | Sign::Connecting);
    let dead = signs.iter().max_by_key(|(_, sign)| *sign).filter(|_| signs.iter().all(|(_, sign)| is_dead(sign)));
    let own = |index: usize| {
        let own = &fitting[index];
        let rivals = fitting.iter().filter(|other| share(own, other)).count();
        match own[..] {
            [] if signs.is_empty() => found(None),
            [one] if rivals == 1 => found(Some(one)),
            // As many connections as sessions, and all of them say the same.
            [first, ..] if own.len() >= rivals && own.iter().all(|one| one.1 == first.1) => {
                ProbedStream { last: None, ..found(Some(first)) }
            }
            _ => dead.map_or(ProbeResult::Unknown(Blind::Shared).into(), |dead| ProbedStream {
                last: None,
                ..found(Some(dead))
            }),
        }
    };
    (0..asked.len()).map(own).collect()
}

/// What a session receives, by the connection that is its own. Without one, Copilot waits before it asks again, or a
/// client asks the model itself.
fn found_by(signed: Option<&Signed<'_>>, earlier: Option<(&Sockets, Span)>, has_client: bool) -> ProbedStream {
    let Some((connection, sign)) = signed else {
        return ProbedStream::from(if has_client {
            ProbeResult::Unknown(Blind::Client)
        } else {
            ProbeResult::NoConnection
        });
    };
    let heard = connection.received > 0 && connection.last_received <= connection.last_sent;
    let before = earlier.and_then(|(before, within)| Some((same(before, connection)?, within)));
    let bytes = before.map(|(before, within)| (connection.received.saturating_sub(before.received), within));
    let bytes = bytes.filter(|(bytes, _)| *bytes > 0);
    let probe_result = match sign {
        Sign::Receiving => ProbeResult::Receiving {
            bytes: bytes.map(|(bytes, _)| bytes),
            within: bytes.map_or(WINDOW, |(_, within)| within),
        },
        Sign::Unread => ProbeResult::Unread,
        Sign::Kept => ProbeResult::Kept,
        Sign::Silent => ProbeResult::Silent { may_not_stream: false },
        Sign::Connecting => ProbeResult::Connecting,
        Sign::Unanswered => ProbeResult::Unanswered,
        Sign::Closed if has_client => ProbeResult::Unknown(Blind::Client),
        Sign::Closed => ProbeResult::NoConnection,
    };
    ProbedStream { probe_result, last: heard.then_some(connection.last_received) }
}

/// The connections that may be those of a session that asked then: they sent something at about that time.
fn fitting<'a>(signs: &'a [Signed<'a>], asked: Time, now: Time) -> Vec<&'a Signed<'a>> {
    let is_sent = |sign: &Sign| !matches!(sign, Sign::Connecting | Sign::Closed);
    let after = |one: &Connection| now - one.last_sent - asked;
    let is_near = |one: &Connection| after(one) >= Span::ZERO - SENT_BEFORE && after(one) <= SENT_WITHIN;
    signs.iter().filter(|(one, sign)| is_sent(sign) && is_near(one)).collect()
}

/// Whether a connection fits both of two sessions.
fn share(a: &[&Signed<'_>], b: &[&Signed<'_>]) -> bool {
    a.iter().any(|(one, _)| b.iter().any(|(other, _)| one.id == other.id))
}

/// [`probe_results`] about the first of the sessions. Without `sockets`, they cannot be seen.
pub fn found(
    earlier: Option<(&Sockets, Span)>,
    sockets: Option<&Sockets>,
    asked: &[Time],
    has_client: bool,
    now: Time,
) -> ProbedStream {
    let all = sockets.map(|sockets| probe_results(earlier, sockets, asked, has_client, now));
    all.and_then(|all| all.first().copied()).unwrap_or(ProbeResult::Unknown(Blind::System).into())
}

/// The same connection in another look.
fn same<'a>(sockets: &'a Sockets, connection: &Connection) -> Option<&'a Connection> {
    sockets.opened.iter().find(|one| one.id == connection.id)
}

/// What a connection shows. `None` if it leads to no model.
fn sign(earlier: Option<(&Sockets, Span)>, now: &Connection) -> Option<Sign> {
    match now.state {
        ConnectionState::Connecting => return Some(Sign::Connecting),
        ConnectionState::Closing => return Some(Sign::Closed),
        ConnectionState::Open if now.sent < REQUEST => return None,
        ConnectionState::Open => {}
    }
    if now.is_resent || now.keeps_alive && now.last_acknowledged > ACKNOWLEDGES_WITHIN {
        return Some(Sign::Unanswered);
    }
    let before = earlier.and_then(|(before, within)| Some((same(before, now)?, within)));
    // What was asked again since is as new as a new connection.
    let before = before.filter(|(before, _)| now.sent.saturating_sub(before.sent) < ASKED_AGAIN);
    let Some((before, within)) = before else { return Some(sign_at_once(now)) };
    let bytes = now.received.saturating_sub(before.received);
    let segments = now.segments.saturating_sub(before.segments);
    let is_read = bytes + before.unread > now.unread;
    if now.unread > 0 && !is_read && (before.unread > 0 || now.last_received > READS_WITHIN) {
        return Some(Sign::Unread);
    }
    let in_window = |number: u64| number * within.0.unsigned_abs() / WINDOW.0.unsigned_abs();
    let is_text = bytes >= in_window(BYTES).max(1) && bytes >= SEGMENT * segments;
    Some(match bytes {
        // In a short window, slow text may just not have come.
        0 if within < WINDOW => sign_at_once(now),
        0 => Sign::Silent,
        _ if is_text || segments >= in_window(SEGMENTS).max(2) => Sign::Receiving,
        _ => Sign::Kept,
    })
}

/// What a connection shows in one look: by its totals, and by when something last arrived.
fn sign_at_once(now: &Connection) -> Sign {
    let is_answered = now.received > 0 && now.last_received <= now.last_sent;
    if now.unread > 0 && now.last_received > READS_WITHIN {
        Sign::Unread
    } else if !is_answered || now.last_received >= WINDOW {
        Sign::Silent
    } else if now.segments >= ANSWER && now.received >= SEGMENT * now.segments {
        Sign::Receiving
    } else {
        Sign::Kept
    }
}

#[cfg(test)]
mod tests;
