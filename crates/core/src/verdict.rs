//! `(Facts, Owner, Liveness, now, Limits) -> Verdict`: one status, the reason for it, and when to judge again.
//!
//! The table in README.md lists the statuses in order; the first that applies is the verdict. The function is pure and
//! total: the same observations give the same verdict, and between an observation and
//! [`recheck_at`](Verdict::recheck_at) the verdict cannot change: whenever a rule compares a limit that has not passed yet,
//! it notes when it will, and the earliest of these is `recheck_at`.
//!
//! Two rules about evidence hold throughout. A session with an unreadable log is `quiet` while its owner lives: it is not
//! judged. If a process owned the session when an event was written, the process is not newer than the event, even if the
//! wall clock was set back since.

pub mod hook_report;
mod liveness;
mod open;
mod over;
pub mod reported_state;
mod requests;
pub(super) mod status;

pub use super::short_reason::age_step;
pub use liveness::{Answer, Asking, LastActivity, Liveness, Sample, StreamProbe, last_activity};
pub use open::ProbePlan;
pub use status::{Remedy, Status};

use super::agent::Agent;
use super::facts::Facts;
use super::limits::Limits;
use super::owner::Owner;
use super::question::Question;
use super::short_reason::{ShortReason, TurnView};
use super::time::{Moment, Span, Time};
use super::turn::{Closed, DENIED, Ending, LastMessage, Turn};
use super::words::reason::{Background, Because, Note, Reason, Situation, What, Work};
use open::Silence;
use reported_state::ReportedState;

/// How long after a stop of ours an unprompted round still belongs to the stopped turn.
const STOPPED: Span = Span::seconds(5);
/// How long a CPU sample takes.
pub const SAMPLE_DURATION: Span = Span::seconds(5);
/// How long before the limit that depends on it a sample is started, so that it is ready in time.
const SAMPLE_LEAD: Span = Span::seconds(6);
/// How long a sample is valid.
const SAMPLE_VALID_FOR: Span = Span::seconds(60);

/// The judgement on one session.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub status: Status,
    /// Since when, by the wall clock.
    pub since: Time,
    /// The reason.
    pub because: Because,
    /// The reason in the fewest words.
    pub short_reason: ShortReason,
    /// When to judge again even if nothing is observed, by the awake clock.
    pub recheck_at: Option<Time>,
    /// The same, ignoring the ages in the reason. Before this time only such an age can change, but no status.
    pub limit_at: Option<Time>,
    /// When to start a sample of the open tool's CPU use, by the awake clock.
    pub sample_at: Option<Time>,
    /// When to probe whether it receives an answer. `None` if it waits for none, or no process is known to run it.
    pub probe: Option<ProbePlan>,
    pub turn: Option<TurnView>,
    /// What its process does besides.
    pub background: Background,
}

impl Verdict {
    /// Whether the status depends on what was last said alone, and becomes `idle` once seen.
    pub fn is_by_message(&self) -> bool {
        matches!(self.because.reason, Reason::AsksInMessage | Reason::LeftQuestion { .. })
    }

    /// Has it judged again at this time, by the awake clock, at the latest.
    pub(crate) fn judge_again(&mut self, at: Time) {
        self.recheck_at = self.recheck_at.into_iter().chain([at]).min();
        self.limit_at = self.limit_at.into_iter().chain([at]).min();
    }

    /// What it asks, if it needs input and the question is known.
    pub const fn question(&self) -> Option<&Question> {
        if let Reason::Asks { question } | Reason::LeftQuestion { question } = &self.because.reason {
            Some(question)
        } else {
            None
        }
    }
}

/// A status with its reason, before the rest of the verdict is known.
pub struct Candidate {
    status: Status,
    since: Time,
    because: Because,
}

fn candidate(status: Status, since: Time, because: impl Into<Because>) -> Candidate {
    Candidate { status, since, because: because.into() }
}

/// What an adapter observed of a session, as [`judge`] needs it.
#[derive(Clone, Copy, Debug)]
pub struct Observations<'a> {
    /// Which agent it is of.
    pub agent: &'a Agent,
    /// The facts from its log.
    pub facts: &'a Facts,
    /// What an authority beside its log states.
    pub reported_state: Option<&'a ReportedState>,
}

impl<'a> Observations<'a> {
    /// The facts from a log alone, of whichever agent.
    pub fn by_log(facts: &'a Facts) -> Self {
        static ANY: Agent = Agent::ANY;
        Self { agent: &ANY, facts, reported_state: None }
    }
}

