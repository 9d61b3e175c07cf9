//! What an authority beside a session's log states, and the rules for a session that has one: a file, a process or a hook
//! of its agent says what it does now.
//!
//! Where there is one, it is right where the log is late or silent. It is ahead of the log by up to 0.7 s, and wins where they disagree. Between two steps of one turn it may
//! say "idle" for up to 0.3 s. Both were seen with Claude Code 2.1.330 on a busy machine.

use super::open::Silence;
use super::{Asking, Candidate, Judge, Status, asked, candidate};
use crate::owner::Owner;
use crate::time::{Moment, Span};
use crate::turn::{Closed, Ending, LastMessage, Turn};
use crate::words::calls::Calls;
use crate::words::reason::{Background, Note, Reason, Situation, What};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How long a session must have been idle to be at rest, if its log was written just before.
const RESTS_AFTER: Span = Span(500);
/// How long the authority may take to know of a prompt that is in the log. On a busy machine, over half a second.
const KNOWS_WITHIN: Span = Span::seconds(5);
/// How long before that its log was written at most.
const JUST_BEFORE: Span = Span::seconds(2);
/// How long the log may be behind with the tool that is waited with.
const LOG_BEHIND: Span = Span::seconds(1);

/// What an authority states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedState {
    /// What the session does.
    pub state: State,
    /// Since when.
    pub since: Moment,
    /// Who states it, in words for the user: "its pid file".
    pub by: Cow<'static, str>,
    /// What it waits with, where the log of the session itself does not tell: a sub-agent's tool.
    #[serde(rename = "asks")]
    pub waiting_tool: Option<WaitingTool>,
}

/// What a session does, as an authority states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It works.
    Busy,
    /// It is its user's turn.
    Idle {
        /// A shell runs in the background.
        shell: bool,
    },
    /// It waits for its user.
    Waiting(Wait),
    /// Its process has ended, and was not killed.
    Ended,
}

/// What a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// A permission.
    Permission,
    /// The answer to a question.
    Input,
    /// A dialog in its terminal, which its user may have opened.
    Dialog,
}

/// What a session waits with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingTool {
    /// The tool's name.
    pub tool: Box<str>,
    /// What the tool works on: a command, a path.
    pub text: Option<Box<str>>,
    /// The sub-agent whose tool it is: what it is for, or its kind, if only one can be meant.
    #[serde(default)]
    pub by: Option<Box<str>>,
}

impl<'a> Judge<'a> {
    /// Whether the session works, or waits in the middle of its work. `None`: nothing says so.
    pub(super) fn works_as_stated(&mut self) -> Option<bool> {
        let reported_state = self.reported_state?;
        Some(match reported_state.state {
            State::Busy | State::Waiting(Wait::Permission | Wait::Input) => true,
            State::Waiting(Wait::Dialog) => {
                self.waits_with_tool()
                    || self.facts.turn.is_some() && !self.passed_or_recheck(reported_state.since, LOG_BEHIND)
            }
            // A prompt may be in the log before the authority knows of it.
            State::Idle { .. } if self.is_opened_after(reported_state.since) => true,
            // Its log says already that the turn is over, and how.
            State::Idle { .. } if self.facts.turn.is_none() && self.is_closed_by_error() => false,
            State::Idle { .. } if self.lacks_end() => !self.passed_or_recheck(reported_state.since, LOG_BEHIND),
            State::Idle { .. } => {
                let progress = self.facts.progress.is_some_and(|last| reported_state.since.since(last) < JUST_BEFORE);
                progress && !self.passed_or_recheck(reported_state.since, RESTS_AFTER)
            }
            State::Ended => return None,
        })
    }

    fn is_closed_by_error(&self) -> bool {
        self.facts.closed.as_ref().is_some_and(|closed| closed.failure().is_some())
    }

    /// Whether its turn is open in the log, of this process, and has no answer: the line that says how it ended is still to
    /// come, but for a turn that its user stopped before the model said anything.
    fn lacks_end(&self) -> bool {
        let is_its = |turn: &Turn| match *self.owner {
            Owner::Alive { started, .. } => started.is_none_or(|started| turn.opened.wall >= started),
            _ => false,
        };
        let lacks = |turn: &&Turn| matches!(turn.last_message, LastMessage::Nothing | LastMessage::Request);
        self.facts.turn.as_ref().filter(lacks).is_some_and(is_its)
    }

    /// Whether its turn has just been opened, after this.
    fn is_opened_after(&mut self, since: Moment) -> bool {
        let opened = self.facts.turn.as_ref().map(|turn| turn.opened).filter(|opened| opened.awake > since.awake);
        opened.is_some_and(|opened| !self.passed_or_recheck(opened, KNOWS_WITHIN))
    }

    /// Whether its process was at work, or waited in the middle of it, when it was last heard of.
    pub(super) fn was_at_work(&self) -> Option<bool> {
        Some(match self.reported_state?.state {
            State::Busy | State::Waiting(Wait::Permission | Wait::Input) => true,
            State::Waiting(Wait::Dialog) => self.waits_with_tool(),
            State::Idle { .. } => false,
            State::Ended => return None,
        })
    }

    /// The turn as far as the authority knows it, and how the last one ended.
    pub(super) fn stated_turn(&mut self) -> Option<(Option<&'a Turn>, Option<Closed>)> {
        let works = self.works_as_stated()?;
        let (turn, at) = (self.facts.turn.as_ref(), self.reported_state?.since);
        Some(match turn {
            _ if works => (turn, None),
            None => (None, self.facts.closed.clone()),
            Some(turn) => {
                let (ending, asks) = match turn.last_message {
                    LastMessage::Answer { asks } => (Ending::Completed, asks),
                    LastMessage::Nothing | LastMessage::Request => (Ending::Unanswered, false),
                };
                (None, Some(Closed { ending, at, asks }))
            }
        })
    }

