//! The session's own events, without those of its sub-agents: they open, continue and end the turn.

use super::{Facts, OPEN_MAX};
use crate::attempts::Mark;
use crate::event::{Body, Event, SessionInfo, Tokens, ToolResult};
use crate::hash::hash;
use crate::question::Question;
use crate::scan::Text;
use crate::text::{COMMAND_MAX, NAME_MAX, plain};
use crate::time::Moment;
use crate::turn::{Call, Closed, Denials, Ending, Fault, LastMessage, OpenTool, TurnPhase};

impl Facts {
    /// Folds an event of the session itself.
    pub(super) fn fold_root(&mut self, body: &Body<'_>, id: &[u8], at: Moment) {
        match *body {
            Body::Start(ref info) => {
                self.whole = true;
                self.apply_info(info);
            }
            Body::Resume { ref info, continues } => self.fold_resume(info, continues, at),
            Body::Prompt { joins: true, .. } if self.turn.is_some() => {
                self.left_question = None;
                self.extend_answered(at);
            }
            Body::Prompt { continuation, autopilot, .. } => self.fold_prompt(continuation, autopilot, id, at),
            Body::RoundStart => {
                let turn = self.open(at, false, id);
                turn.phase = TurnPhase::Running;
                turn.last_message = LastMessage::Nothing;
            }
            Body::Message { requests_tools, asks, model } => {
                self.model(model);
                self.fold_message(requests_tools, asks, at);
            }
            Body::RoundEnd => {
                self.end_response();
                self.fold_round_end(at);
            }
            Body::ResponseEnd => self.end_response(),
            Body::Asks(ref question) => self.left_question = Some((Question::clone(question), at)),
            Body::Answer { asks, model } => {
                self.model(model);
                self.fold_answer(asks, at);
            }
            Body::ToolStart { .. } => self.fold_tool_start(body, id, at),
            Body::ToolDone { by_user: true, .. } => {}
            Body::ToolDone { call, result, shell, ended, .. } => self.fold_tool_done(call, result, shell, ended, at),
            Body::PermissionAsked { .. } | Body::PermissionDone { .. } => {
                self.fold_permission(body, None, at);
                self.extend_answered(at);
            }
            Body::Abort => {
                self.marks.aborted = Some(Mark { event: hash(id), at: at.wall });
                self.stop_all(Ending::Aborted, at);
            }
            Body::TurnOver { asks } => self.fold_turn_over(asks, at),
            Body::Context { ref info, asks_unseen } => {
                self.apply_info(info);
                self.asks_unseen = asks_unseen;
            }
            Body::Error { kind, message, status } => self.fold_error(kind, message, status, at),
            Body::Shutdown => self.fold_shutdown(at),
            Body::CompactionStart => {
                self.compaction = Some(at);
                self.forget_failure(at);
            }
            Body::CompactionDone => self.compaction = None,
            Body::UserTool => self.forget_failure(at),
            Body::TaskComplete { accepted: true } => self.fold_task_complete(),
            Body::Mode { autopilot } => self.autopilot = autopilot,
            Body::Approvals { all } => self.fold_approvals(all, at),
            Body::Model(model) => self.model(model),
            Body::Title(title) => self.title = Some(plain(&title.read(NAME_MAX), NAME_MAX)),
            Body::ShellDone { shell, call } => self.fold_shell_done(shell, call),
            Body::Usage { context } => self.fold_tokens(Tokens { context, ..Tokens::default() }),
            Body::TaskComplete { accepted: false } => {}
            Body::ModelAsked { .. } | Body::ModelFailed => {}
            Body::SubAgentStart { .. } | Body::SubAgentDone | Body::Step | Body::Aside | Body::Record => {}
        }
    }

