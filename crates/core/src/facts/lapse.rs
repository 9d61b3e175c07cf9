//! Conclusions from the facts without another event: a turn that ends because of time alone, and work left undone.

use super::Facts;
use crate::limits::Limits;
use crate::time::{Moment, Span, Time};
use crate::turn::{Ending, Lapse, LastMessage, Phase};

impl Facts {
    /// Whether work was left undone by a reconnection at `at`: since then there was neither a prompt nor a tool run.
    pub fn is_left_undone(&self, at: Option<Time>) -> bool {
        let before = |last: Option<Time>, at| last.is_none_or(|last| last <= at);
        let (prompt, ran) = (self.marks.prompt.map(|mark| mark.at), self.last_ran.map(|moment| moment.wall));
        at.is_some_and(|at| before(prompt, at) && before(ran, at))
    }

    /// The names of the open tools, for reporting them as unfinished later.
    pub fn unfinished(&self) -> Vec<Box<str>> {
        self.turn.iter().flat_map(|turn| &turn.tools).map(|tool| tool.name.clone()).take(3).collect()
    }

    /// Returns the lapse of the open turn, if it has ended because of time alone by `now`.
    pub fn lapse(&self, now: Moment, limits: &Limits) -> Option<Lapse> {
        self.next_lapse(limits).filter(|lapse| lapse.at.awake <= now.awake)
    }

    /// When and how the open turn will end if nothing more is written. `None` while it has an open tool or request.
    pub(crate) fn next_lapse(&self, limits: &Limits) -> Option<Lapse> {
        let turn = self.turn.as_ref().filter(|_| !self.has_open_work())?;
        let (asks, answered) = match turn.last_message {
            LastMessage::Answer { asks } => (asks, true),
            _ => (false, false),
        };
        let after = |since: Moment, span: Span, ending| Some(Lapse { at: since.plus(span), ending, asks });
        match turn.phase {
            Phase::Unanswered(since) => after(since, limits.finishing, Ending::Unanswered),
            Phase::MayContinue(since) => after(since, limits.finishing, Ending::Completed),
            Phase::Answered(since) if answered && turn.resumed.is_none() && self.requests.is_empty() => {
                after(since, limits.answered, Ending::NeverClosed)
            }
            _ => {
                let since = turn.resumed.filter(|_| self.requests.is_empty())?;
                after(since, limits.resumed, Ending::ResumedSilent)
            }
        }
    }
}
