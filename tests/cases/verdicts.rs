//! A story's facts, its verdict at an offset, and the statuses that a replay of its log yields.
//!
//! Everything at an offset is derived from the lines up to it, so one story can be checked at many offsets.

use super::story::{At, Story, Written};
use pilotlight_agents::copilot::log_format;
use pilotlight_core::facts::Facts;
use pilotlight_core::replay::{Change, OwnerStory, Replay};
use pilotlight_core::time::{Moment, Span};
use pilotlight_core::verdict::{Observations, Status, Verdict, judge};

impl Story {
    /// The log as it is on disk.
    pub(crate) fn log(&self) -> Vec<u8> {
        self.lines().flat_map(|line| [line, b"\n"].concat()).collect()
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.written.iter().filter_map(|(_, written)| match written {
            Written::Line(line) => Some(&line[..]),
            Written::Part => None,
        })
    }

    /// The facts folded from the lines up to an offset.
    pub(crate) fn facts(&self, until: impl Into<At>) -> Facts {
        let At(until) = until.into();
        let mut facts = Facts::default();
        for (at, written) in self.written.iter().filter(|(at, _)| *at <= until) {
            let awake = self.moment(*at).awake;
            match written {
                Written::Line(line) => match log_format::parse(line) {
                    Ok(event) => facts.fold(&event, Moment { wall: event.at.unwrap(), awake }, &self.limits),
                    Err(_) => facts.skip(),
                },
                Written::Part => facts.grew(self.moment(*at), &self.limits),
            }
        }
        facts
    }

    /// The verdict at an offset. Also asserts that its recheck lies ahead.
    #[track_caller]
    pub(crate) fn verdict(&self, at: impl Into<At>) -> Verdict {
        let at = at.into();
        let now = self.moment(at);
        let verdict =
            judge(Observations::by_log(&self.facts(at)), &self.owner, &self.liveness, self.seen, now, &self.limits);
        assert!(verdict.recheck_at.is_none_or(|recheck| recheck > now.awake), "a recheck in the past: {verdict:?}");
        verdict
    }

    pub(crate) fn status(&self, at: impl Into<At>) -> Status {
        self.verdict(at).status
    }

    /// Asserts the status at an offset.
    #[track_caller]
    pub(crate) fn is(&self, at: impl Into<At>, status: Status) -> &Self {
        self.says(at, status, "")
    }

    /// Asserts the status at an offset, and that its reason contains `words`.
    #[track_caller]
    pub(crate) fn says(&self, at: impl Into<At>, status: Status, words: &str) -> &Self {
        let at = at.into();
        let verdict = self.verdict(at);
        assert!(
            verdict.status == status && verdict.because.to_string().contains(words),
            "at {} ms: expected {status} ({words}), got {} ({})",
            at.0.0,
            verdict.status,
            verdict.because
        );
        self
    }

    /// Asserts that the status changes to `then` exactly at `until`.
    #[track_caller]
    pub(crate) fn turns(&self, until: impl Into<At>, status: Status, then: Status) -> &Self {
        let At(until) = until.into();
        self.is(until - Span(1), status).is(until, then).is(until + Span(1), then)
    }

    /// Every change of status in a replay that continues for `after` beyond the last line.
    pub(crate) fn changes(&self, owner: OwnerStory, after: Span) -> Vec<Change> {
        let mut replay = Replay::new(owner, self.limits, log_format::parse);
        let mut changes = Vec::new();
        for line in self.lines() {
            replay.line(line, &mut changes);
        }
        replay.finish(after, &mut changes);
        changes
    }

    /// The statuses of a replay, in order.
    pub(crate) fn statuses(&self) -> Vec<Status> {
        self.changes(OwnerStory::Alive, Span::ZERO).into_iter().map(|change| change.status).collect()
    }
}
