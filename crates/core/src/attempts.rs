//! How often a session was recovered, and what resets that count: a completed turn, or a prompt or an abort by the
//! user, but never anything that we sent.
//!
//! This is stored on disk and read by processes that saw different parts of the log. So events are not counted; the
//! last event of each kind is compared with the one recorded when we last intervened.

use super::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Maximum number of recoveries of one session until its user goes on with it.
pub(crate) const ATTEMPTS: u8 = 2;
/// Shown when the count cannot be saved. Pilotlight then sends nothing automatically, and asks the user each time.
pub const UNCOUNTED: &str = "Pilotlight cannot count its attempts to recover it";
/// How long after we sent something a matching event is attributed to us. A prompt may be queued behind other work.
const OURS: Span = Span::seconds(30);
/// How far an event's timestamp may precede our own.
const SLACK: Span = Span::seconds(1);

/// Identifies an event among others of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// A hash of its id.
    pub event: u64,
    /// When it was written.
    pub at: Time,
}

/// The last events that show that somebody went on with the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecoveryMarks {
    /// The last prompt that Copilot did not give itself.
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
    /// When `known` was last updated. If a mark was missing then, any later one is new.
    at: Time,
    known: RecoveryMarks,
    /// When we last sent an abort, or an answer that ends the turn.
    aborted: Option<Time>,
    /// When we last sent a prompt that has not been seen in the log yet.
    sent: Option<Time>,
    /// The last prompt of ours in the log.
    ours: Option<u64>,
}

impl Attempts {
    /// What is kept counts only if it was written before now. What comes from the future was written while the clock was
    /// wrong, and nothing that the log shows from now on could reset it.
    pub fn until(self, now: Time) -> Self {
        if self.at > now + SLACK { Self::default() } else { self }
    }

    /// Records another recovery.
    pub fn note_attempt(&mut self, marks: &RecoveryMarks, now: Time) {
        self.settle(marks, now);
        self.count = self.count.saturating_add(1);
        self.remember(marks, now);
    }

    /// Records that we are about to send a prompt.
    pub const fn note_prompt(&mut self, now: Time) {
        self.sent = Some(now);
    }

    /// Records that we are about to abort the turn, or to give an answer that aborts it.
    pub const fn note_abort(&mut self, now: Time) {
        self.aborted = Some(now);
    }

    /// Records that our action is over.
    pub fn note_end(&mut self, marks: &RecoveryMarks, now: Time) {
        if let (Some(sent), Some(prompt)) = (self.sent, marks.prompt)
            && follows(prompt.at, sent)
        {
            (self.ours, self.sent) = (Some(prompt.event), None);
        }
        self.settle(marks, now);
        self.remember(marks, now);
    }

    /// Number of recoveries since the last reset, given what the log shows now.
    pub fn count(&self, marks: &RecoveryMarks) -> u8 {
        if self.is_reset(marks) { 0 } else { self.count }
    }

    /// Resets the count if the log shows a reason to.
    pub fn settle(&mut self, marks: &RecoveryMarks, now: Time) {
        if self.count > 0 && self.is_reset(marks) {
            self.count = 0;
            self.remember(marks, now);
        }
    }

    fn remember(&mut self, marks: &RecoveryMarks, now: Time) {
        let RecoveryMarks { prompt, aborted, completed } = self.known;
        self.known = RecoveryMarks {
            prompt: marks.prompt.or(prompt),
            aborted: marks.aborted.or(aborted),
            completed: marks.completed.or(completed),
        };
        self.at = now;
    }

    fn is_reset(&self, marks: &RecoveryMarks) -> bool {
        let is_ours =
            |prompt: &Mark| self.ours == Some(prompt.event) || self.sent.is_some_and(|sent| follows(prompt.at, sent));
        let prompted = marks.prompt.filter(|prompt| self.is_new(*prompt, self.known.prompt) && !is_ours(prompt));
        let ours_aborted = |abort: &Mark| self.aborted.is_some_and(|aborted| follows(abort.at, aborted));
        let aborted = marks.aborted.filter(|abort| self.is_new(*abort, self.known.aborted) && !ours_aborted(abort));
        // The completion of a turn that we started ourselves proves nothing.
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

/// Whether an event at this time may be what we sent at `sent`.
fn follows(event: Time, sent: Time) -> bool {
    event >= sent - SLACK && event <= sent + OURS
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_763_700_000_000);

    fn recovered(known: RecoveryMarks) -> Attempts {
        let mut attempts = Attempts::default();
        attempts.note_attempt(&known, NOW);
        attempts
    }

    fn prompted(event: u64, at: Time) -> RecoveryMarks {
        RecoveryMarks { prompt: Some(Mark { event, at }), ..RecoveryMarks::default() }
    }

    #[test]
    fn only_what_came_after_a_recovery_resets_it() {
        // Where none was known, the time decides; else whether it is another one.
        let first = recovered(RecoveryMarks::default());
        assert_eq!([Span::ZERO, Span(1)].map(|later| first.count(&prompted(1, NOW + later))), [1, 0]);
        let again = recovered(prompted(1, NOW));
        assert_eq!([1, 2].map(|event| again.count(&prompted(event, NOW))), [1, 0]);
        // A completion may be dated a little before it.
        let completed = |at| RecoveryMarks { completed: Some(at), ..RecoveryMarks::default() };
        assert_eq!([SLACK, SLACK - Span(1)].map(|before| first.count(&completed(NOW - before))), [1, 0]);
    }

    #[test]
    fn case_620_attempts_of_the_future_do_not_count() {
        let attempts = recovered(RecoveryMarks::default());
        assert_eq!([NOW, NOW - SLACK].map(|now| attempts.until(now).count(&RecoveryMarks::default())), [1, 1]);
        assert_eq!(attempts.until(NOW - SLACK - Span(1)), Attempts::default());
    }

    #[test]
    fn a_prompt_is_ours_if_it_is_written_in_time() {
        let mut attempts = recovered(RecoveryMarks::default());
        let sent = NOW + Span::minutes(1);
        attempts.note_prompt(sent);
        let count = |at| attempts.count(&prompted(1, at));
        assert_eq!([sent - SLACK - Span(1), sent - SLACK, sent + OURS, sent + OURS + Span(1)].map(count), [0, 1, 1, 0]);
    }
}
