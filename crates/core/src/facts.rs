//! Folds a session's log into [`Facts`]: what is open, the last message, when anything happened.
//!
//! Facts are not judged here: what a silence means, and who is alive, is up to [`verdict`](super::verdict). Both share
//! one rule: a turn can end because of time alone. [`Facts::lapse`] decides that; the fold calls it before each event,
//! and the verdict for the current time. Everything that belongs to a turn lives in [`Turn`] and goes away with it.
//!
//! # The rules of the turn
//!
//! A turn opens at a prompt of the root, at the start of a round (Copilot: `assistant.turn_start`), or at the start of a
//! tool when no turn is open. Events of a sub-agent (`agentId`) may ask for permission or be denied, but neither open nor
//! close a turn. An open turn reacts to these, by their names in Copilot's log:
//!
//! - `user.message` replaces it. A steering message joins it. A prompt that Copilot gives itself in autopilot opens a new
//!   turn, but clears no denials: no user acted.
//! - `assistant.turn_end` after an answer (a message without tool requests) closes it at once, in autopilot after 4 s. While
//!   one of its tools or requests is open, it ends when those do.
//! - `assistant.turn_end` after a message with tool requests changes nothing: the turn is between rounds.
//! - `assistant.turn_end` of a round without a message closes it after 4 s; after `session.task_complete`, at once.
//! - A later response of the model (`assistant.turn_start`, or a message or tool of another `turnId` or after an
//!   `assistant.turn_end`) closes the tools before it, and their requests, whose ends were lost: a model is asked again only
//!   with all results. Shells in the background run on.
//! - `abort`, `session.error` and `session.shutdown` close it with everything open in it.
//! - `session.resume` closes it. With `continuePendingWork` everything stays open; if nothing is, 30 s without an event
//!   close it.
//! - Without an event, an answer whose round never ends closes it 5 min after its last message, tool or request. An owner
//!   that started after the last event closes it 30 s after its start.
//!
//! Responses are told apart by `Event::round`: of Claude Code by the message's id, of Codex by the `token_usage_record` at
//! the end of each. A question that does not wait for its answer (Codex's plans, `request_user_input_async`) stays in
//! [`Facts::left_question`] until the user says something. The user's own `!command` is neither a turn nor a result. A
//! compaction counts as an open tool. A tool result counts as denied only if nobody could be asked; where the log is cut,
//! that includes the result of a tool whose start was not read. A request of a background sub-agent outlives the root's
//! turn; everything of a foreground sub-agent ends with it.

mod chain;
mod last_written;
mod root;
mod schedules;
mod sub_agents;

pub use last_written::{EventType, LastWritten};
pub use schedules::Schedule;