    /// Handles what shows which response of the model this is part of. A later one than the last shows that the model was
    /// given the results of all tools before it, so that those have ended, though their ends are not in the log.
    pub(super) fn fold_round(&mut self, event: &Event<'_>) {
        let Some(turn) = &mut self.turn else { return };
        let begins = matches!(event.body, Body::RoundStart);
        let is_message = matches!(event.body, Body::Message { .. }) && turn.response_over;
        if event.round.is_empty() && !begins && !is_message {
            return;
        }
        let round = Some(event.round).filter(|round| !round.is_empty()).map(hash);
        let is_next = begins || turn.response_over || turn.round.is_some() && turn.round != round;
        (turn.round, turn.response_over) = (round, false);
        if is_next {
            self.end_lost_tools();
        }
    }

    /// Closes all open tools, what they ask, and the sub-agents that they waited for. What runs on in the background does
    /// so: a sub-agent there shows itself with its next round.
    fn end_lost_tools(&mut self) {
        let waited_for: Vec<_> = self.foreground_sub_agents().into_iter().map(|one| one.id.clone()).collect();
        self.sub_agents.retain(|one| !waited_for.contains(&one.id));
        let ended = self.turn.iter_mut().flat_map(|turn| std::mem::take(&mut turn.tools));
        let shells = ended.filter(|tool| tool.detached).map(|_| "?".into());
        self.shells.extend(shells.take(OPEN_MAX.saturating_sub(self.shells.len())));
        self.requests.retain(|request| match &request.sub_agent {
            Some(id) => !waited_for.contains(id),
            None => request.call.is_none(),
        });
    }

