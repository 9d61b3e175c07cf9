//! The rules for an open turn: how long it may be silent, and how its work is described.

use super::live::Reception;
use super::look::{Look, Silence, Situation, is_looked_into};
use super::{Found, Judge, SAMPLE_LEAD, SAMPLE_VALID_FOR, Status, found};
use crate::core::gist::Gist;
use crate::core::owner::Owner;
use crate::core::reception::Finding;
use crate::core::text::{COMMAND_MAX, counted, listed, plain, size};
use crate::core::time::{Moment, Span, Time};
use crate::core::turn::{LastMessage, Phase, Turn};

/// What Copilot does about a model that it cannot hear.
const TRIES_AGAIN: &str = "; Copilot tries again by itself";

impl Judge<'_> {
    /// Judges an open turn: `stuck`, `quiet`, `finishing` or `working`.
    pub(super) fn open(&mut self, turn: &Turn) -> Found {
        let progress = self.progress();
        let compacting = self.facts.compaction.is_some();
        let finishing = match turn.phase {
            Phase::Answered(at) if turn.tools.is_empty() => {
                Some((at, "the answer has come, its turn has not ended yet"))
            }
            Phase::MayContinue(at) => Some((at, "answered; in autopilot it may go on by itself")),
            Phase::Unanswered(at) => Some((at, "a round ended without a message")),
            Phase::Running | Phase::Answered(_) | Phase::Held => None,
        };
        // Past that time only if a server reports active work: then it is working, with the limits for a silent model.
        if let Some((at, why)) = finishing
            && self.facts.next_lapse(self.limits).is_none_or(|lapse| !self.passed(lapse.at, Span::ZERO))
        {
            return found(Status::Finishing, at.wall, why);
        }
        let waits = !compacting && self.facts.waits_for_model();
        let reception = self.live.reception(self.facts).filter(|_| waits).copied();
        let finding = reception.map(|reception| reception.finding);
        let (_, quiet, stuck) = turn.silence_limits(compacting, finding, self.limits);
        let tool = turn.tools.last().filter(|_| reception.is_none());
        let open = compacting || tool.is_some();
        let (stuck, runs_long, what) = if open {
            let what =
                tool.map_or_else(|| "compacting its history".to_owned(), |tool| format!("{} is open", tool.name));
            if self.busy(progress) {
                (self.limits.tool_busy_stuck, true, format!("running long: {what}, its process is busy"))
            } else {
                (stuck, false, what)
            }
        } else if !turn.tools.is_empty() {
            (stuck, false, "a sub-agent waits for its model".to_owned())
        } else if turn.used > 0 {
            let what = match turn.last_message {
                LastMessage::Request if self.facts.denials.of() == 0 => "no tool open",
                _ => "no answer since the last tool result",
            };
            (stuck, false, what.to_owned())
        } else {
            (stuck, false, "no tool used in this turn".to_owned())
        };
        // What is received is heard, although the log does not have it yet.
        let heard = reception.and_then(|reception| reception.heard()).filter(|heard| heard.awake > progress.awake);
        let heard = heard.unwrap_or(progress);
        if waits {
            // Before the first look, the limits of what it would find.
            let finding = finding.unwrap_or(Finding::Silent { may_not_stream: false });
            let (_, quiet, stuck) = turn.silence_limits(compacting, Some(finding), self.limits);
            self.look = Some(Look::plan(heard, quiet, stuck, reception.as_ref()));
        }
        let unknown = if turn.start_known { "" } else { "; the start of its turn is unknown" };
        if let Some(proven) = reception.and_then(|reception| self.proven(&reception, progress)) {
            return proven;
        }
        let seen = reception.map(|reception| self.reception_words(&reception)).unwrap_or_default();
        let situation = Situation { words: format!("{what}{seen}{unknown}"), runs_long };
        let silence = Silence { since: heard, quiet, stuck, open, situation };
        if let Some(silent) = self.silent(&silence) {
            return silent;
        }
        // Without a lock, the log is the only evidence.
        let unowned = if *self.owner == Owner::Never { "; no process is known to run it" } else { "" };
        found(Status::Working, turn.opened.wall, self.working_words(turn, finding) + unknown + unowned)
    }

    /// `stuck` or `quiet`, if the silence has passed its limit. If something is `open` and its server reports active
    /// work, it is not stuck: it is busy, or has a question that we cannot see.
    pub(super) fn silent(&mut self, silence: &Silence) -> Option<Found> {
        let &Silence { since, quiet, stuck, open, situation: Situation { words: ref situation, runs_long } } = silence;
        let gist = |what: &str| Gist::Silent { since, what: plain(what, COMMAND_MAX), runs_long };
        let reported_busy = open && self.answer().is_some_and(|answer| answer.active);
        let may_be_stuck = !reported_busy && !self.live.asking;
        // Call `passed` even if it cannot be stuck: at this limit the CPU sample is ready, and the words depend on
        // that.
        if self.passed(since, stuck) && may_be_stuck && self.is_looked_into(since, stuck) {
            let silence = self.ago(since).max(stuck);
            let found = found(Status::Stuck, since.wall + stuck, format!("silent {silence}, {situation}"));
            return Some(Found { gist: gist(situation), ..found });
        }
        // If the limits are equal or reversed, it is quiet instead of stuck.
        let quiet = if may_be_stuck { quiet } else { quiet.min(stuck) };
        if self.passed(since, quiet) && self.is_looked_into(since, quiet) {
            let silence = self.ago(since).max(quiet);
            // A process that uses the CPU is not waiting for an answer.
            let note = if reported_busy && !self.busy(since) { ": busy, or asking you there" } else { "" };
            let situation = format!("{situation}{note}");
            let quiet = found(Status::Quiet, since.wall + quiet, format!("silent {silence}, {situation}"));
            return Some(Found { gist: gist(&situation), ..quiet });
        }
        None
    }

    /// Whether nothing more will be found out for this limit of a silence: no look is under way, or the last one was for
    /// it.
    fn is_looked_into(&self, since: Moment, limit: Span) -> bool {
        let last = self.live.reception(self.facts);
        let is_looking = self.live.looking && self.look.is_some();
        !is_looking || is_looked_into(since, limit, last)
    }

    /// `stuck` before any limit, if it is proven that no answer can arrive as things are.
    fn proven(&mut self, reception: &Reception, progress: Moment) -> Option<Found> {
        let (gist, then) = match reception.finding {
            Finding::Unanswered => ("the network does not answer", TRIES_AGAIN),
            Finding::Connecting => ("it cannot reach its model", TRIES_AGAIN),
            Finding::Unread => ("Copilot does not take what arrives", ""),
            _ => return None,
        };
        let silence = match self.ago(progress) {
            Span::ZERO => String::new(),
            silence => format!("silent {silence}, "),
        };
        let because = format!("{silence}{gist}{then}");
        Some(Found { gist: Gist::of(gist), ..found(Status::Stuck, reception.at.wall, because) })
    }

    /// What was found out about a silence that only its limits can judge, as a suffix.
    fn reception_words(&mut self, reception: &Reception) -> String {
        // Where nothing has arrived yet, it has been silent for as long as its log.
        let last = reception.last.filter(|last| last.awake > self.progress().awake).unwrap_or(self.progress());
        let for_so_long = |judge: &mut Self, since| match judge.ago(since) {
            Span::ZERO => format!("for less than {}", Span::minutes(1)),
            silence => format!("for {silence}"),
        };
        match reception.finding {
            Finding::Silent { may_not_stream } => {
                let silence = for_so_long(self, last);
                let unseen = if may_not_stream { "; the answer may come in one piece" } else { "" };
                format!("; its connection to the model has been silent {silence}{unseen}")
            }
            Finding::Kept => {
                let silence = for_so_long(self, self.progress());
                format!("; its model gives signs of life, no text {silence}")
            }
            Finding::NoConnection => format!("; no connection to a model is open{TRIES_AGAIN}"),
            Finding::Unknown(_) => "; no way to see whether it receives an answer".to_owned(),
            // It has stopped since.
            Finding::Receiving { .. } => {
                let silence = for_so_long(self, last);
                format!("; its connection to the model has been silent {silence}")
            }
            Finding::Unanswered | Finding::Connecting | Finding::Unread => String::new(),
        }
    }

    pub(super) fn working_words(&mut self, turn: &Turn, finding: Option<Finding>) -> String {
        let mut words = match &turn.tools[..] {
            _ if let Some(Finding::Receiving { bytes, within }) = finding => {
                let bytes = bytes.map(|bytes| format!(": {} in the last {within}", size(bytes))).unwrap_or_default();
                format!("receiving an answer{bytes}")
            }
            [] if self.facts.compaction.is_some() => "compacting its history".to_owned(),
            [] if turn.resumed.is_some() => "resumed with its pending work".to_owned(),
            [] => "the model thinks".to_owned(),
            [tool] => format!("{} is open", tool.name),
            tools => {
                let names: Vec<_> = tools.iter().map(|tool| &*tool.name).take(3).collect();
                format!("{} are open", listed(&names))
            }
        };
        words.push_str(&self.background_words());
        words
    }

    pub(super) fn background_words(&mut self) -> String {
        let agents = self.background();
        let agents = if agents > 0 { format!(", {}", counted(agents, "background agent")) } else { String::new() };
        let shells = self.facts.shells.len();
        if shells > 0 { format!("{agents}, {}", counted(shells, "background shell")) } else { agents }
    }

    /// Whether the open tool counts as busy.
    pub(super) fn busy(&self, progress: Moment) -> bool {
        self.live.has_active_work == Some(true)
            || self.live.busy.is_some_and(|sample| sample.busy && sample.at.awake > progress.awake)
    }

    /// When to sample the CPU use: ahead of the limit that depends on it, and again when the sample expires.
    pub(super) fn sample_at(&self, turn: &Turn, status: Status) -> Option<Time> {
        let waits = matches!(status, Status::Working | Status::Quiet | Status::Stuck);
        if !waits
            || turn.tools.is_empty()
            || !matches!(self.owner, Owner::Alive { .. })
            || self.live.has_active_work.is_some()
        {
            return None;
        }
        let progress = self.progress().awake;
        let due = progress + (self.limits.tool_stuck - SAMPLE_LEAD).max(Span::ZERO);
        match self.live.busy.filter(|sample| sample.at.awake > progress) {
            // Beyond this limit another sample changes nothing.
            Some(_) if self.now.since(self.progress()) >= self.limits.tool_busy_stuck => None,
            Some(sample) => Some(due.max(sample.at.awake + SAMPLE_VALID_FOR)),
            None => Some(due),
        }
    }
}
