//! The parts of a turn, and the ways it can end.

use super::hash::hash;
use super::limits::Limits;
use super::question::Question;
use super::scan::Text;
use super::stream_probe::ProbeResult;
use super::time::{Moment, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Number of latest tool results that decide whether permissions are lost.
pub(crate) const RESULTS: usize = 5;
/// Number of them that must be denied.
pub(crate) const DENIED: usize = 3;

/// The latest tool results, and since when too many of them have been denied because nobody could be asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Denials {
    /// The time of each result, and whether it was denied. At most [`RESULTS`].
    results: VecDeque<(Moment, bool)>,
    since: Option<Moment>,
}

impl Denials {
    pub(super) fn push(&mut self, at: Moment, denied: bool) {
        if self.results.len() == RESULTS {
            self.results.pop_front();
        }
        self.results.push_back((at, denied));
        if self.after(None) < DENIED {
            self.since = None;
        } else {
            self.since.get_or_insert(at);
        }
    }

    /// Number of results denied after `start`.
    pub fn after(&self, start: Option<Time>) -> usize {
        self.results.iter().filter(|(at, denied)| *denied && start.is_none_or(|start| start < at.wall)).count()
    }

    /// Number of results.
    pub fn of(&self) -> usize {
        self.results.len()
    }

    /// Since when at least [`DENIED`] of them are denied.
    pub const fn since(&self) -> Option<Moment> {
        self.since
    }
}

/// An open turn. Holds every per-turn fact, so that none can outlive its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// When it began.
    pub opened: Moment,
    /// Its beginning was read; false if the log is cut.
    pub start_known: bool,
    /// A prompt opened it.
    pub prompted: bool,
    /// Tools that have started and not ended.
    pub tools: Vec<OpenTool>,
    /// Number of tools started in it.
    pub used: u32,
    /// Number of them that succeeded.
    pub succeeded: u32,
    /// The last message of the current round.
    pub last_message: LastMessage,
    /// How near its end is.
    pub phase: TurnPhase,
    /// Its task was declared done, so the next end of a round closes it.
    pub task_complete: bool,
    /// When it was resumed with its pending work, if nothing was written since.
    pub resumed: Option<Moment>,
    /// The response of the model that last wrote anything, as a hash, if its log tells responses apart.
    pub(super) round: Option<u64>,
    /// That response is complete.
    pub(super) response_over: bool,
}

/// The model's last message in the current or just ended round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LastMessage {
    /// Nothing yet.
    Nothing,
    /// A message that requests tools.
    Request,
    /// A message that requests none: the answer.
    Answer {
        /// It ends in a question.
        asks: bool,
    },
}

/// How near a turn is to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TurnPhase {
    /// Running, or between rounds.
    Running,
    /// The answer was given, but its round has not ended. Holds the time of the turn's own last event: other events in
    /// the log do not keep the turn open.
    Answered(Moment),
    /// In autopilot, the answer's round ended at this time. Copilot may continue on its own.
    MayContinue(Moment),
    /// A round ended without a message at this time. An error or an abort may follow.
    Unanswered(Moment),
    /// Its last round ended with a tool or request still open. The turn ends when they do.
    #[serde(rename = "Held")]
    AwaitsOpenWork,
}

impl Turn {
    pub(super) const fn new(opened: Moment, start_known: bool, prompted: bool) -> Self {
        Self {
            opened,
            start_known,
            prompted,
            tools: Vec::new(),
            used: 0,
            succeeded: 0,
            last_message: LastMessage::Nothing,
            phase: TurnPhase::Running,
            task_complete: false,
            resumed: None,
            round: None,
            response_over: false,
        }
    }

    /// Describes what is going on, and returns after which silence that is `quiet` and `stuck`, not counting a busy
    /// process. `is_compacting`: the session's history is being compacted, which counts as an open tool. `probe_result`: what
    /// is known of the model's answer, if the turn waits for one.
    pub fn silence_limits(
        &self,
        is_compacting: bool,
        probe_result: Option<ProbeResult>,
        limits: &Limits,
    ) -> (&'static str, Span, Span) {
        let (what, quiet, stuck) = if is_compacting && self.tools.is_empty() {
            ("while its history is compacted", limits.tool_quiet, limits.tool_stuck)
        } else if self.tools.is_empty() && self.used == 0 {
            ("while no tool was used", limits.fresh_quiet, limits.fresh_stuck)
        } else if self.tools.is_empty() {
            ("while no tool is running", limits.thinking_quiet, limits.thinking_stuck)
        } else if probe_result.is_some() {
            ("while its sub-agent waits for a model", limits.thinking_quiet, limits.thinking_stuck)
        } else {
            ("while a tool is running", limits.tool_quiet, limits.tool_stuck)
        };
        let longer = stuck.max(limits.thinking_stuck);
        match probe_result {
            Some(ProbeResult::Kept) => (what, quiet, limits.kept_stuck),
            Some(ProbeResult::NoConnection | ProbeResult::Silent { may_not_stream: true }) => (what, quiet, longer),
            Some(ProbeResult::Unknown(_)) => (what, quiet.max(limits.thinking_quiet), longer),
            _ => (what, quiet, stuck),
        }
    }