    /// Whether the log or the authority names the tool that waits for the user.
    fn waits_with_tool(&self) -> bool {
        self.reported_state.is_some_and(|reported_state| reported_state.waiting_tool.is_some())
            || self.facts.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty())
    }

    /// `needs-permission` or `needs-input`, if the authority says that the session waits.
    pub(super) fn waits_as_stated(&mut self, turn: Option<&Turn>) -> Option<Candidate> {
        let reported_state = self.reported_state?;
        let State::Waiting(wait) = reported_state.state else { return None };
        let (at, told) = (reported_state.since, self.waits_with_tool());
        // Its bridge knows the question whole, and by which id it is answered.
        if let Some(Asking { question, .. }) = self.liveness.questions.first().filter(|_| wait != Wait::Dialog) {
            return Some(asked(question, at.wall, self.liveness.questions.len()));
        }
        let asking = turn.and_then(Turn::question).filter(|_| reported_state.waiting_tool.is_none());
        match wait {
            Wait::Dialog if !told => None,
            Wait::Dialog => {
                Some(candidate(Status::NeedsInput, at.wall, Reason::DialogAsks { tool: self.tool_waiting(turn).0 }))
            }
            Wait::Permission if !told && !self.passed_or_recheck(at, LOG_BEHIND) => None,
            Wait::Permission if asking.is_none() => {
                let (kind, text) = self.tool_waiting(turn);
                let by = reported_state.waiting_tool.as_ref().and_then(|tool| tool.by.clone());
                let asks = Reason::AsksPermission { kind, text };
                let asks = asks.and(by.map(|name| Note::BySubAgent { name }));
                Some(candidate(Status::NeedsPermission, at.wall, asks))
            }
            Wait::Permission | Wait::Input => Some(match asking.map(|tool| (&tool.question, &tool.name)) {
                Some((Some(question), _)) => asked(question, at.wall, 1),
                Some((None, tool)) => candidate(Status::NeedsInput, at.wall, Reason::ToolAsks { tool: tool.clone() }),
                None if !told && !self.passed_or_recheck(at, LOG_BEHIND) => return None,
                None => candidate(Status::NeedsInput, at.wall, Reason::AsksThere),
            }),
        }
    }

    /// The tool that waits for the user, and its subject. Among several open tools, it is unknown which one waits.
    fn tool_waiting(&self, turn: Option<&Turn>) -> (Box<str>, Option<Box<str>>) {
        if let Some(asks) = self.reported_state.and_then(|reported_state| reported_state.waiting_tool.as_ref()) {
            return (asks.tool.clone(), asks.text.clone());
        }
        match turn.map_or(&[][..], |turn| &turn.tools) {
            [] => ("a tool".into(), None),
            [tool] => (tool.name.clone(), tool.command.clone()),
            tools => (format!("one of {}", Calls::of(tools.iter().map(|tool| &*tool.name))).into(), None),
        }
    }

    /// Judges a session that works while its log has no open turn: it is not written yet, or sub-agents work on.
    pub(super) fn works_beside_log(&mut self) -> Candidate {
        let Some(reported_state) = self.reported_state else { return self.at_rest(None) };
        let since = reported_state.since;
        if let State::Idle { .. } = reported_state.state {
            return match &self.facts.closed {
                Some(Closed { ending: Ending::Completed, .. }) => {
                    candidate(Status::Finishing, since.wall, Reason::Answered)
                }
                // What the user stopped goes on with nothing.
                closed => self.at_rest(closed.as_ref()),
            };
        }
        let background = self.background();
        // Their logs show what works, even in silence, until they have been silent for too long to count.
        if background.agents > 0 {
            return candidate(Status::Working, since.wall, Reason::InBackground { background });
        }
        let last = if self.progress().awake > since.awake { self.progress() } else { since };
        let situation =
            Situation { what: What::Untold, runs_long: false, seen: None, start_known: true, may_ask: false };
        let (quiet, stuck) = (self.limits.tool_quiet, self.limits.tool_stuck);
        if let Some(silent) = self.silent(Silence { since: last, quiet, stuck, open: true, situation }) {
            return silent;
        }
        candidate(Status::Working, since.wall, Reason::WorksAsStated { by: reported_state.by.clone() })
    }

    /// The background work of a session at rest: the authority knows better than the log what runs on.
    pub(super) fn background_as_stated(&self, known: Background) -> Background {
        match self.reported_state.map(|reported_state| reported_state.state) {
            Some(State::Idle { shell }) => {
                Background { agents: 0, shells: if shell { known.shells.max(1) } else { 0 } }
            }
            Some(State::Busy | State::Waiting(_) | State::Ended) | None => known,
        }
    }

    /// What is to be known of a session at rest with an authority.
    pub(super) fn notes_at_rest(&self) -> impl Iterator<Item = Note> + use<> {
        let is_dialog =
            self.reported_state.is_some_and(|reported_state| reported_state.state == State::Waiting(Wait::Dialog));
        let (denied, of) = (self.facts.denials.after(self.liveness.attached), self.facts.denials.of());
        let denied = (self.reported_state.is_some() && denied > 0).then_some(Note::Denied { denied, of });
        is_dialog.then_some(Note::Dialog).into_iter().chain(denied)
    }

    /// When the session ended, if the authority says that it has.
    pub(super) fn ended_as_stated(&self) -> Option<Moment> {
        self.reported_state
            .filter(|reported_state| reported_state.state == State::Ended)
            .map(|reported_state| reported_state.since)
    }
}

#[cfg(test)]
mod tests;
