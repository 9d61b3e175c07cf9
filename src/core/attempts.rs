//! How often a session was recovered, and what counts that anew: a turn that completed, and a prompt or an abort of the user's,
//! never anything that we sent.
//!
//! This is kept on disk and read by processes that saw different parts of the log, so nothing here is counted: the last event
//! of each kind is compared with the one that was there when we last had a hand in it.

use super::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Recoveries of one session that are tried before nothing more is: the last one is the user's.
pub(crate) const ATTEMPTS: u8 = 2;
/// What comes into the log so long after we sent it is still ours. A prompt may wait behind what its session does first.
const OURS: Span = Span::seconds(30);
/// How much earlier than our own note an event may be dated.
const SLACK: Span = Span::seconds(1);

/// An event of the log, to be told from another of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// A hash of its id.
    pub event: u64,
    /// When it was written.
    pub at: Time,
}

/// The last events by which somebody went on with a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// The last prompt that was not Copilot's own.
    pub prompt: Option<Mark>,
    /// The last abort.
    pub aborted: Option<Mark>,
    /// When a turn last ended with an answer.
    pub completed: Option<Time>,
}

/// The recoveries of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempts {
    count: u8,
    /// When this was written last: where a mark was not known then, a later one is new.
    at: Time,
    known: Marks,
    /// When we last sent an abort, or an answer that ends the turn.
    aborted: Option<Time>,
    /// When we last sent a prompt that is not known to have come into the log yet.
    sent: Option<Time>,
    /// The last prompt of ours in the log.
    ours: Option<u64>,
}

impl Attempts {
    /// One more is tried.
    pub fn tried(&mut self, marks: &Marks, now: Time) {
        self.settle(marks, now);
        self.count = self.count.saturating_add(1);
        self.know(marks, now);
    }

    /// We are about to send a prompt.
    pub const fn prompts(&mut self, now: Time) {
        self.sent = Some(now);
    }

    /// We are about to abort the turn, or to answer in a way that does.
    pub const fn aborts(&mut self, now: Time) {
        self.aborted = Some(now);
    }

    /// What we did is over.
    pub fn ended(&mut self, marks: &Marks, now: Time) {
        if let (Some(sent), Some(prompt)) = (self.sent, marks.prompt)
            && follows(prompt.at, sent)
        {
            (self.ours, self.sent) = (Some(prompt.event), None);
        }
        self.settle(marks, now);
        self.know(marks, now);
    }

    /// How many there were, by what the log says now.
    pub fn counted(&self, marks: &Marks) -> u8 {
        if self.is_counted_anew(marks) { 0 } else { self.count }
    }

    /// Forgets what no longer counts.
    pub fn settle(&mut self, marks: &Marks, now: Time) {
        if self.count > 0 && self.is_counted_anew(marks) {
            self.count = 0;
            self.know(marks, now);
        }
    }

    fn know(&mut self, marks: &Marks, now: Time) {
        let Marks { prompt, aborted, completed } = self.known;
        self.known = Marks {
            prompt: marks.prompt.or(prompt),
            aborted: marks.aborted.or(aborted),
            completed: marks.completed.or(completed),
        };
        self.at = now;
    }

    fn is_counted_anew(&self, marks: &Marks) -> bool {
        let is_ours =
            |prompt: &Mark| self.ours == Some(prompt.event) || self.sent.is_some_and(|sent| follows(prompt.at, sent));
        let prompted = marks.prompt.filter(|prompt| self.is_new(*prompt, self.known.prompt) && !is_ours(prompt));
        let ours_aborted = |abort: &Mark| self.aborted.is_some_and(|aborted| follows(abort.at, aborted));
        let aborted = marks.aborted.filter(|abort| self.is_new(*abort, self.known.aborted) && !ours_aborted(abort));
        // The end of a turn that we sent proves nothing.
        let completed = marks.completed.filter(|at| {
            Some(*at) != self.known.completed
                && *at > self.at - SLACK
                && !marks.prompt.is_some_and(|prompt| is_ours(&prompt))
        });
        prompted.is_some() || aborted.is_some() || completed.is_some()
    }

    fn is_new(&self, mark: Mark, known: Option<Mark>) -> bool {
        known.map_or(mark.at > self.at, |known| known.event != mark.event)
    }
}

/// Whether an event of this time may be what we sent then.
fn follows(event: Time, sent: Time) -> bool {
    event >= sent - SLACK && event <= sent + OURS
}
