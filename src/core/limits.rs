//! The limits that statuses rest on, all of them settable.

use super::time::Span;

/// How long each kind of silence may last. The defaults are the product's promise; the config may change each one.
///
/// Silence is measured from the last progress, on the awake clock ([`Moment`](super::time::Moment)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// No tool used in this turn: `quiet` after this. Default 60 s.
    pub fresh_quiet: Span,
    /// No tool used in this turn: `stuck` after this. Default 120 s.
    pub fresh_stuck: Span,
    /// Tools used in this turn, none open (the model thinks): `quiet` after this. Default 120 s.
    pub thinking_quiet: Span,
    /// Tools used in this turn, none open: `stuck` after this. Default 600 s.
    pub thinking_stuck: Span,
    /// A tool is open: `quiet` after this. Default 600 s.
    pub tool_quiet: Span,
    /// A tool is open, its process unknown or using no CPU: `stuck` after this. Default 660 s.
    pub tool_stuck: Span,
    /// A tool is open and its process is busy: `stuck`, worded "running long", after this. Default 3600 s.
    pub tool_busy_stuck: Span,
    /// How long a `turn_end` that may yet be followed up stays `finishing`. Default 4 s.
    pub finishing: Span,
    /// How long an answer may wait for its `turn_end` before the turn counts as over. Default 5 min.
    pub answered: Span,
    /// A turn resumed with pending work, or older than its owner, and nothing open: closed after this. Default 30 s.
    pub resumed: Span,
    /// A session that never had an owner counts as ended after this silence. Default 600 s.
    pub ownerless: Span,
    /// A crashed session is listed as `crashed` for this long, then as `ended`; so is one that ended denied as `failed`. Default
    /// 24 h.
    pub crashed: Span,
    /// A background sub-agent silent for this long no longer counts as work. Default 20 min.
    pub background_agent: Span,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fresh_quiet: Span::seconds(60),
            fresh_stuck: Span::seconds(120),
            thinking_quiet: Span::seconds(120),
            thinking_stuck: Span::seconds(600),
            tool_quiet: Span::seconds(600),
            tool_stuck: Span::seconds(660),
            tool_busy_stuck: Span::seconds(3600),
            finishing: Span::seconds(4),
            answered: Span::minutes(5),
            resumed: Span::seconds(30),
            ownerless: Span::seconds(600),
            crashed: Span::hours(24),
            background_agent: Span::minutes(20),
        }
    }
}