    /// The open tool that waits for the user, if any.
    pub fn question(&self) -> Option<&OpenTool> {
        self.tools.iter().find(|tool| tool.asks)
    }
}

/// A tool call's or a permission request's id, as a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Call(u64);

impl Call {
    pub(super) fn new(id: Text<'_>) -> Self {
        Self(hash(id.0))
    }

    /// The hash of a server's id.
    pub fn of(id: &str) -> Self {
        Self(hash(id.as_bytes()))
    }

    /// The hash as a number, for use in a name.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The id with this hash.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// A tool that has started and not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenTool {
    /// Pairs it with its completion.
    pub call: Call,
    /// Its name: `bash`, `view`, `task`...
    pub name: Box<str>,
    /// What it works on: a command or a path, cut to a line's length.
    pub command: Option<Box<str>>,
    /// What it asks the user, if it is a tool that asks.
    pub question: Option<Box<Question>>,
    /// It is a shell that keeps running in the background after its call.
    pub detached: bool,
    /// It waits for the user.
    pub asks: bool,
    /// Its permission was refused because nobody could be asked.
    pub unasked: bool,
    /// The id of the request that it waits for before it runs, if the log does not show such requests.
    pub asks_by: Option<Box<str>>,
    /// When it started.
    pub at: Moment,
}

/// A verb phrase for a request of this kind, such as "to run", if the kind is known.
pub fn request_verb(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "shell" | "commands" => "to run",
        "read" => "to read",
        "write" => "to write",
        "path" => "to reach",
        "url" => "to fetch",
        "mcp" => "to call a tool",
        _ => return None,
    })
}

/// Maximum length of a permission request's text, in characters. Only its server can show a longer one.
pub const ASKS_MAX: usize = 2000;

/// Maximum number of paths that a permission request may ask for to be shown with them.
pub const PATHS_MAX: usize = 20;

/// Maximum length of a command that needs access to a path, in characters.
pub(super) const COMMAND_MAX: usize = 32 << 10;
/// Stands for a longer command.
pub const COMMAND_TOO_LONG: &str = "(too long for Pilotlight)";

/// A command, or what stands for it if it is too long.
pub(super) fn whole_command(command: &str) -> Box<str> {
    if command.chars().count() > COMMAND_MAX { COMMAND_TOO_LONG.into() } else { command.into() }
}

/// The text that represents a request for access to a path: the path, the kind of access, and the command that needs it.
pub fn path_words(path: &str, access: Option<&str>, command: Option<&str>) -> String {
    let access = access.map(|access| format!(", to {}", access_words(access))).unwrap_or_default();
    let command = command.map(|command| format!(", for: {command}")).unwrap_or_default();
    format!("{path}{access}{command}")
}

/// A kind of access, in words. Of a shell command Copilot does not know what it does.
pub fn access_words(access: &str) -> &str {
    if access == "shell" { "read or write" } else { access }
}

/// An unanswered permission request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Pairs it with its answer.
    pub id: Call,
    /// Its id at its server.
    pub request: Box<str>,
    /// The tool call that asks.
    pub call: Option<Call>,
    /// The kind of permission: `shell`, `read`, `write`...
    pub kind: Box<str>,
    /// The text that fully describes it, unaltered, if there is one of at most [`ASKS_MAX`] characters: a command, the
    /// path of a file to read, an address.
    pub asks: Option<Box<str>>,
    /// The paths that it asks to reach, to read or to write, unaltered and all of them; empty if there are more than
    /// [`PATHS_MAX`], or if one is longer than [`ASKS_MAX`]. What a command touches is not known.
    pub paths: Vec<Box<str>>,
    /// The command that needs access to the paths that it asks for.
    pub command: Option<Box<str>>,
    /// The sub-agent that asks.
    pub sub_agent: Option<Box<str>>,
    /// An organisation's policy requires a person to answer it.
    pub is_managed: bool,
    /// Nothing says that it is open, but there is no other reason known for what is seen.
    pub is_probable: bool,
    /// What its bridge takes besides yes and no, if the bridge reports it, and not the log.
    #[serde(default)]
    pub over_bridge: Option<AnswerOptions>,
    /// When it was made.
    pub at: Moment,
}

