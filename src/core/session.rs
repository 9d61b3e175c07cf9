//! A session's log folded into [`Facts`]: what is open, what was said last, when anything happened.
//!
//! The rules of the turn are those of ARCHITECTURE.md. Facts hold no judgement: what a silence means, and who is alive,
//! is for [`verdict`](super::verdict). The one thing that both share is that a turn can end by time alone; where it does is
//! told by [`Facts::lapse`], which the fold asks before each event and the verdict asks now.

mod beside;
mod lapse;

use super::asked::Question;
use super::attempts::{Mark, Marks};
use super::event::{Begun, Body, Event};
use super::limits::Limits;
use super::scan::Text;
use super::text::{COMMAND_MAX, NAME_MAX, plain};
use super::time::Moment;
use super::turn::{Agent, Call, Closed, Denials, Ending, OpenTool, Phase, Request, Said, Turn, asks};
use std::collections::VecDeque;

/// What the log says of a session, up to some event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The turn that is open.
    pub turn: Option<Turn>,
    /// How the last turn ended.
    pub closed: Option<Closed>,
    /// When the session was shut down, if nothing was written since.
    pub shut_down: Option<Moment>,
    /// Permission requests that nobody has answered.
    pub requests: Vec<Request>,
    /// The last of them that were answered, and whether they were allowed.
    pub answered: VecDeque<(Call, bool)>,
    /// The last tool results, and how many of them were denied because nobody could be asked.
    pub denials: Denials,
    /// Sub-agents that have not ended.
    pub agents: Vec<Agent>,
    /// When a sub-agent last ended.
    pub rested: Option<Moment>,
    /// Background shells that have not ended, by the id that Copilot gave them.
    pub shells: Vec<Box<str>>,
    /// Since when the log is being compacted.
    pub compaction: Option<Moment>,
    /// Copilot prompts itself on after a turn.
    pub autopilot: bool,
    /// The last event that is not a mere metric, or the last growth of a line still being written.
    pub progress: Option<Moment>,
    /// Two processes write the log: an event went on from one that another had gone on from, since the last resume.
    pub forked: bool,
    /// The model that answers.
    pub model: Option<Box<str>>,
    /// The folder that the session said it works in.
    pub cwd: Option<Box<str>>,
    /// The git branch that it said.
    pub branch: Option<Box<str>>,
    /// The size of the last request to the model, in tokens.
    pub context_tokens: Option<i64>,
    /// The beginning of the log was read.
    pub whole: bool,
    /// Lines read as events.
    pub events: u64,
    /// Lines that were no event.
    pub skipped: u64,
    /// The tools since the last prompt that ran, or may have: all that started, but for those that were denied before they
    /// ran. One without a result counts: its shell may live on. Sending the prompt again might do things twice.
    pub ran: u32,
    /// When the last tool ended that was not denied.
    pub last_ran: Option<Moment>,
    /// What the recoveries of a session are counted by.
    pub marks: Marks,
    /// The id of the event that opened the last turn, open or over, by which an order names the turn that it is for. A turn that
    /// Copilot goes on with by itself in autopilot keeps it; `None` where the turn's beginning was not read.
    pub root: Option<Box<str>>,
    /// Hashes of the last events' ids.
    recent: VecDeque<u64>,
}

/// So many answered requests are remembered.
const ANSWERED: usize = 8;
/// How many events back a repeated or forked line is noticed.
const RECENT: usize = 32;
/// Bound on each list of what is open, so that a hostile log cannot grow the program. Real sessions stay below ten.
const OPEN_MAX: usize = 256;

impl Facts {
    /// A line that was no event: counted, and otherwise as if it were not there.
    pub const fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Bytes of a line still being written are progress.
    pub fn grew(&mut self, at: Moment, limits: &Limits) {
        self.settle(at, limits);
        if self.progress.is_none_or(|progress| progress.awake < at.awake) {
            self.progress = Some(at);
        }
    }

