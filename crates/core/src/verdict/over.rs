//! Sessions that are over: ended, crashed, or ended denied.

use super::{Candidate, Judge, Status, after_error, candidate};
use crate::owner::Owner;
use crate::time::{Moment, Span, Time};
use crate::turn::{Closed, DENIED, Ending, Turn, TurnPhase};
use crate::words::calls::Calls;
use crate::words::reason::{Note, Reason};

impl Judge<'_> {
    /// `ended` or `crashed`, if the session is over.
    pub(super) fn over(
        &mut self,
        turn: Option<&Turn>,
        closed: Option<&Closed>,
        requests: bool,
        seen: Option<Time>,
    ) -> Option<Candidate> {
        let last = self.progress();
        // Somebody may have opened it since.
        let is_doubtful = matches!(self.owner, Owner::Doubtful { .. });
        if let Some(at) = self.facts.shut_down.filter(|_| !is_doubtful) {
            let (why, more) = shut_down(closed);
            return Some(self.ended(at, why, more, closed, seen));
        }
        let answered =
            turn.is_some_and(|turn| matches!(turn.phase, TurnPhase::Answered(_) | TurnPhase::MayContinue(_)));
        if let Some(at) = self.ended_as_stated() {
            let lost = turn.is_some() && !answered;
            let more = if lost { Some(self.left_open(turn)) } else { after_error(closed) };
            return Some(self.ended(at, Reason::ProcessEnded, more, closed, seen));
        }
        match *self.owner {
            Owner::Gone { at, .. } => {
                // Nobody saw its end: it was there when something was last heard of it.
                let last = self.reported_state.map_or(last, |reported_state| {
                    if reported_state.since.wall > last.wall { reported_state.since } else { last }
                });
                let (gone, is_seen) = (
                    at.map_or(last, |at| Moment { wall: at, awake: self.now.awake - (self.now.wall - at) }),
                    at.is_some(),
                );
                let lost = self.was_at_work().unwrap_or(turn.is_some() && !answered || requests);
                if !lost {
                    return Some(self.ended(gone, Reason::ProcessGone { is_seen }, after_error(closed), closed, seen));
                }
                let open = Some(self.left_open(turn));
                if self.passed_or_recheck(gone, self.limits.crashed) {
                    let crashed = Reason::Crashed { ago: self.ago(gone), is_seen };
                    return Some(candidate(Status::Ended, gone.wall, crashed.and(open)));
                }
                Some(candidate(Status::Crashed, gone.wall, Reason::ProcessGone { is_seen }.and(open)))
            }
            Owner::Never if self.facts.progress.is_some() => {
                // One more millisecond: longer than the limit, not equal to it.
                if !self.passed_or_recheck(last, self.limits.ownerless + Span(1)) {
                    return None;
                }
                let silent = Reason::Unowned { limit: self.limits.ownerless };
                if turn.is_none() {
                    let at = last.plus(self.limits.ownerless);
                    return Some(self.ended(at, silent, after_error(closed), closed, seen));
                }
                let silent = silent.and(Some(self.left_open(turn)));
                Some(candidate(Status::Ended, last.wall + self.limits.ownerless, silent))
            }
            _ => None,
        }
    }

    /// `ended`, by a shutdown or with its process; or `failed`, if its tools were denied up to the end, until seen or
    /// for [`Limits::crashed`].
    fn ended(
        &mut self,
        at: Moment,
        why: Reason,
        more: Option<Note>,
        closed: Option<&Closed>,
        seen: Option<Time>,
    ) -> Candidate {
        let after_error =
            matches!(closed.map(|it| &it.ending), Some(Ending::Shutdown { error: Some(_), .. } | Ending::Failed(_)));
        let (denied, of) = (self.facts.denials.after(self.liveness.attached), self.facts.denials.of());
        if denied < DENIED || after_error {
            return candidate(Status::Ended, at.wall, why.and(more));
        }
        if seen.is_some_and(|seen| seen >= at.wall) || self.passed_or_recheck(at, self.limits.crashed) {
            let more = more.into_iter().chain([Note::EndedDenied { denied, of }]);
            return candidate(Status::Ended, at.wall, why.and(more));
        }
        candidate(Status::Failed, at.wall, Reason::EndedDenied { denied, of })
    }

    /// What was open when the owner ended.
    pub(super) fn left_open(&self, turn: Option<&Turn>) -> Note {
        let tools = Calls::of(turn.iter().flat_map(|turn| &turn.tools).map(|tool| &*tool.name));
        match (tools.is_empty(), self.facts.requests.is_empty()) {
            (false, _) => Note::Unfinished { tools },
            (true, false) => Note::RequestOpen,
            (true, true) => Note::TurnOpen,
        }
    }
}

/// How a session was shut down, and with what unfinished.
fn shut_down(closed: Option<&Closed>) -> (Reason, Option<Note>) {
    match closed.map(|closed| &closed.ending) {
        Some(Ending::Shutdown { unfinished, .. }) if !unfinished.is_empty() => {
            (Reason::ShutDown, Some(Note::Unfinished { tools: Calls::of(unfinished.iter().map(|name| &**name)) }))
        }
        Some(Ending::Shutdown { error: Some(fault), .. } | Ending::Failed(fault)) => {
            (Reason::ShutDownAfterError { fault: fault.clone() }, None)
        }
        _ => (Reason::ShutDown, None),
    }
}
