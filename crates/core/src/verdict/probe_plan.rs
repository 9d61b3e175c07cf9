//! A silence, and when to probe whether its session receives an answer: so early before a limit of its silence that the limit is
//! judged by what was seen, and at no other time.

use super::liveness::StreamProbe;
use crate::stream_probe::WINDOW;
use crate::time::{Moment, Span, Time};
use crate::words::reason::Situation;

/// A silence, and the limits that it is judged by.
pub(super) struct Silence {
    /// What was last heard.
    pub(super) since: Moment,
    pub(super) quiet: Span,
    pub(super) stuck: Span,
    /// A tool or something like it is open.
    pub(super) open: bool,
    pub(super) situation: Situation,
}

/// When to probe, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// When to begin, by the awake clock. `None` once every limit has been looked into.
    pub at: Option<Time>,
    /// How long until the second probe.
    pub window: Span,
}

impl ProbePlan {
    /// The next probe in a silence since `since`, with these limits, after the last one.
    pub(super) fn plan(since: Moment, quiet: Span, stuck: Span, last: Option<&StreamProbe>) -> Self {
        let begin = |limit| Self { at: Some(since.awake + limit - window(limit)), window: window(limit) };
        let due = [quiet, stuck].into_iter().filter(|&limit| !is_looked_into(since, limit, last));
        let next = due.map(begin).min_by_key(|probe| probe.at);
        next.unwrap_or(Self { at: None, window: window(stuck) })
    }
}

/// Whether the last probe was for this limit of a silence: such a probe ends when the limit passes.
pub(super) fn is_looked_into(since: Moment, limit: Span, last: Option<&StreamProbe>) -> bool {
    last.is_some_and(|last| last.at.awake >= since.awake + limit)
}

/// How long a probe for a limit takes: shorter for a short limit, so that it does not begin with the silence.
fn window(limit: Span) -> Span {
    WINDOW.min(Span(limit.0 / 2)).max(Span::ZERO)
}