/// Judges one session by all that is told of it. `seen` is when the user last looked at it, by the wall clock.
pub fn judge(
    Observations { agent, facts, reported_state }: Observations<'_>,
    owner: &Owner,
    liveness: &Liveness,
    seen: Option<Time>,
    now: Moment,
    limits: &Limits,
) -> Verdict {
    let (limit, age) = (None, None);
    let mut judge = Judge {
        agent,
        facts,
        reported_state,
        owner,
        liveness,
        now,
        limits,
        limit,
        age,
        former: None,
        probe: None,
        last_activity: Moment::default(),
    };
    judge.former = judge.closed_by_new_owner();
    let (turn, closed) = judge.turn();
    let candidate = judge.status(turn, closed.as_ref(), seen);
    let sample_at = turn.and_then(|turn| judge.sample_at(turn, candidate.status));
    let probe = judge.probe.filter(|_| owner.live().is_some());
    let mut because = candidate.because;
    let short_reason = because.reason.short_reason(candidate.status, candidate.since, judge.last_activity);
    if facts.forked && candidate.status != Status::Ended {
        because.notes.push(Note::TwoWriters);
    }
    let recheck_at = judge.limit.into_iter().chain(judge.age).min();
    let (status, since, limit_at) = (candidate.status, candidate.since, judge.limit);
    // What a dead process left open is not running.
    let runs = !status.is_over() && !owner.is_unprompted(facts);
    let turn = turn.filter(|_| runs).map(TurnView::of);
    let last = last_activity(facts, liveness).filter(|_| status.is_work()).map(|last| last.at.wall);
    let short_reason = match (turn, last, short_reason) {
        (Some(turn), Some(last), _) => ShortReason::Turn(turn, last),
        (None, Some(last), ShortReason::Words(what)) => ShortReason::Work(what, last),
        (.., short_reason) => short_reason,
    };
    let background = judge.background_shown(status);
    Verdict { status, since, because, short_reason, recheck_at, limit_at, sample_at, probe, turn, background }
}

struct Judge<'a> {
    agent: &'a Agent,
    facts: &'a Facts,
    reported_state: Option<&'a ReportedState>,
    owner: &'a Owner,
    liveness: &'a Liveness,
    now: Moment,
    limits: &'a Limits,
    /// The earliest limit that has not passed yet.
    limit: Option<Time>,
    /// When the wording of an age changes next.
    age: Option<Time>,
    /// When the new owner's time to continue older open work ran out. Set only if it has.
    former: Option<Moment>,
    /// The next probe whether it receives an answer.
    probe: Option<ProbePlan>,
    /// What its silence counts from, if it is silent.
    last_activity: Moment,
}

impl<'a> Judge<'a> {
    /// Whether `span` has passed since `start`. If not, schedules a recheck for when it has.
    fn passed_or_recheck(&mut self, start: Moment, span: Span) -> bool {
        let at = start.awake + span;
        if at <= self.now.awake {
            return true;
        }
        self.limit = Some(self.limit.map_or(at, |sooner| sooner.min(at)));
        false
    }

    /// How long ago `start` was, rounded down to a step. Schedules a recheck for the next step.
    fn ago(&mut self, start: Moment) -> Span {
        let (step, next) = age_step(self.now.since(start));
        let at = start.awake + next;
        self.age = Some(self.age.map_or(at, |sooner| sooner.min(at)));
        step
    }

    fn progress(&self) -> Moment {
        self.facts.progress.unwrap_or_default()
    }

