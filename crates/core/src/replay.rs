//! Replays a log in its own time: what the statuses would have been, and when.
//!
//! The clock is the log's. It moves to each event's own time, and in between stops wherever a verdict asked to be
//! rechecked. So a replay gives, to the millisecond, what a live watcher would have reported.

use super::event::Event;
use super::facts::Facts;
use super::limits::Limits;
use super::owner::Owner;
use super::scan::Malformed;
use super::time::{Moment, Span, Time};
use super::verdict::{Liveness, Observations, Status, Verdict, judge};
use super::words::reason::Because;
use serde::Serialize;

/// Who owned the session while its log was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnerStory {
    /// A process that lives on.
    #[default]
    Alive,
    /// A process that lives up to the last event, and is gone a millisecond after it.
    Dead,
    /// No owner was ever known.
    Unknown,
}

/// A change of status.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// When, by the log's clock.
    pub at: Time,
    pub status: Status,
    /// The reason.
    pub because: Because,
}

/// How an agent's log is read: one line, without its line break.
pub type Parse = fn(&[u8]) -> Result<Event<'_>, Malformed>;

/// A replay under way.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Reads a line of the log.
    parse: Parse,
    /// The log so far.
    pub facts: Facts,
    story: OwnerStory,
    limits: Limits,
    owner: Owner,
    now: Moment,
    last: Option<Status>,
}

impl Replay {
    /// A replay before the first line.
    pub fn new(story: OwnerStory, limits: Limits, parse: Parse) -> Self {
        let owner = match story {
            OwnerStory::Alive | OwnerStory::Dead => Owner::Alive { pid: 0, started: None },
            OwnerStory::Unknown => Owner::Never,
        };
        Self { parse, facts: Facts::default(), story, limits, owner, now: Moment::default(), last: None }
    }

    /// The verdict at the moment the replay has reached.
    pub fn verdict(&self) -> Verdict {
        // Nothing is looked at, so no words name the agent.
        judge(Observations::by_log(&self.facts), &self.owner, &Liveness::default(), None, self.now, &self.limits)
    }

    /// Reads one line: first what time alone changed before it, then the event itself.
    pub fn line(&mut self, line: &[u8], changes: &mut Vec<Change>) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(event) = (self.parse)(line) else {
            self.facts.skip();
            return;
        };
        let at = event.at.unwrap_or(self.now.wall);
        // The clock starts with the first event that has a time.
        if self.now != Moment::default() {
            let ahead = at - Span(1) - self.now.wall;
            self.run_to(self.now.plus(Span(ahead.0.max(0))), changes);
            // If the clock was set back, no time has passed.
            let passed = (at - self.now.wall).max(Span::ZERO);
            self.now = Moment { wall: at, awake: self.now.awake + passed };
        } else {
            self.now = Moment::of(at);
        }
        self.facts.fold(&event, self.now, &self.limits);
        self.record(changes);
    }

    /// Ends the replay: the owner meets its end, and the clock runs on for `span` after the last event.
    pub fn finish(&mut self, span: Span, changes: &mut Vec<Change>) {
        if self.facts.events == 0 {
            return;
        }
        let end = self.now;
        if self.story == OwnerStory::Dead && span.0 >= 1 {
            self.now = end.plus(Span(1));
            self.owner = Owner::Gone { pid: 0, at: Some(self.now.wall) };
            self.record(changes);
        }
        self.run_to(end.plus(span), changes);
    }

    /// Advances the clock to `end`, stopping wherever the verdict asks for a recheck.
    fn run_to(&mut self, end: Moment, changes: &mut Vec<Change>) {
        while let Some(at) = self.verdict().recheck_at.filter(|&at| at <= end.awake) {
            self.now = self.now.plus(at - self.now.awake);
            self.record(changes);
        }
        if end.awake > self.now.awake {
            self.now = end;
        }
    }

    fn record(&mut self, changes: &mut Vec<Change>) {
        let verdict = self.verdict();
        if self.last != Some(verdict.status) {
            self.last = Some(verdict.status);
            changes.push(Change { at: self.now.wall, status: verdict.status, because: verdict.because });
        }
    }
}
