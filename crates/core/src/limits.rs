//! The configurable limits behind the statuses.

use super::time::Span;

/// How long each kind of silence may last. The defaults are documented behaviour; the config can change each of them.
///
/// Silence is measured from the last progress, on the awake clock ([`Moment`](super::time::Moment)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `quiet` after this silence if no tool was used in the turn. Default 60 s.
    pub fresh_quiet: Span,
    /// `stuck` after this silence if no tool was used in the turn. Default 120 s.
    pub fresh_stuck: Span,
    /// `quiet` after this silence if tools were used and none is open (the model is thinking). Default 120 s.
    pub thinking_quiet: Span,
    /// `stuck` after this silence if tools were used and none is open. Default 600 s.
    pub thinking_stuck: Span,
    /// `stuck` after this silence if the connection to the model shows signs of life, but no text. Default 3600 s.
    pub kept_stuck: Span,
    /// `quiet` after this silence if a tool is open. Default 600 s.
    pub tool_quiet: Span,
    /// `stuck` after this silence if a tool is open, its process unknown or not using the CPU. Default 660 s.
    pub tool_stuck: Span,
    /// `stuck`, worded "running long", after this silence if a tool is open and its process is busy. Default 3600 s.
    pub tool_busy_stuck: Span,
    /// How long a turn stays `finishing` after a `turn_end` that more may follow. Default 4 s.
    pub finishing: Span,
    /// How long after an answer without a `turn_end` the turn counts as over. Default 5 min.
    pub answered: Span,
    /// A turn resumed with pending work of which nothing is open, or older than its owner, is closed after this.
    /// Default 30 s.
    pub resumed: Span,
    /// A session that never had an owner counts as ended after this silence. Default 600 s.
    pub ownerless: Span,
    /// How long a crashed session is listed as `crashed`, and one that ended denied as `failed`, before it becomes
    /// `ended`. Default 24 h.
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
            kept_stuck: Span::seconds(3600),
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