    /// The turn that is open now, after applying ends that the log does not show, and how the last one ended.
    fn turn(&mut self) -> (Option<&'a Turn>, Option<Closed>) {
        if let Some(reported_state) = self.stated_turn() {
            return reported_state;
        }
        let closed = || self.facts.closed.clone();
        let Some(turn) = &self.facts.turn else {
            let guessed = self.facts.closed.as_ref().is_some_and(Closed::is_guess);
            return (None, if guessed && self.liveness.has_active_work == Some(true) { None } else { closed() });
        };
        let asks = matches!(turn.last_message, LastMessage::Answer { asks: true });
        let over = |ending, at| (None, Some(Closed { ending, at, asks }));
        if let Some(stopped) = self.liveness.stopped
            && !turn.prompted
            && turn.opened.wall >= stopped
            && !self.passed_or_recheck(turn.opened, STOPPED - (turn.opened.wall - stopped))
        {
            return (None, Some(Closed { ending: Ending::Aborted, at: turn.opened, asks: false }));
        }
        let reported = self.answer().map(|answer| answer.active);
        if self.liveness.has_active_work.or(reported) == Some(false) {
            return over(Ending::NoActiveWork, self.progress());
        }
        // A server that reports active work overrules any guess that there is none.
        if self.liveness.has_active_work == Some(true) {
            return (Some(turn), None);
        }
        if let Some(lapse) = self.facts.next_lapse(self.limits) {
            let (at, ending) = (lapse.at, lapse.ending);
            if self.passed_or_recheck(at, Span::ZERO) {
                return over(ending, at);
            }
        }
        if let Some(at) = self.former {
            return over(Ending::ByFormerOwner, at);
        }
        (Some(turn), None)
    }

    fn status(&mut self, turn: Option<&Turn>, closed: Option<&Closed>, seen: Option<Time>) -> Candidate {
        let requests = self.requests(turn);
        if let Some(opened) = self.opened(turn, closed) {
            return opened;
        }
        if let Some(over) = self.over(turn, closed, !requests.is_empty(), seen) {
            return over;
        }
        if let Some(Closed { ending: Ending::Failed(fault), at, .. }) = closed
            && turn.is_none()
        {
            return candidate(Status::Failed, at.wall, Reason::Failed { fault: fault.clone() });
        }
        if let Some(asks) = self.asks_permission(&requests) {
            return asks;
        }
        if let Some(waits) = self.waits_as_stated(turn) {
            return waits;
        }
        let works = self.works_as_stated();
        if let Some(lost) = self.permission_lost().filter(|_| works != Some(false)) {
            return lost;
        }
        if let Some(asks) = self.asks(turn).filter(|_| works.is_none()) {
            return asks;
        }
        if turn.is_none() && self.facts.is_left_undone(self.liveness.left_undone) {
            let since = self.liveness.left_undone.unwrap_or_default();
            return candidate(Status::NeedsInput, since, Reason::LeftUndone);
        }
        if let Some((question, _)) = &self.facts.left_question
            && let Some(Closed { at, .. }) = closed
            && turn.is_none()
            && seen.is_none_or(|seen| seen < at.wall)
        {
            return candidate(Status::NeedsInput, at.wall, Reason::LeftQuestion { question: question.clone() });
        }
        if let Some(Closed { asks: true, at, .. }) = closed
            && turn.is_none()
            && seen.is_none_or(|seen| seen < at.wall)
        {
            let never_closed = matches!(closed, Some(Closed { ending: Ending::NeverClosed, .. }));
            let asks = Reason::AsksInMessage.and(never_closed.then_some(Note::NeverClosed));
            return candidate(Status::NeedsInput, at.wall, asks);
        }
        match turn {
            Some(turn) => self.open(turn),
            None if works == Some(true) => self.works_beside_log(),
            None => self.at_rest(closed),
        }
    }

    /// `idle`, if loaded by a process that was not prompted yet: anything open before is over.
    fn opened(&self, turn: Option<&Turn>, closed: Option<&Closed>) -> Option<Candidate> {
        let Owner::Opened { started, .. } = *self.owner else { return None };
        if !self.owner.is_unprompted(self.facts) {
            return None;
        }
        let unfinished = if turn.is_some() { Some(self.left_open(turn)) } else { after_error(closed) };
        let since = started.unwrap_or_else(|| self.progress().wall);
        Some(candidate(Status::Idle, since, Reason::Opened.and(unfinished)))
    }

