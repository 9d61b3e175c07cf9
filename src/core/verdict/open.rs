//! The rules for an open turn: how long it may be silent, and how its work is described.

use super::{Found, Judge, SAMPLE_LEAD, SAMPLE_VALID_FOR, Status, found};
use crate::core::gist::Gist;
use crate::core::owner::Owner;
use crate::core::text::{COMMAND_MAX, counted, listed, plain};
use crate::core::time::{Moment, Span, Time};
use crate::core::turn::{LastMessage, Phase, Turn};

/// The first words of the reason for an open tool with a busy process.
const RUNS_LONG: &str = "running long";

impl Judge<'_> {
    /// Judges an open turn: `stuck`, `quiet`, `finishing` or `working`.
    pub(super) fn open(&mut self, turn: &Turn) -> Found {
        let progress = self.progress();
        let compacting = self.facts.compaction.is_some();
        let tool = turn.tools.last();
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
        let (_, quiet, stuck) = turn.silence_limits(compacting, self.limits);
        let (stuck, situation) = if compacting || tool.is_some() {
            let what =
                tool.map_or_else(|| "compacting its history".to_owned(), |tool| format!("{} is open", tool.name));
            if self.busy(progress) {
                (self.limits.tool_busy_stuck, format!("{RUNS_LONG}: {what}, its process is busy"))
            } else {
                (stuck, what)
            }
        } else if turn.used > 0 {
            let what = match turn.last_message {
                LastMessage::Request if self.facts.denials.of() == 0 => "no tool open",
                _ => "no answer since the last tool result",
            };
            (stuck, what.to_owned())
        } else {
            (stuck, "no tool used in this turn".to_owned())
        };
        let unknown = if turn.start_known { "" } else { "; the start of its turn is unknown" };
        let open = compacting || tool.is_some();
        if let Some(silent) = self.silent(progress, quiet, stuck, open, &format!("{situation}{unknown}")) {
            return silent;
        }
        // Without a lock, the log is the only evidence.
        let unowned = if *self.owner == Owner::Never { "; no process is known to run it" } else { "" };
        found(Status::Working, turn.opened.wall, self.working_words(turn) + unknown + unowned)
    }

    /// `stuck` or `quiet`, if the silence has passed its limit. If something is `open` and its server reports active
    /// work, it is not stuck: it is busy, or has a question that we cannot see.
    pub(super) fn silent(
        &mut self,
        progress: Moment,
        quiet: Span,
        stuck: Span,
        open: bool,
        situation: &str,
    ) -> Option<Found> {
        let runs_long = situation.starts_with(RUNS_LONG);
        let gist = |what: &str| Gist::Silent { since: progress, what: plain(what, COMMAND_MAX), runs_long };
        let reported_busy = open && self.answer().is_some_and(|answer| answer.active);
        let may_be_stuck = !reported_busy && !self.live.asking;
        // Call `passed` even if it cannot be stuck: at this limit the CPU sample is ready, and the words depend on
        // that.
        if self.passed(progress, stuck) && may_be_stuck {
            let silence = self.ago(progress).max(stuck);
            let stuck = found(Status::Stuck, progress.wall + stuck, format!("silent {silence}, {situation}"));
            return Some(Found { gist: gist(situation), ..stuck });
        }
        // If the limits are equal or reversed, it is quiet instead of stuck.
        let quiet = if may_be_stuck { quiet } else { quiet.min(stuck) };
        if self.passed(progress, quiet) {
            let silence = self.ago(progress).max(quiet);
            // A process that uses the CPU is not waiting for an answer.
            let note = if reported_busy && !self.busy(progress) { ": busy, or asking you there" } else { "" };
            let situation = format!("{situation}{note}");
            let quiet = found(Status::Quiet, progress.wall + quiet, format!("silent {silence}, {situation}"));
            return Some(Found { gist: gist(&situation), ..quiet });
        }
        None
    }

    pub(super) fn working_words(&mut self, turn: &Turn) -> String {
        let mut words = match &turn.tools[..] {
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