    const fn end_response(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.response_over = true;
        }
    }

    fn fold_turn_over(&mut self, asks: bool, at: Moment) {
        self.close(Ending::Completed, at, asks);
        self.compaction = None;
    }

    fn fold_approvals(&mut self, all: bool, at: Moment) {
        self.approves_all = all.then(|| self.approves_all.unwrap_or(at.wall));
        self.approvals_at = Some(at.wall);
    }

    /// Handles a prompt that opens a turn. One by which Copilot continues on its own keeps the turn's name and what is
    /// counted since the user's last prompt.
    fn fold_prompt(&mut self, continuation: bool, autopilot: Option<bool>, id: &[u8], at: Moment) {
        self.close(Ending::Prompted, at, false);
        self.left_question = None;
        if !continuation {
            self.marks.prompt = Some(Mark { event: hash(id), at: at.wall });
            self.ran = 0;
            self.denials = Denials::default();
        }
        self.compaction = None;
        self.autopilot = autopilot.unwrap_or(self.autopilot);
        let turn_id = self.turn_id.take();
        self.open(at, true, id);
        if continuation {
            self.turn_id = turn_id;
        }
    }

    /// Handles the model's message: without requests for tools it is the answer, after which the turn should end.
    const fn fold_message(&mut self, requests_tools: bool, asks: bool, at: Moment) {
        if let Some(turn) = &mut self.turn {
            turn.last_message = if requests_tools { LastMessage::Request } else { LastMessage::Answer { asks } };
            turn.phase = if requests_tools { TurnPhase::Running } else { TurnPhase::Answered(at) };
        }
    }

    /// Handles the answer that ends its turn. Of one in several lines, the last decides.
    fn fold_answer(&mut self, asks: bool, at: Moment) {
        match (&mut self.turn, &mut self.closed) {
            (Some(_), _) => {
                self.fold_message(false, asks, at);
                self.fold_round_end(at);
            }
            (None, Some(closed @ Closed { ending: Ending::Completed, .. })) => {
                *closed = Closed { ending: Ending::Completed, at, asks };
            }
            // Its turn's beginning was not read.
            (None, None) => self.closed = Some(Closed { ending: Ending::Completed, at, asks }),
            (None, Some(_)) => {}
        }
    }

    /// Opens a tool in the turn, and the turn if its beginning was not read. A start that is written twice counts once.
    fn fold_tool_start(&mut self, body: &Body<'_>, id: &[u8], at: Moment) {
        let &Body::ToolStart { call: call_id, name, command, detached, asks, ref question, nested, asks_unseen } = body
        else {
            return;
        };
        let call = Call::new(call_id);
        let name = plain(&name.map_or("tool".into(), |name| name.read(NAME_MAX)), NAME_MAX);
        let resolved = |text: Text<'_>| match nested {
            true => plain(&Text(text.read(COMMAND_MAX * 2).as_bytes()).read(COMMAND_MAX), COMMAND_MAX),
            false => plain(&text.read(COMMAND_MAX), COMMAND_MAX),
        };
        if let Some(question) = question.as_ref().filter(|_| !asks) {
            self.left_question = Some((Question::clone(question), at));
        }
        let turn = self.open(at, false, id);
        if turn.tools.len() < OPEN_MAX && !turn.tools.iter().any(|tool| tool.call == call) {
            turn.phase = TurnPhase::Running;
            turn.used += 1;
            turn.tools.push(OpenTool {
                call,
                name,
                question: question.clone(),
                command: command.map(resolved),
                detached,
                asks,
                unasked: false,
                asks_by: asks_unseen.then(|| plain(&call_id.read(NAME_MAX), NAME_MAX)),
                at,
            });
            self.ran += 1;
        }
    }

    /// Handles an error that ended the turn.
    fn fold_error(&mut self, kind: Option<Text<'_>>, message: Option<Text<'_>>, status: Option<i64>, at: Moment) {
        let kind = kind.map(|kind| plain(&kind.read(NAME_MAX), NAME_MAX));
        let message = message.map(|message| plain(&message.read(COMMAND_MAX), COMMAND_MAX));
        self.stop_all(Ending::Failed(Fault { kind, message, status }), at);
    }

    /// Handles the end of the session's process, and with it of all that ran in it. A failure or a question with which
    /// the last turn ended still stands.
    fn fold_shutdown(&mut self, at: Moment) {
        let unfinished = self.unfinished();
        // The last turn's failure is obsolete if another turn is open.
        let last = self.closed.as_ref().filter(|_| self.turn.is_none());
        let error = last.and_then(Closed::failure).cloned();
        let asks = last.is_some_and(|closed| closed.asks);
        self.stop_all(Ending::Shutdown { unfinished, error }, at);
        if let Some(closed) = &mut self.closed {
            closed.asks = asks;
        }
        self.sub_agents.clear();
        self.shells.clear();
        self.shut_down = Some(at);
    }

    /// Handles the completion of the task in autopilot: Copilot no longer prompts itself.
    const fn fold_task_complete(&mut self) {
        self.autopilot = false;
        if let Some(turn) = &mut self.turn {
            turn.task_complete = true;
        }
    }

    fn fold_shell_done(&mut self, done: Option<Text<'_>>, call: Option<Text<'_>>) {
        let call = call.map(Call::new);
        // What ran was allowed.
        for tool in self.turn.iter_mut().flat_map(|turn| &mut turn.tools).filter(|tool| Some(tool.call) == call) {
            tool.asks_by = None;
        }
        let Some(done) = done.map(|done| plain(&done.read(NAME_MAX), NAME_MAX)) else { return };
        self.shells.retain(|shell| *shell != done);
    }

    /// Handles a resume, by a new process or, if it `continues`, by one that goes on with the open turn.
    fn fold_resume(&mut self, info: &SessionInfo<'_>, continues: bool, at: Moment) {
        // A new process asks again, unless its user has switched that off there, too.
        self.approves_all = self.approves_all.filter(|_| continues);
        if !continues {
            self.approvals_at = Some(at.wall);
        }
        self.apply_info(info);
        self.denials = Denials::default();
        if continues {
            if let Some(turn) = &mut self.turn {
                turn.resumed = Some(at);
            }
            self.forget_failure(at);
            return;
        }
        // Reopening an idle session changes nothing; anything unfinished is over.
        if self.turn.is_some() || self.closed.as_ref().is_none_or(|closed| closed.failure().is_some()) {
            self.stop_all(Ending::Resumed, at);
        }
        if let Some(closed) = &mut self.closed
            && let Ending::Shutdown { .. } = closed.ending
        {
            *closed = Closed { ending: Ending::Resumed, at, asks: closed.asks };
        }
        self.requests.clear();
        self.compaction = None;
        self.sub_agents.clear();
        self.shells.clear();
    }

    /// Handles the end of a round. Whether it ends the turn depends on the round's message and on open work.
    pub(super) fn fold_round_end(&mut self, at: Moment) {
        let (autopilot, has_open_work) = (self.autopilot, self.has_open_work());
        let Some(turn) = &mut self.turn else { return };
        match turn.last_message {
            // An earlier round requested the open work: another round will follow its result.
            LastMessage::Nothing | LastMessage::Request if has_open_work && !turn.task_complete => {
                turn.phase = TurnPhase::Running;
            }
            _ if has_open_work => turn.phase = TurnPhase::AwaitsOpenWork,
            _ if turn.task_complete => self.close(Ending::Completed, at, false),
            LastMessage::Answer { .. } if autopilot => turn.phase = TurnPhase::MayContinue(at),
            LastMessage::Answer { asks } => self.close(Ending::Completed, at, asks),
            // Between rounds: the next one is logged within milliseconds, before the model is called.
            LastMessage::Request => turn.phase = TurnPhase::Running,
            LastMessage::Nothing => turn.phase = TurnPhase::Unanswered(at),
        }
    }

    fn fold_tool_done(
        &mut self,
        call: Text<'_>,
        result: ToolResult,
        shell: Option<Text<'_>>,
        ended: Option<Text<'_>>,
        at: Moment,
    ) {
        let call = Call::new(call);
        self.fold_shell_done(ended, None);
        self.requests.retain(|request| request.call != Some(call));
        let cut = match &self.turn {
            Some(turn) => !turn.start_known,
            None => !self.whole && self.closed.is_none(),
        };
        let (mut tool, success) = (None, result == ToolResult::Success);
        if let Some(turn) = &mut self.turn {
            let index = turn.tools.iter().position(|tool| tool.call == call);
            tool = index.map(|index| turn.tools.remove(index));
            if tool.is_some() || cut {
                turn.used += u32::from(tool.is_none());
                turn.succeeded += u32::from(success);
            }
        }
        // A completion without a start belongs to a turn that is over, unless the log is cut.
        if tool.is_none() && !cut {
            return;
        }
        // Whoever could not ask waits for no answer.
        if tool.as_ref().is_some_and(|tool| !tool.asks && tool.question.is_some()) && !success {
            self.left_question = None;
        }
        let unasked = tool.as_ref().is_some_and(|tool| tool.unasked);
        let result = if unasked && !success { ToolResult::Unasked } else { result };
        match (&tool, result.has_run()) {
            (Some(_), false) => self.ran = self.ran.saturating_sub(1),
            (None, false) => {}
            (tool, true) => {
                self.ran += u32::from(tool.is_none());
                self.last_ran = Some(at);
            }
        }
        if success
            && (tool.as_ref().is_some_and(|tool| tool.detached) || shell.is_some())
            && self.shells.len() < OPEN_MAX
        {
            self.shells.push(shell.map_or_else(|| "?".into(), |id| plain(&id.read(NAME_MAX), NAME_MAX)));
        }
        self.denials.push(at, result == ToolResult::Unasked);
        self.extend_answered(at);
    }

    fn apply_info(&mut self, info: &SessionInfo<'_>) {
        self.model(info.model);
        if !info.joins {
            self.forked = info.in_use;
        }
        if let Some(cwd) = info.cwd {
            self.cwd = Some(cwd.read(4096).into());
        }
        self.branch = info.branch.map(|branch| plain(&branch.read(NAME_MAX), NAME_MAX)).or_else(|| self.branch.take());
    }

    fn model(&mut self, model: Option<Text<'_>>) {
        if let Some(model) = model
            && self.model.as_deref().map(str::as_bytes) != Some(model.0)
        {
            self.model = Some(plain(&model.read(NAME_MAX), NAME_MAX));
        }
    }
}