    /// Folds one event in. `at` is the event's own time on both clocks.
    pub fn fold(&mut self, event: &Event<'_>, at: Moment, limits: &Limits) {
        // Metrics are no sign of life, and those of the model stand beside the chain of events.
        if let Body::Metric | Body::Usage { .. } = event.body {
            self.events += 1;
            if let (Body::Usage { context }, None) = (&event.body, event.agent) {
                self.context_tokens = context.or(self.context_tokens);
            }
            return;
        }
        if self.is_repeated(event) {
            return;
        }
        self.events += 1;
        self.settle(at, limits);
        self.shut_down = None;
        self.progress = Some(at);
        if let Some(turn) = &mut self.turn {
            turn.resumed = None;
        }
        match event.agent {
            Some(agent) => self.fold_agent(agent, &event.body, at),
            None => self.fold_root(&event.body, event.id, at),
        }
        if self.turn.as_ref().is_some_and(|turn| turn.phase == Phase::Held) && !self.waits() {
            self.fold_round_end(at);
        }
    }

    /// Whether a tool or a request of the open turn is open, those of sub-agents in the background aside: those in the
    /// foreground have their tool open.
    fn waits(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| !turn.tools.is_empty())
            || self.requests.iter().any(|request| request.agent.is_none())
    }

    /// Something was done in the turn: an answer that has come waits for its end anew.
    const fn go_on(&mut self, at: Moment) {
        if let Some(Turn { phase: Phase::Answered(since), .. }) = &mut self.turn {
            *since = at;
        }
    }

    /// Closes the turn if time alone has, by `now`.
    fn settle(&mut self, now: Moment, limits: &Limits) {
        if let Some(lapse) = self.lapse(now, limits) {
            self.close(lapse.ending, lapse.at, lapse.asks);
        }
    }

    /// Whether the same line was read before; notices, too, when two writers went on from the same event.
    fn is_repeated(&mut self, event: &Event<'_>) -> bool {
        if event.id.is_empty() {
            return false;
        }
        let (id, parent) = (hash(event.id), hash(event.parent));
        if self.recent.contains(&id) {
            return true;
        }
        if !event.parent.is_empty() && self.recent.iter().rev().skip(1).any(|&earlier| earlier == parent) {
            self.forked = true;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(id);
        false
    }

    fn fold_root(&mut self, body: &Body<'_>, id: &[u8], at: Moment) {
        match *body {
            Body::Start(ref begun) => {
                self.whole = true;
                self.begun(begun);
            }
            Body::Resume { ref begun, continues } => self.fold_resume(begun, continues, at),
            Body::Prompt { joins: true, .. } if self.turn.is_some() => self.go_on(at),
            Body::Prompt { continuation, autopilot, .. } => {
                self.close(Ending::Prompted, at, false);
                if !continuation {
                    self.marks.prompt = Some(Mark { event: hash(id), at: at.wall });
                    self.ran = 0;
                    self.denials = Denials::default();
                }
                self.compaction = None;
                self.autopilot = autopilot.unwrap_or(self.autopilot);
                let root = self.root.take();
                self.open(at, true, id);
                if continuation {
                    self.root = root;
                }
            }
            Body::RoundStart => {
                let turn = self.open(at, false, id);
                turn.phase = Phase::Running;
                turn.said = Said::Nothing;
            }
            Body::Message { requests_tools, asks, model } => {
                self.model(model);
                if let Some(turn) = &mut self.turn {
                    turn.said = if requests_tools { Said::Request } else { Said::Answer { asks } };
                    turn.phase = if requests_tools { Phase::Running } else { Phase::Answered(at) };
                }
            }
            Body::RoundEnd => self.fold_round_end(at),
            Body::ToolStart { call, name, command, arguments, detached } => {
                let call = Call::new(call);
                let name = plain(&name.map_or("tool".into(), |name| name.read(NAME_MAX)), NAME_MAX);
                let question = if asks(&name) { Question::read(arguments).map(Box::new) } else { None };
                let turn = self.open(at, false, id);
                if turn.tools.len() < OPEN_MAX && !turn.tools.iter().any(|tool| tool.call == call) {
                    turn.phase = Phase::Running;
                    turn.used += 1;
                    turn.tools.push(OpenTool {
                        call,
                        name,
                        question,
                        command: command.map(|command| plain(&command.read(COMMAND_MAX), COMMAND_MAX)),
                        detached,
                        unasked: false,
                        at,
                    });
                    self.ran += 1;
                }
            }
            Body::ToolDone { call, success, denied, unasked, of_user, shell } => {
                if !of_user {
                    self.fold_tool_done(Call::new(call), success, denied, unasked, shell, at);
                }
            }
            Body::PermissionAsked { .. } | Body::PermissionDone { .. } => {
                self.fold_permission(body, None, at);
                self.go_on(at);
            }
            Body::Abort => {
                self.marks.aborted = Some(Mark { event: hash(id), at: at.wall });
                self.stop_all(Ending::Aborted, at);
            }
            Body::Error { kind, message, status } => {
                let kind = kind.map(|kind| plain(&kind.read(NAME_MAX), NAME_MAX));
                let message = message.map(|message| plain(&message.read(COMMAND_MAX), COMMAND_MAX));
                self.stop_all(Ending::Failed { kind, message, status }, at);
            }
            Body::Shutdown => {
                let unfinished = self.unfinished();
                // What the last turn ended in is over where another is open.
                let last = self.closed.as_ref().filter(|_| self.turn.is_none());
                let error = last.and_then(Closed::failure).cloned();
                let asks = last.is_some_and(|closed| closed.asks);
                self.stop_all(Ending::Shutdown { unfinished, error: error.map(Box::new) }, at);
                if let Some(closed) = &mut self.closed {
                    closed.asks = asks;
                }
                self.agents.clear();
                self.shells.clear();
                self.shut_down = Some(at);
            }
            Body::CompactionStart => {
                self.compaction = Some(at);
                self.forget_failure(at);
            }
            Body::CompactionDone => self.compaction = None,
            Body::UserTool => self.forget_failure(at),
            Body::TaskComplete { accepted } => {
                if accepted {
                    self.autopilot = false;
                    if let Some(turn) = &mut self.turn {
                        turn.task_complete = true;
                    }
                }
            }
            Body::Mode { autopilot } => self.autopilot = autopilot,
            Body::Model(model) => self.model(model),
            Body::ShellDone { shell } => {
                if let Some(done) = shell {
                    let done = plain(&done.read(NAME_MAX), NAME_MAX);
                    self.shells.retain(|shell| *shell != done);
                }
            }
            Body::AgentStart { .. } | Body::AgentDone | Body::Usage { .. } | Body::Progress | Body::Metric => {}
        }
    }

    fn fold_resume(&mut self, begun: &Begun<'_>, continues: bool, at: Moment) {
        self.begun(begun);
        self.denials = Denials::default();
        if continues {
            if let Some(turn) = &mut self.turn {
                turn.resumed = Some(at);
            }
            self.forget_failure(at);
            return;
        }
        // Who reopens an idle session finds it as it was; what was in the air is over.
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
        self.agents.clear();
        self.shells.clear();
    }

    /// A round ends; whether the turn does depends on what was said in it, and on what of it is open.
    fn fold_round_end(&mut self, at: Moment) {
        let (autopilot, waits) = (self.autopilot, self.waits());
        let Some(turn) = &mut self.turn else { return };
        match turn.said {
            // An earlier round asked for what is open: its result will be answered.
            Said::Nothing | Said::Request if waits && !turn.task_complete => turn.phase = Phase::Running,
            _ if waits => turn.phase = Phase::Held,
            _ if turn.task_complete => self.close(Ending::Completed, at, false),
            Said::Answer { .. } if autopilot => turn.phase = Phase::MayContinue(at),
            Said::Answer { asks } => self.close(Ending::Completed, at, asks),
            // Between rounds: the next one starts in milliseconds, and is written before the model is asked.
            Said::Request => turn.phase = Phase::Running,
            Said::Nothing => turn.phase = Phase::Unanswered(at),
        }
    }

    fn fold_tool_done(
        &mut self,
        call: Call,
        success: bool,
        denied: bool,
        unasked: bool,
        shell: Option<Text<'_>>,
        at: Moment,
    ) {
        self.requests.retain(|request| request.call != Some(call));
        let cut = match &self.turn {
            Some(turn) => !turn.start_known,
            None => !self.whole && self.closed.is_none(),
        };
        let mut tool = None;
        if let Some(turn) = &mut self.turn {
            let index = turn.tools.iter().position(|tool| tool.call == call);
            tool = index.map(|index| turn.tools.remove(index));
            if tool.is_some() || cut {
                turn.used += u32::from(tool.is_none());
                turn.succeeded += u32::from(success);
            }
        }
        // A completion without its start belongs to a turn that is over, but where the log is cut.
        if tool.is_none() && !cut {
            return;
        }
        let unasked = !success && (unasked || tool.as_ref().is_some_and(|tool| tool.unasked));
        match (&tool, denied || unasked) {
            // It did not run.
            (Some(_), true) => self.ran = self.ran.saturating_sub(1),
            (None, true) => {}
            (tool, false) => {
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
        self.denials.push(at, unasked);
        self.go_on(at);
    }

    fn begun(&mut self, begun: &Begun<'_>) {
        self.model(begun.model);
        self.forked = begun.in_use && !begun.joins;
        if let Some(cwd) = begun.cwd {
            self.cwd = Some(cwd.read(4096).into());
        }
        self.branch = begun.branch.map(|branch| plain(&branch.read(NAME_MAX), NAME_MAX)).or_else(|| self.branch.take());
    }

    fn model(&mut self, model: Option<Text<'_>>) {
        if let Some(model) = model
            && self.model.as_deref().map(str::as_bytes) != Some(model.0)
        {
            self.model = Some(plain(&model.read(NAME_MAX), NAME_MAX));
        }
    }

    fn open(&mut self, at: Moment, prompted: bool, id: &[u8]) -> &mut Turn {
        let start_known = prompted || self.whole || self.closed.is_some();
        if self.turn.is_none() {
            let named = start_known && !id.is_empty();
            self.root = named.then(|| plain(&String::from_utf8_lossy(id), NAME_MAX));
        }
        self.turn.get_or_insert_with(|| Turn::new(at, start_known, prompted))
    }

    /// Ends the open turn, and with it every tool and request that was part of it, or that was asked where none was open.
    fn close(&mut self, ending: Ending, at: Moment, asks: bool) {
        self.end_foreground_agents();
        if self.turn.take().is_some() {
            if ending == Ending::Completed {
                self.marks.completed = Some(at.wall);
            }
            self.closed = Some(Closed { ending, at, asks });
        }
        let background = &self.agents;
        self.requests.retain(|request| background.iter().any(|agent| request.agent.as_ref() == Some(&agent.id)));
    }

    /// Sub-agents in the foreground, those whose tool is open, end with the turn.
    fn end_foreground_agents(&mut self) {
        let tools = self.turn.as_ref().map_or(&[][..], |turn| &turn.tools);
        self.agents.retain(|agent| !tools.iter().any(|tool| Some(tool.call) == agent.call));
    }

    /// Ends the turn and all that may be open beside it, whether or not a turn was.
    fn stop_all(&mut self, ending: Ending, at: Moment) {
        self.end_foreground_agents();
        self.turn = None;
        self.requests.clear();
        self.compaction = None;
        self.closed = Some(Closed { ending, at, asks: false });
    }

    /// The user went on after a failure without a prompt.
    fn forget_failure(&mut self, at: Moment) {
        if self.turn.is_none() && self.closed.as_ref().is_some_and(|closed| closed.failure().is_some()) {
            self.closed = Some(Closed { ending: Ending::PassedOver, at, asks: false });
        }
    }
}

/// FNV-1a: enough to tell a few dozen ids apart.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An id of the log, shortened to its hash: compared, never shown.
impl Call {
    pub(super) fn new(id: Text<'_>) -> Self {
        Self(hash(id.0))
    }

    /// The one of this id, as its server names it.
    pub(crate) fn of(id: &str) -> Self {
        Self(hash(id.as_bytes()))
    }
}