/// What a request's bridge takes besides yes and no, and how the request stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AnswerOptions {
    /// The rules that "always" adds, in words and with where they go, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Box<str>>,
    /// A sub-agent asks: its terminal shows no dialog as long as we may answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_held: bool,
}

impl Request {
    /// Whether Copilot asks to extend the rights of an extension, such as our bridge. Only the user may answer that, in
    /// the terminal.
    pub fn is_consent(&self) -> bool {
        is_consent(self.kind.as_bytes())
    }

    /// Whether Copilot asks about our own extension.
    pub fn is_about_us(&self) -> bool {
        self.is_consent() && self.asks.as_deref() == Some(OUR_EXTENSION)
    }
}

/// The kinds of request that are about an extension's rights.
pub fn is_consent(kind: &[u8]) -> bool {
    matches!(kind, b"extension-permission-access" | b"extension-env-access")
}

/// The bridge's name in Copilot.
const OUR_EXTENSION: &str = "plugin:pilotlight:pilotlight";

/// A sub-agent that has started and not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubAgent {
    pub id: Box<str>,
    /// The tool call that started it. `None` if its start was not read.
    pub call: Option<Call>,
    /// What it is for, or its kind.
    #[serde(default)]
    pub name: Option<Box<str>>,
    /// Its first event that was read.
    #[serde(default)]
    pub began: Moment,
    /// The tool that it started last, and what that works on, if it is still open.
    #[serde(default)]
    pub does: Option<Box<str>>,
    /// Its last event.
    pub last: Moment,
    /// Its own tools that have started and not ended.
    pub tools: Vec<Call>,
}

impl SubAgent {
    /// One that begins.
    pub(crate) fn new(id: Box<str>, began: Moment) -> Self {
        Self { id, call: None, name: None, began, does: None, last: began, tools: Vec::new() }
    }
}

/// What a tool works on: `bash: npm test`.
pub(crate) fn tool_words(name: &str, command: Option<&str>) -> Box<str> {
    match command {
        Some(command) => format!("{name}: {command}").into(),
        None => name.into(),
    }
}

/// How, and when, a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Closed {
    /// How.
    pub ending: Ending,
    /// When.
    pub at: Moment,
    /// Its last message ends in a question.
    pub asks: bool,
}

impl Closed {
    /// Whether the log does not say that it ended: it is presumed over, because of time alone.
    pub const fn is_guess(&self) -> bool {
        matches!(self.ending, Ending::Unanswered | Ending::NeverClosed | Ending::ResumedSilent)
    }

    /// Whether it ended with work left unfinished.
    pub(crate) fn left_work(&self) -> bool {
        matches!(&self.ending, Ending::Shutdown { unfinished, .. } if !unfinished.is_empty())
    }

    /// The error that ended it.
    pub(crate) const fn failure(&self) -> Option<&Fault> {
        if let Ending::Failed(fault) = &self.ending { Some(fault) } else { None }
    }
}

/// An error that ends a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Copilot's category.
    pub kind: Option<Box<str>>,
    /// Copilot's words.
    pub message: Option<Box<str>>,
    /// The HTTP status of the model's answer.
    pub status: Option<i64>,
}

impl Fault {
    /// Whether a limit of requests or of usage refused it, by the agent's own category.
    pub(crate) fn is_limit(&self) -> bool {
        let kinds = ["rate_limit", "quota", "usage_limit_exceeded", "usage_limit_reached"];
        self.kind.as_deref().is_some_and(|kind| kinds.contains(&kind))
    }
}

/// The ways a turn can end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It was answered, and its last round ended.
    Completed,
    /// The user stopped it.
    Aborted,
    /// `session.error`.
    Failed(Fault),
    /// The session was shut down.
    Shutdown {
        /// Tools that were open.
        unfinished: Vec<Box<str>>,
        /// The failure that ended the last turn.
        error: Option<Fault>,
    },
    /// A new prompt took its place.
    Prompted,
    /// The session was resumed without its pending work.
    Resumed,
    /// It had failed, and the user went on with the session without a prompt.
    PassedOver,
    /// A round ended without a message, and nothing followed.
    Unanswered,
    /// It was answered, but its round never ended.
    NeverClosed,
    /// It was resumed with no pending work left, and nothing followed.
    ResumedSilent,
    /// Its open work was left by a former owner.
    ByFormerOwner,
    /// The session's server reports no active work.
    NoActiveWork,
}

/// The end of a turn because of time alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Lapse {
    /// When.
    pub at: Moment,
    /// How.
    pub ending: Ending,
    /// Its last message ends in a question.
    pub asks: bool,
}

#[cfg(test)]
mod tests;