use super::attempts::RecoveryMarks;
use super::event::{Body, Event, Limit, Tokens};
use super::hash::hash;
use super::limits::Limits;
use super::question::Question;
use super::text::{MESSAGE_MAX, NAME_MAX, legible, plain};
use super::time::{Moment, Span, Time};
use super::turn::{Call, Closed, Denials, Ending, Lapse, LastMessage, Request, SubAgent, Turn, TurnPhase};
use chain::Chain;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the log says about a session, up to some event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub turn: Option<Turn>,
    /// How the last turn ended.
    pub closed: Option<Closed>,
    /// When the session was shut down, if nothing has been written since.
    pub shut_down: Option<Moment>,
    /// Unanswered permission requests.
    pub requests: Vec<Request>,
    /// What it asked last without waiting for the answer, and when: open until the user's next message, also once the turn
    /// is over.
    pub left_question: Option<(Question, Moment)>,
    /// The latest answered requests, and whether they were allowed.
    pub answered: VecDeque<(Call, bool)>,
    /// The latest tool results, and which of them were denied because nobody could be asked.
    pub denials: Denials,
    /// Sub-agents that have not ended.
    pub sub_agents: Vec<SubAgent>,
    /// When a sub-agent last ended.
    pub rested: Option<Moment>,
    /// Background shells that have not ended, by the id that Copilot gave them.
    pub shells: Vec<Box<str>>,
    /// When the running compaction of the history began.
    pub compaction: Option<Moment>,
    /// Autopilot is on: Copilot may prompt itself after a turn.
    pub autopilot: bool,
    /// Since when everything is approved without asking.
    pub approves_all: Option<Time>,
    /// When that last changed, or the session was resumed.
    pub approvals_at: Option<Time>,
    /// The user is asked for permissions, and the log does not show that.
    pub asks_unseen: bool,
    /// The last event that is progress, or the last growth of a line still being written.
    pub progress: Option<Moment>,
    /// What that was.
    pub last_written: LastWritten,
    /// When the session, or a sub-agent of it, last asked its model: the start of a round.
    pub asked: Option<Moment>,
    /// The request with which it last asked, as a hash, if its log tells requests apart.
    request: Option<u64>,
    /// How often its model was asked in vain since it last said anything.
    pub tries: u32,
    /// The title, as recorded in the log.
    pub title: Option<Box<str>>,
    /// Two processes write the log: a fork since the last resume, or one that the resume itself made.
    pub forked: bool,
    /// The model that answers.
    pub model: Option<Box<str>>,
    /// The working folder, as recorded in the log.
    pub cwd: Option<Box<str>>,
    /// The git branch, as recorded in the log.
    pub branch: Option<Box<str>>,
    /// The size of the last request to the model, in tokens.
    pub context_tokens: Option<i64>,
    /// The most that such a request can have.
    #[serde(default)]
    pub context_window: Option<i64>,
    /// The tokens of the whole session.
    #[serde(default)]
    pub tokens: Option<i64>,
    /// Until when a limit of usage refuses its requests, as it was last told since the last prompt.
    #[serde(default)]
    pub limit_until: Option<Time>,
    /// The beginning of the last thing that its agent said, on one line.
    #[serde(default)]
    pub last_message: Option<Box<str>>,
    /// The log was read from its beginning.
    pub whole: bool,
    /// Number of lines parsed as events.
    pub events: u64,
    /// Number of lines that were not events.
    pub skipped: u64,
    /// Number of tools that ran, or may have, since the last prompt: all that started, except those denied before they
    /// ran. A tool without a result counts, because its shell may live on. If not zero, sending the prompt again might
    /// do things twice.
    pub ran: u32,
    /// When a tool that was not denied last ended.
    pub last_ran: Option<Moment>,
    /// The events by which recoveries are counted.
    pub marks: RecoveryMarks,
    /// The id of the event that opened the last turn, open or over. Orders name a turn by it. It stays the same while
    /// Copilot continues on its own in autopilot. `None` if the turn's beginning was not read.
    #[serde(rename = "root")]
    pub turn_id: Option<Box<str>>,
    /// The schedules by which it prompts itself later.
    #[serde(default)]
    pub schedules: Vec<Schedule>,
    /// The latest events, as links of a chain.
    chain: Chain,
}

/// A limit of usage that lasts longer than this is not credible: those of a month are the longest.
const LIMIT_MAX: Span = Span::hours(24 * 62);
/// A count of tokens beyond this is not credible.
const TOKENS_MAX: i64 = 1_000_000_000_000;
/// How much of a message is read for its beginning, in characters: blanks are left out of what is shown.
const MESSAGE_READ: usize = 4 * MESSAGE_MAX;
/// Number of answered requests remembered.
const ANSWERED: usize = 8;
/// Maximum length of each list of open things, so that a hostile log cannot exhaust memory. Real sessions stay below
/// ten.
const OPEN_MAX: usize = 256;

/// How much of its context a session uses, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUse {
    /// What its last request to the model used.
    pub used: i64,
    /// The most that it can use. `None`: its log does not tell.
    pub window: Option<i64>,
}

impl ContextUse {
    /// The share that is used, in per cent.
    pub fn percent(&self) -> Option<i64> {
        self.window.filter(|window| *window > 0).map(|window| self.used.saturating_mul(100) / window)
    }

    /// Whether more than nine tenths are used.
    pub fn is_nearly_full(&self) -> bool {
        self.percent().is_some_and(|percent| percent > 90)
    }
}

/// A sub-agent with a log of its own, and the facts from it.
#[derive(Clone, Copy, Debug)]
pub struct SubAgentLog<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it is for, or its kind, if that is known.
    pub name: Option<&'a str>,
    /// The facts from its log.
    pub facts: &'a Facts,
    /// It has ended, whatever its log says.
    pub is_done: bool,
}

