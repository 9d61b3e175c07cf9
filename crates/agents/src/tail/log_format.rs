//! How an agent writes its log, as far as reading it needs to know.

use pilotlight_core::event::Event;
use pilotlight_core::scan::{Malformed, keys};
use pilotlight_core::time::Time;

/// How many of a log's lines tell whose it is, at most: the first ones may be torn.
pub(crate) const FIRST_LINES: usize = 20;

/// Whether one of a log's first lines has all of these keys, and none of the `others`.
pub(crate) fn has_line_with(log: &[u8], wanted: &[&str], others: &[&str]) -> bool {
    log.split(|byte| *byte == b'\n').take(FIRST_LINES).any(|line| {
        let (mut missing, mut is_other) = (wanted.to_vec(), false);
        keys(line, |key, scan| {
            missing.retain(|wanted| wanted.as_bytes() != key);
            is_other |= others.iter().any(|other| other.as_bytes() == key);
            scan.skip()
        });
        missing.is_empty() && !is_other
    })
}

/// How an agent writes its log: one event a line. Each of these reads JSON, however that is spelled: with blanks or without,
/// its keys in any order. Where the bytes of the usual spelling are looked for first, other bytes are parsed.
#[derive(Clone, Copy, Debug)]
pub struct LogFormat {
    /// Whether a log that begins so is written in it.
    pub is_start: fn(&[u8]) -> bool,
    /// Parses one line, without its line break.
    pub parse: fn(&[u8]) -> Result<Event<'_>, Malformed>,
    /// Parses the first and last bytes of a line that is too long to hold in memory.
    pub parse_ends: for<'a> fn(&'a [u8], &'a [u8]) -> Result<Event<'a>, Malformed>,
    /// Whether a line is a prompt that closes whatever was open. Reading a log backwards stops at such a line. Given its
    /// first MiB.
    pub is_fresh_prompt: fn(&[u8]) -> bool,
    /// Where sub-agents write into the log of their session: how their lines are told. They may work on beyond a prompt.
    pub sub_agents: Option<SubAgentsInLog>,
}

impl LogFormat {
    /// One of logs into which no sub-agents write. Of a line that is too long to hold in memory, nothing is known.
    pub const fn of(
        is_start: fn(&[u8]) -> bool,
        parse: fn(&[u8]) -> Result<Event<'_>, Malformed>,
        is_fresh_prompt: fn(&[u8]) -> bool,
    ) -> Self {
        Self { is_start, parse, parse_ends: |_, _| Err(Malformed), is_fresh_prompt, sub_agents: None }
    }
}

/// How a log into which sub-agents write tells, read backwards, which of them may work still.
#[derive(Clone, Copy, Debug)]
pub struct SubAgentsInLog {
    /// Whether a line says that the session, and everything in its background, was shut down. Given its first KiB, or all
    /// of it.
    pub is_shutdown: fn(&[u8]) -> bool,
    /// Returns when a line was written, and whether by a sub-agent, from the last KiB of the line.
    pub end_of: fn(&[u8]) -> Option<(Time, bool)>,
}
