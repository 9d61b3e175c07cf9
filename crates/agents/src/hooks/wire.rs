//! The protocol between a hook's process and us. The hook sends a header, one line of JSON, then the input that its agent
//! gave it. We send lines of JSON: that it is held, or its answer. The connection's end lets it go without one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Its version. A hook and a tray of different versions have nothing to do with each other.
pub(crate) const VERSION: u32 = 1;
/// The longest input of a hook, in bytes. Requests that change files have hundreds of kilobytes.
pub(crate) const INPUT_MAX: usize = 1 << 20;
/// The longest line, in bytes, but for an answer.
pub(crate) const LINE_MAX: usize = 1 << 10;

/// What comes before a hook's input.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) v: u32,
    /// The length of the input, in bytes.
    pub(crate) length: usize,
    /// When the hook was started, by the wall clock, in ms since 1970.
    pub(crate) at: i64,
}

/// What we tell a hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub(crate) enum ToHook {
    /// It is held until it is answered or let go: only one of a sub-agent is told.
    Hold,
    /// It is to print this.
    Answer { output: Value },
}

/// What a hook tells us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "kebab-case")]
pub(crate) enum FromHook {
    /// It has printed its answer.
    Printed,
    /// Its agent took the answer that it has printed, and this came of it, as HTTP has it.
    Answered { status: u16 },
    /// Its request was answered elsewhere, or is over, before it had printed anything.
    LetGo,
}