    /// The server's answer, if nothing has happened since it was asked.
    fn answer(&self) -> Option<&'a Answer> {
        self.liveness.answer(self.facts)
    }

    /// `needs-input`, if a question is open: one that its server or bridge reports, or a tool that asks.
    fn asks(&self, turn: Option<&Turn>) -> Option<Candidate> {
        let works = turn.is_some() || self.liveness.has_active_work == Some(true);
        if let Some(Asking { question, since, .. }) = self.liveness.questions.first().filter(|_| works) {
            return Some(asked(question, *since, self.liveness.questions.len()));
        }
        let tool = turn.and_then(Turn::question)?;
        Some(match &tool.question {
            Some(question) => asked(question, tool.at.wall, 1),
            None => candidate(Status::NeedsInput, tool.at.wall, Reason::ToolAsks { tool: tool.name.clone() }),
        })
    }

    fn permission_lost(&self) -> Option<Candidate> {
        let denials = &self.facts.denials;
        let denied = denials.after(self.liveness.attached);
        if denied < DENIED {
            return None;
        }
        let lost = Reason::PermissionLost { denied, of: denials.of() };
        Some(candidate(Status::PermissionLost, denials.since()?.wall, lost))
    }

    /// The background work. Schedules a recheck for when a sub-agent no longer counts.
    fn background(&mut self) -> Background {
        let shells = self.facts.shells.len();
        if self.former.is_some() {
            return Background { agents: 0, shells };
        }
        let lasts: Vec<_> =
            self.facts.background_sub_agents(self.now, self.limits).map(|sub_agent| sub_agent.last).collect();
        let agents =
            lasts.into_iter().filter(|&last| !self.passed_or_recheck(last, self.limits.background_agent)).count();
        Background { agents, shells }
    }

    /// The background work shown beside this status. A session whose process is gone has none.
    fn background_shown(&self, status: Status) -> Background {
        if status.is_over() {
            return Background::default();
        }
        let agents = self.facts.background_sub_agents(self.now, self.limits).count();
        let known = Background { agents, shells: self.facts.shells.len() };
        if status.is_work() { known } else { self.background_as_stated(known) }
    }

    /// When open work counts as abandoned, because the owner started after the last event and so never opened it.
    fn closed_by_new_owner(&mut self) -> Option<Moment> {
        let Owner::Alive { started: Some(started), .. } = *self.owner else { return None };
        let last = self.facts.progress.filter(|last| last.wall < started)?;
        // The same age on the awake clock as on the wall clock, but not before the last event.
        let awake = (self.now.awake - (self.now.wall - started)).max(last.awake);
        let started = Moment { wall: started, awake };
        self.passed_or_recheck(started, self.limits.resumed).then(|| started.plus(self.limits.resumed))
    }

    /// Judges a session without an open turn: `working` in the background, or `idle`.
    fn at_rest(&mut self, closed: Option<&Closed>) -> Candidate {
        let progress = self.progress();
        // At rest since the last of its work ended: its turn, or a sub-agent, which ends by its own event or by
        // silence.
        let silent = self.facts.sub_agents.iter().map(|sub_agent| sub_agent.last.wall + self.limits.background_agent);
        let rested = self.facts.rested.map(|at| at.wall).into_iter().chain(silent).filter(|&at| at <= self.now.wall);
        let since = rested.fold(closed.map_or(progress.wall, |closed| closed.at.wall), Time::max);
        let background = self.background();
        let background = self.background_as_stated(background);
        if let Some(at) = self.facts.compaction.filter(|_| self.former.is_none()) {
            let (quiet, stuck) = (self.limits.tool_quiet, self.limits.tool_stuck);
            let (what, seen) = (What::Compaction, None);
            let situation = Situation { what, runs_long: false, seen, start_known: true, may_ask: false };
            let silent = self.silent(Silence { since: progress, quiet, stuck, open: true, situation });
            let compacts = Reason::Works { work: Work::Compacts, background };
            return silent.unwrap_or_else(|| candidate(Status::Working, at.wall, compacts));
        }
        if background.agents > 0 {
            return candidate(Status::Working, since, Reason::InBackground { background });
        }
        if self.liveness.has_active_work == Some(true) {
            return candidate(Status::Working, since, Reason::ServerWorks);
        }
        let unprompted = closed.is_none() && (self.facts.progress.is_none() || self.facts.whole);
        let ending = closed.map(|closed| closed.ending.clone());
        let rests = Reason::Rests { unprompted, ending, background };
        candidate(Status::Idle, since, rests.and(self.notes_at_rest()))
    }
}

/// `needs-input`, in the question's own words.
fn asked(question: &Question, since: Time, open: usize) -> Candidate {
    let asks = Reason::Asks { question: question.clone() };
    candidate(Status::NeedsInput, since, asks.and((open > 1).then_some(Note::Questions { open })))
}

/// The error of the last turn, for an end that is not in the log.
fn after_error(closed: Option<&Closed>) -> Option<Note> {
    Some(Note::AfterError { fault: closed?.failure()?.clone() })
}

#[cfg(test)]
mod tests;