impl Facts {
    /// Counts a line that is not an event, and otherwise ignores it.
    pub const fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Records that a line still being written has grown, which is progress.
    pub fn grew(&mut self, at: Moment, limits: &Limits) {
        self.settle(at, limits);
        if self.progress.is_none_or(|progress| progress.awake < at.awake) {
            self.progress = Some(at);
            self.last_written = LastWritten::Part;
        }
    }

    /// Takes over what outlives a turn from what was known of the same log before, which is read again only as far back as
    /// its last turn. Whether it is the same log shows in that turn.
    pub fn recall(&mut self, before: &Self) {
        let ended = |facts: &Self| facts.closed.as_ref().filter(|_| facts.turn.is_none()).map(|closed| closed.at.wall);
        let turn = |facts: &Self| (facts.turn.as_ref().map(|turn| turn.opened.wall), ended(facts));
        if self.turn_id.is_some() && self.turn_id == before.turn_id && turn(self) == turn(before) {
            self.shells.clone_from(&before.shells);
            self.schedules.clone_from(&before.schedules);
        }
    }

    /// Folds one event in. `at` is the event's own time on both clocks.
    pub fn fold(&mut self, event: &Event<'_>, at: Moment, limits: &Limits) {
        if self.chain.contains(event) {
            return;
        }
        self.events += 1;
        let forks = self.chain.push(event);
        // Another try is a sign of life, but brings the turn no further.
        let is_again = matches!(&event.body, Body::ModelAsked { request } if self.request == Some(hash(request.0)));
        if event.body.is_progress() && !is_again {
            self.settle(at, limits);
            if !self.is_beside_the_turn(event) {
                self.reach(at, LastWritten::of(event));
            }
        }
        self.fold_asking(&event.body, at);
        if let (Some(change), None) = (&event.besides.schedule, event.sub_agent) {
            self.fold_schedule(change, at);
        }
        if let (Some(tokens), None) = (event.besides.tokens, event.sub_agent) {
            self.fold_tokens(tokens);
        }
        if let (Some(message), None) = (event.besides.message, event.sub_agent)
            && let Some(message) = legible(&message.read(MESSAGE_READ), MESSAGE_MAX)
        {
            self.last_message = Some(message);
        }
        match event.besides.limit.filter(|_| event.sub_agent.is_none()) {
            Some(Limit::Until(until)) if until - at.wall <= LIMIT_MAX => self.limit_until = Some(until),
            Some(_) => self.limit_until = None,
            None if matches!(event.body, Body::Prompt { joins: false, .. }) => self.limit_until = None,
            None => {}
        }
        match event.sub_agent {
            Some(id) if event.body.is_progress() => self.fold_sub_agent(id, (&event.body, &event.besides), at),
            Some(_) => {}
            None => {
                self.fold_round(event);
                self.fold_root(&event.body, event.id, at);
            }
        }
        self.forked |= forks;
        if self.turn.as_ref().is_some_and(|turn| turn.phase == TurnPhase::AwaitsOpenWork) && !self.has_open_work() {
            self.fold_round_end(at);
        }
    }

    /// Notes how much is used. What no model can have is no count.
    fn fold_tokens(&mut self, Tokens { context, window, total }: Tokens) {
        let count = |told: Option<i64>, before| told.filter(|count| (1..=TOKENS_MAX).contains(count)).or(before);
        self.context_tokens = count(context, self.context_tokens);
        self.context_window = count(window, self.context_window);
        self.tokens = count(total, self.tokens);
    }

    /// How much of its context the session uses, if its log tells.
    pub fn context(&self) -> Option<ContextUse> {
        Some(ContextUse { used: self.context_tokens.filter(|used| *used > 0)?, window: self.context_window })
    }

    /// Notes when the model is asked, and how often in vain.
    fn fold_asking(&mut self, body: &Body<'_>, at: Moment) {
        match body {
            Body::RoundStart => self.asked = Some(at),
            Body::ModelAsked { request } => {
                let request = Some(hash(request.0));
                self.tries = if self.request == request { self.tries + 1 } else { 0 };
                (self.asked, self.request) = (Some(at), request);
            }
            Body::ModelFailed => self.tries += 1,
            Body::Prompt { .. } | Body::Message { .. } | Body::Answer { .. } | Body::ToolStart { .. } => {
                (self.request, self.tries) = (None, 0);
            }
            Body::Abort | Body::Error { .. } | Body::Shutdown => (self.request, self.tries) = (None, 0),
            _ => {}
        }
    }

