//! The rules for an open turn: how long it may be silent, when to probe whether it receives an answer, and how its work is
//! described.

use super::liveness::StreamProbe;
use super::{Candidate, Judge, SAMPLE_LEAD, SAMPLE_VALID_FOR, Status, candidate};
use crate::owner::Owner;
use crate::stream_probe::{ProbeResult, WINDOW};
use crate::text::least_of_size;
use crate::time::{Moment, Span, Time};
use crate::turn::{LastMessage, Turn, TurnPhase};
use crate::words::calls::Calls;
use crate::words::reason::{Note, ProbeFinding, Proof, Reason, Situation, What, Work};

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

/// When to probe whether a session receives an answer, and for how long: so early before a limit of its silence that the
/// limit is judged by what was seen, and at no other time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// When to begin, by the awake clock. `None` once every limit has been looked into.
    pub at: Option<Time>,
    /// How long until the second probe.
    pub window: Span,
}

impl ProbePlan {
    /// The next probe in a silence since `since`, with these limits, after the last one.
    fn plan(since: Moment, quiet: Span, stuck: Span, last: Option<&StreamProbe>) -> Self {
        let begin = |limit| Self { at: Some(since.awake + limit - window(limit)), window: window(limit) };
        let due = [quiet, stuck].into_iter().filter(|&limit| !is_looked_into(since, limit, last));
        let next = due.map(begin).min_by_key(|probe| probe.at);
        next.unwrap_or(Self { at: None, window: window(stuck) })
    }
}

