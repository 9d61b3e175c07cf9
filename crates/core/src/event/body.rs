//! What an event says happened.

use crate::question::Question;
use crate::scan::Text;

/// What became of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolResult {
    /// It succeeded.
    Success,
    /// It ran, and failed.
    Failure,
    /// It was refused before it ran, by the user or by a rule.
    Denied,
    /// It was refused before it ran, because nobody could be asked.
    Unasked,
}

impl ToolResult {
    /// Whether the tool ran.
    pub(crate) const fn has_run(self) -> bool {
        matches!(self, Self::Success | Self::Failure)
    }
}

/// What happened, in the detail that the rules need.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// `session.start`.
    Start(SessionInfo<'a>),
    /// `session.resume`.
    Resume {
        /// What it says about the session.
        info: SessionInfo<'a>,
        /// Open work stays open (`continuePendingWork`).
        continues: bool,
    },
    /// `user.message`.
    Prompt {
        /// It joins the running turn (`delivery: "steering"`, or injected by a skill).
        joins: bool,
        /// Copilot prompted itself (`isAutopilotContinuation`).
        continuation: bool,
        /// Whether the agent's mode is autopilot, if the prompt names a mode (`agentMode`).
        autopilot: Option<bool>,
    },
    /// `assistant.turn_start`: a round begins.
    RoundStart,
    /// `assistant.message`.
    Message {
        /// It requests tools.
        requests_tools: bool,
        /// Its text ends in a question.
        asks: bool,
        /// The model that wrote it.
        model: Option<Text<'a>>,
    },
    /// `assistant.turn_end`: a round is over.
    RoundEnd,
    /// A response of the model is complete, and the tools that it requests may run. What is part of a response after that
    /// is part of the next one.
    ResponseEnd,
    /// The session asks something, and does not wait for the answer: it goes on, or its turn ends with that.
    Asks(Box<Question>),
    /// A message that requests no tools, and ends its turn.
    Answer {
        /// Its text ends in a question.
        asks: bool,
        /// The model that wrote it.
        model: Option<Text<'a>>,
    },
    /// The model is asked. The same request again, with no message in between, is another try.
    ModelAsked {
        /// Identifies the request.
        request: Text<'a>,
    },
    /// The model was asked in vain, and will be asked again.
    ModelFailed,
    /// `tool.execution_start`.
    ToolStart {
        /// Pairs it with its completion.
        call: Text<'a>,
        /// The tool's name.
        name: Option<Text<'a>>,
        /// What it works on: a command, a path.
        command: Option<Text<'a>>,
        /// It is a shell that keeps running in the background.
        detached: bool,
        /// It asks the user.
        asks: bool,
        /// What it asks, if that can be told. One that does not wait for the user leaves the question open when it ends.
        question: Option<Box<Question>>,
        /// The text of `command` is escaped twice: it is JSON in a JSON string.
        nested: bool,
        /// It runs only after somebody has allowed that, and no line of the log asks for it.
        asks_unseen: bool,
    },
    /// `tool.execution_complete`.
    ToolDone {
        /// Pairs it with its start.
        call: Text<'a>,
        /// What became of it.
        result: ToolResult,
        /// The user's own `!command`.
        by_user: bool,
        /// The background shell that it started.
        shell: Option<Text<'a>>,
        /// The background shell that it ended.
        ended: Option<Text<'a>>,
    },
    /// `tool.user_requested`: the user's own `!command`.
    UserTool,
    /// `permission.requested`.
    PermissionAsked {
        /// Pairs it with its answer.
        request: Text<'a>,
        /// The tool call that asks.
        call: Option<Text<'a>>,
        /// The kind of permission: `shell`, `read`, `write`, `mcp`, `url`...
        kind: Option<Text<'a>>,
        /// The text that fully describes the request, if a single one does.
        asks: Option<Text<'a>>,
        /// The paths that it asks to reach, to read or to write.
        paths: Vec<Text<'a>>,
        /// What is to be done with the path, if it asks for access to one: `read`, `write`, `shell`.
        access: Option<Text<'a>>,
        /// The command that needs this access.
        command: Option<Text<'a>>,
        /// A hook has answered it already, so nobody waits.
        by_hook: bool,
        /// An organisation's policy requires a person to answer it.
        managed: bool,
    },
    /// `permission.completed`.
    PermissionDone {
        /// Pairs it with its request.
        request: Text<'a>,
        /// The tool call that asked.
        call: Option<Text<'a>>,
        /// Refused because nobody could be asked.
        unasked: bool,
        /// Allowed.
        approved: bool,
    },
    /// `session.error`.
    Error {
        /// Copilot's category: `query`, `rate_limit`, `authentication`...
        kind: Option<Text<'a>>,
        /// Copilot's own words.
        message: Option<Text<'a>>,
        /// The HTTP status of the model's answer.
        status: Option<i64>,
    },
    /// `abort`: the user stopped the turn.
    Abort,
    /// The turn is over, whatever was open in it.
    TurnOver {
        /// Its answer ends in a question.
        asks: bool,
    },
    /// What the next requests to the model are made with.
    Context {
        /// What it says about the session.
        info: SessionInfo<'a>,
        /// The user is asked for permissions, and the log does not show that.
        asks_unseen: bool,
    },
    /// `session.shutdown`.
    Shutdown,
    /// `session.compaction_start`.
    CompactionStart,
    /// `session.compaction_complete`.
    CompactionDone,
    /// `session.task_complete`.
    TaskComplete {
        /// The task counts as done; false if that was rejected.
        accepted: bool,
    },
    /// `session.mode_changed`.
    Mode {
        /// The new mode is autopilot.
        autopilot: bool,
    },
    /// `session.permissions_changed`.
    Approvals {
        /// Everything is approved from now on, without asking.
        all: bool,
    },
    /// `session.model_change`.
    Model(Option<Text<'a>>),
    /// The session's title.
    Title(Text<'a>),
    /// `session.usage_record`: a metric.
    Usage {
        /// The size of the last request to the model, in tokens.
        context: Option<i64>,
    },
    /// `subagent.started`.
    SubAgentStart {
        /// The tool call that started it.
        call: Option<Text<'a>>,
    },
    /// `subagent.completed` and `subagent.failed`.
    SubAgentDone,
    /// A background shell has ended.
    ShellDone {
        /// Its id, as the tool that started it reported it.
        shell: Option<Text<'a>>,
        /// The tool call that started it, and waits for nobody any more, whether the tool has come to its end or not.
        call: Option<Text<'a>>,
    },
    /// Any other step of a turn.
    Step,
    /// Any other event that is no step of a turn: a notice, a setting.
    Aside,
    /// `model.*`, the record of a call to the model: an aside, too, and the only one outside the chain of parents.
    Record,
}

impl Body<'_> {
    /// Whether it is progress: a step of a turn, or something that its user has it do. Of the others there may be any
    /// number while a model is silent.
    pub const fn is_progress(&self) -> bool {
        match self {
            // The user sets something.
            Self::Mode { .. } | Self::Approvals { .. } | Self::Model(_) | Self::Context { .. } => false,
            // A shell ends by itself. What the model then does about it is progress.
            Self::ShellDone { .. } => false,
            // Another try is a sign of life, but brings the turn no further.
            Self::ModelFailed => false,
            // It comes with the message that it counts.
            Self::ResponseEnd => false,
            Self::Usage { .. } | Self::Title(_) | Self::Aside | Self::Record => false,
            Self::Start(_)
            | Self::Resume { .. }
            | Self::Prompt { .. }
            | Self::RoundStart
            | Self::Message { .. }
            | Self::RoundEnd
            | Self::Asks(_)
            | Self::Answer { .. }
            | Self::ModelAsked { .. }
            | Self::ToolStart { .. }
            | Self::ToolDone { .. }
            | Self::PermissionAsked { .. }
            | Self::PermissionDone { .. }
            | Self::Error { .. }
            | Self::Abort
            | Self::TurnOver { .. }
            | Self::Shutdown
            | Self::CompactionStart
            | Self::CompactionDone
            | Self::TaskComplete { .. }
            | Self::UserTool
            | Self::SubAgentStart { .. }
            | Self::SubAgentDone
            | Self::Step => true,
        }
    }
}

/// What `session.start` and `session.resume` say about a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionInfo<'a> {
    /// The selected model.
    pub model: Option<Text<'a>>,
    /// The folder it works in.
    pub cwd: Option<Text<'a>>,
    /// The git branch there.
    pub branch: Option<Text<'a>>,
    /// Another client already had it open (`alreadyInUse`).
    pub in_use: bool,
    /// It joined work in progress in the same process (`sessionWasActive`).
    pub joins: bool,
}

/// The usual ones, of logs that say no more.
impl<'a> Body<'a> {
    /// The user prompts: a turn begins.
    pub const fn prompt() -> Self {
        Self::Prompt { joins: false, continuation: false, autopilot: None }
    }

    /// A tool starts. `call` pairs it with its end, and `command` is what it works on.
    pub const fn tool(call: Text<'a>, name: Text<'a>, command: Option<Text<'a>>) -> Self {
        Self::ToolStart {
            call,
            name: Some(name),
            command,
            detached: false,
            asks: false,
            question: None,
            nested: false,
            asks_unseen: false,
        }
    }

    /// A tool is done.
    pub const fn tool_done(call: Text<'a>, result: ToolResult) -> Self {
        Self::ToolDone { call, result, by_user: false, shell: None, ended: None }
    }
}