    /// Records progress.
    const fn reach(&mut self, at: Moment, last_written: LastWritten) {
        self.shut_down = None;
        self.progress = Some(at);
        self.last_written = last_written;
        if let Some(turn) = &mut self.turn {
            turn.resumed = None;
        }
    }

    /// Whether the turn has an open tool or request. Ignores requests of sub-agents: those in the foreground have their
    /// tool open anyway.
    fn has_open_work(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty())
            || self.requests.iter().any(|request| request.sub_agent.is_none())
    }

    /// Records activity in the turn: if it is answered, the wait for its end starts over.
    const fn extend_answered(&mut self, at: Moment) {
        if let Some(Turn { phase: TurnPhase::Answered(since), .. }) = &mut self.turn {
            *since = at;
        }
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
            TurnPhase::Unanswered(since) => after(since, limits.finishing, Ending::Unanswered),
            TurnPhase::MayContinue(since) => after(since, limits.finishing, Ending::Completed),
            TurnPhase::Answered(since) if answered && turn.resumed.is_none() && self.requests.is_empty() => {
                after(since, limits.answered, Ending::NeverClosed)
            }
            _ => {
                let since = turn.resumed.filter(|_| self.requests.is_empty())?;
                after(since, limits.resumed, Ending::ResumedSilent)
            }
        }
    }

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

    /// Closes the turn if it has ended because of time alone by `now`.
    fn settle(&mut self, now: Moment, limits: &Limits) {
        if let Some(lapse) = self.lapse(now, limits) {
            self.close(lapse.ending, lapse.at, lapse.asks);
        }
    }

    /// Whether it is the work of a sub-agent in the background while the turn waits for its own model. A tool of the
    /// turn may wait for the sub-agent, and a person who answers the sub-agent is there.
    fn is_beside_the_turn(&self, event: &Event<'_>) -> bool {
        let asks = matches!(event.body, Body::PermissionAsked { .. } | Body::PermissionDone { .. });
        event.sub_agent.is_some() && !asks && self.turn.as_ref().is_some_and(|turn| turn.tools.is_empty())
    }

    fn open(&mut self, at: Moment, prompted: bool, id: &[u8]) -> &mut Turn {
        let start_known = prompted || self.whole || self.closed.is_some();
        if self.turn.is_none() {
            let named = start_known && !id.is_empty();
            self.turn_id = named.then(|| plain(&String::from_utf8_lossy(id), NAME_MAX));
        }
        self.turn.get_or_insert_with(|| Turn::new(at, start_known, prompted))
    }

    /// Closes the open turn with all its tools, and all requests except those of background sub-agents.
    fn close(&mut self, ending: Ending, at: Moment, asks: bool) {
        self.end_foreground_sub_agents();
        if self.turn.take().is_some() {
            if ending == Ending::Completed {
                self.marks.completed = Some(at.wall);
            }
            self.closed = Some(Closed { ending, at, asks });
        }
        let background = &self.sub_agents;
        self.requests
            .retain(|request| background.iter().any(|sub_agent| request.sub_agent.as_ref() == Some(&sub_agent.id)));
    }

    /// Removes the sub-agents in the foreground: they end with the turn.
    fn end_foreground_sub_agents(&mut self) {
        let ended: Vec<_> = self.foreground_sub_agents().into_iter().map(|sub_agent| sub_agent.id.clone()).collect();
        self.sub_agents.retain(|sub_agent| !ended.contains(&sub_agent.id));
    }

    /// Closes the turn and anything else that may be open, even if no turn is.
    fn stop_all(&mut self, ending: Ending, at: Moment) {
        self.end_foreground_sub_agents();
        self.turn = None;
        self.left_question = None;
        self.requests.clear();
        self.compaction = None;
        self.closed = Some(Closed { ending, at, asks: false });
    }

    /// Clears a failure after which the user went on without a prompt.
    fn forget_failure(&mut self, at: Moment) {
        if self.turn.is_none() && self.closed.as_ref().is_some_and(|closed| closed.failure().is_some()) {
            self.closed = Some(Closed { ending: Ending::PassedOver, at, asks: false });
        }
    }
}

#[cfg(test)]
mod tests;