impl Judge<'_> {
    /// Judges an open turn: `stuck`, `quiet`, `finishing` or `working`.
    pub(super) fn open(&mut self, turn: &Turn) -> Candidate {
        let progress = self.progress();
        let compacting = self.facts.compaction.is_some();
        let finishing = match turn.phase {
            TurnPhase::Answered(at) if turn.tools.is_empty() => Some((at, Reason::Answered)),
            TurnPhase::MayContinue(at) => Some((at, Reason::MayContinue)),
            TurnPhase::Unanswered(at) => Some((at, Reason::WithoutMessage)),
            TurnPhase::Running | TurnPhase::Answered(_) | TurnPhase::AwaitsOpenWork => None,
        };
        // Past that time only if a server reports active work: then it is working, with the limits for a silent model.
        if let Some((at, why)) = finishing
            && self.facts.next_lapse(self.limits).is_none_or(|lapse| !self.passed_or_recheck(lapse.at, Span::ZERO))
        {
            return candidate(Status::Finishing, at.wall, why);
        }
        let waits = !compacting && self.facts.waits_for_model();
        let stream_probe = self.liveness.stream_probe(self.facts).filter(|_| waits).copied();
        let probe_result = stream_probe.map(|stream_probe| stream_probe.probe_result);
        let (_, quiet, stuck) = turn.silence_limits(compacting, probe_result, self.limits);
        let tool = turn.tools.last().filter(|_| stream_probe.is_none());
        let open = compacting || tool.is_some();
        let runs_long = open && self.busy(progress);
        let stuck = if runs_long { self.limits.tool_busy_stuck } else { stuck };
        let what = match tool {
            Some(tool) => What::Tool { name: tool.name.clone() },
            None if open => What::Compaction,
            None if !turn.tools.is_empty() => What::SubAgent,
            None if turn.used == 0 => What::Prompt,
            None if turn.last_message == LastMessage::Request && self.facts.denials.of() == 0 => What::NoTool,
            None => What::ToolResult,
        };
        // Received data counts as activity, although the log does not have it yet.
        let last_activity = stream_probe
            .and_then(|stream_probe| stream_probe.last_activity())
            .filter(|last| last.awake > progress.awake);
        let last_activity = last_activity.unwrap_or(progress);
        // Another try of the model counts, too.
        let tried = self.facts.asked.filter(|asked| waits && self.facts.tries > 0 && asked.awake > last_activity.awake);
        let last_activity = tried.unwrap_or(last_activity);
        if waits {
            // Before the first probe, the limits of what it would find.
            let probe_result = probe_result.unwrap_or(ProbeResult::Silent { may_not_stream: false });
            let (_, quiet, stuck) = turn.silence_limits(compacting, Some(probe_result), self.limits);
            self.probe = Some(ProbePlan::plan(last_activity, quiet, stuck, stream_probe.as_ref()));
        }
        if let Some(proven) = stream_probe.and_then(|stream_probe| self.proven(&stream_probe, progress)) {
            return proven;
        }
        let seen = stream_probe.and_then(|stream_probe| self.seen(&stream_probe));
        // Where the log does not show requests, a tool that does nothing may wait for its user.
        let may_ask = self.facts.asks_unseen && tool.is_some() && !runs_long;
        let situation = Situation { what, runs_long, seen, start_known: turn.start_known, may_ask };
        if let Some(silent) = self.silent(Silence { since: last_activity, quiet, stuck, open, situation }) {
            return silent;
        }
        // Without a lock, the log is the only evidence.
        let unowned = (*self.owner == Owner::Never).then_some(Note::NoProcess);
        let notes = (!turn.start_known).then_some(Note::StartUnknown).into_iter().chain(unowned);
        let works = Reason::Works { work: self.work(turn, probe_result), background: self.background() };
        candidate(Status::Working, turn.opened.wall, works.and(notes))
    }

    /// `stuck` or `quiet`, if the silence has passed its limit. If something is `open` and its server reports active
    /// work, it is not stuck: it is busy, or has a question that we cannot see.
    pub(super) fn silent(&mut self, silence: Silence) -> Option<Candidate> {
        let Silence { since, quiet, stuck, open, situation } = silence;
        self.last_activity = since;
        let reported_busy = open && self.answer().is_some_and(|answer| answer.active);
        let may_be_stuck = !reported_busy && !self.liveness.querying_server;
        // Call `passed_or_recheck` even if it cannot be stuck: at this limit the CPU sample is ready, and the words depend on
        // that.
        if self.passed_or_recheck(since, stuck) && may_be_stuck && self.is_looked_into(since, stuck) {
            let silence = self.ago(since).max(stuck);
            return Some(candidate(Status::Stuck, since.wall + stuck, Reason::Silent { silence, situation }));
        }
        // If the limits are equal or reversed, it is quiet instead of stuck.
        let quiet = if may_be_stuck { quiet } else { quiet.min(stuck) };
        if self.passed_or_recheck(since, quiet) && self.is_looked_into(since, quiet) {
            let silence = self.ago(since).max(quiet);
            // A process that uses the CPU is not waiting for an answer.
            let may_ask = situation.may_ask || reported_busy && !self.busy(since);
            let situation = Situation { may_ask, ..situation };
            return Some(candidate(Status::Quiet, since.wall + quiet, Reason::Silent { silence, situation }));
        }
        None
    }

    /// Whether nothing more will be found out for this limit of a silence: no probe is under way, or the last one was for
    /// it.
    fn is_looked_into(&self, since: Moment, limit: Span) -> bool {
        let last = self.liveness.stream_probe(self.facts);
        let is_probing_stream = self.liveness.probing_stream && self.probe.is_some();
        !is_probing_stream || is_looked_into(since, limit, last)
    }

    /// `stuck` before any limit, if it is proven that no answer can arrive as things are.
    fn proven(&mut self, stream_probe: &StreamProbe, progress: Moment) -> Option<Candidate> {
        let proof = match stream_probe.probe_result {
            ProbeResult::Unanswered => Proof::Unanswered,
            ProbeResult::Connecting => Proof::Connecting,
            ProbeResult::Unread => Proof::Unread { agent: self.agent.clone() },
            _ => return None,
        };
        let (silence, agent) = (self.ago(progress), self.agent.clone());
        Some(candidate(Status::Stuck, stream_probe.at.wall, Reason::Unheard { silence, proof, agent }))
    }

    /// What was found out about a silence that only its limits can judge.
    fn seen(&mut self, stream_probe: &StreamProbe) -> Option<ProbeFinding> {
        // Where nothing has arrived yet, it has been silent for as long as its log.
        let last = stream_probe.last.filter(|last| last.awake > self.progress().awake).unwrap_or(self.progress());
        Some(match stream_probe.probe_result {
            ProbeResult::Silent { may_not_stream } => {
                ProbeFinding::Silent { age: self.ago(last), in_one_piece: may_not_stream }
            }
            ProbeResult::Kept => ProbeFinding::Kept { age: self.ago(self.progress()) },
            ProbeResult::NoConnection => ProbeFinding::NoConnection { agent: self.agent.clone() },
            ProbeResult::Unknown(_) => ProbeFinding::Unknown,
            // It has stopped since.
            ProbeResult::Receiving { .. } => ProbeFinding::Silent { age: self.ago(last), in_one_piece: false },
            ProbeResult::Unanswered | ProbeResult::Connecting | ProbeResult::Unread => return None,
        })
    }

    fn work(&self, turn: &Turn, probe_result: Option<ProbeResult>) -> Work {
        match &turn.tools[..] {
            _ if let Some(ProbeResult::Receiving { bytes, within }) = probe_result => {
                // No more than is shown: a reason that is worded alike is the same.
                Work::Receives { bytes: bytes.map(least_of_size), within }
            }
            [] if self.facts.compaction.is_some() => Work::Compacts,
            [] if turn.resumed.is_some() => Work::Resumed,
            [] if self.facts.tries > 0 => Work::Retries { tries: self.facts.tries as usize },
            [] => Work::Thinks,
            tools => Work::Tools { calls: Calls::of(tools.iter().map(|tool| &*tool.name)) },
        }
    }

    /// Whether the open tool counts as busy.
    pub(super) fn busy(&self, progress: Moment) -> bool {
        self.liveness.has_active_work == Some(true)
            || self.liveness.busy.is_some_and(|sample| sample.busy && sample.at.awake > progress.awake)
    }

    /// When to sample the CPU use: ahead of the limit that depends on it, and again when the sample expires.
    pub(super) fn sample_at(&self, turn: &Turn, status: Status) -> Option<Time> {
        let waits = status.is_silent() || status == Status::Working;
        if !waits
            || turn.tools.is_empty()
            || !matches!(self.owner, Owner::Alive { .. })
            || self.liveness.has_active_work.is_some()
        {
            return None;
        }
        let progress = self.progress().awake;
        let due = progress + (self.limits.tool_stuck - SAMPLE_LEAD).max(Span::ZERO);
        match self.liveness.busy.filter(|sample| sample.at.awake > progress) {
            // Beyond this limit another sample changes nothing.
            Some(_) if self.now.since(self.progress()) >= self.limits.tool_busy_stuck => None,
            Some(sample) => Some(due.max(sample.at.awake + SAMPLE_VALID_FOR)),
            None => Some(due),
        }
    }
}

/// Whether the last probe was for this limit of a silence: such a probe ends when the limit passes.
fn is_looked_into(since: Moment, limit: Span, last: Option<&StreamProbe>) -> bool {
    last.is_some_and(|last| last.at.awake >= since.awake + limit)
}

/// How long a probe for a limit takes: shorter for a short limit, so that it does not begin with the silence.
fn window(limit: Span) -> Span {
    WINDOW.min(Span(limit.0 / 2)).max(Span::ZERO)
}
