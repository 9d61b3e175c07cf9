//! What a turn is made of, and the ways it can end.

use super::asked::Question;
use super::limits::Limits;
use super::time::{Moment, Span, Time};
use std::collections::VecDeque;

/// How many of the last tool results decide whether the permissions are lost.
pub(crate) const RESULTS: usize = 5;
/// How many of them must be denied.
pub(crate) const DENIED: usize = 3;

/// The last tool results, and since when too many of them were denied because nobody could be asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Denials {
    /// The results: when, and whether denied. At most [`RESULTS`].
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

    /// How many were denied, of those after `start`.
    pub(crate) fn after(&self, start: Option<Time>) -> usize {
        self.results.iter().filter(|(at, denied)| *denied && start.is_none_or(|start| start < at.wall)).count()
    }

    /// How many results there are.
    pub fn of(&self) -> usize {
        self.results.len()
    }

    /// Since when [`DENIED`] of them or more are denied.
    pub(crate) const fn since(&self) -> Option<Moment> {
        self.since
    }
}

/// An open turn. Everything in it goes with it: no per-turn fact can outlive its turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// When it began.
    pub opened: Moment,
    /// Its beginning was read; false where the log is cut.
    pub start_known: bool,
    /// A prompt opened it.
    pub prompted: bool,
    /// Tools that have started and not ended.
    pub tools: Vec<OpenTool>,
    /// How many tools were started in it.
    pub used: u32,
    /// How many of them succeeded.
    pub succeeded: u32,
    /// What was said in the last round.
    pub said: Said,
    /// How near its end is.
    pub phase: Phase,
    /// Its task was declared done: the next end of a round closes it.
    pub task_complete: bool,
    /// It was resumed with its pending work then, and nothing was written since.
    pub resumed: Option<Moment>,
}

/// What the model said last, in the round that runs or just ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing yet.
    Nothing,
    /// A message that asks for tools.
    Request,
    /// A message that asks for none: the answer.
    Answer {
        /// It ends in a question.
        asks: bool,
    },
}

/// How near a turn is to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It runs, or is between rounds.
    Running,
    /// The answer has come, its round has not ended. When anything was last said or done in the turn: what is written beside
    /// it does not keep it open.
    Answered(Moment),
    /// In autopilot the answer's round has ended then; Copilot may go on by itself.
    MayContinue(Moment),
    /// A round ended then without a message: an error or an abort may follow.
    Unanswered(Moment),
    /// Its last round has ended, with a tool or a request of it still open: it ends when they do.
    Held,
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
            said: Said::Nothing,
            phase: Phase::Running,
            task_complete: false,
            resumed: None,
        }
    }

    /// What goes on, in words, and after which silence that counts as `quiet` and as `stuck`; a busy process aside.
    pub(crate) const fn silence_limits(&self, limits: &Limits) -> (&'static str, Span, Span) {
        if !self.tools.is_empty() {
            ("a tool is open", limits.tool_quiet, limits.tool_stuck)
        } else if self.used > 0 {
            ("tools were used, none is open", limits.thinking_quiet, limits.thinking_stuck)
        } else {
            ("no tool was used", limits.fresh_quiet, limits.fresh_stuck)
        }
    }

    /// The open tool that waits for the user, if one does.
    pub(crate) fn question(&self) -> Option<&OpenTool> {
        self.tools.iter().find(|tool| tool.asks())
    }
}

/// A tool call's or a permission request's id, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call(pub(super) u64);

impl Call {
    /// As a number, for naming it.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    /// The one of this number.
    pub(crate) const fn of_number(number: u64) -> Self {
        Self(number)
    }
}

/// A tool that has started and not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenTool {
    /// Pairs it with its completion.
    pub call: Call,
    /// Its name: `bash`, `view`, `task`...
    pub name: Box<str>,
    /// What it works on: a command or a path, cut to a line's length.
    pub command: Option<Box<str>>,
    /// What it asks the user, where it is a tool that asks.
    pub question: Option<Box<Question>>,
    /// A shell that runs on in the background when its call is over.
    pub detached: bool,
    /// Its permission was refused because nobody could be asked.
    pub unasked: bool,
    /// When it started.
    pub at: Moment,
}

impl OpenTool {
    /// It waits for the user.
    pub(crate) fn asks(&self) -> bool {
        asks(&self.name)
    }
}

/// Whether a tool of this name asks the user.
pub(super) fn asks(name: &str) -> bool {
    matches!(name, "ask_user" | "exit_plan_mode")
}

/// What a session wants that makes a request of this kind, where that goes without saying more.
pub(crate) fn wants(kind: &str) -> Option<&'static str> {
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

/// What a permission request asks for is kept up to this many characters; what is longer is shown by its server alone.
pub(crate) const ASKS_MAX: usize = 2000;

/// A permission request that nobody has answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Pairs it with its answer.
    pub id: Call,
    /// Its id, as its server knows it.
    pub request: Box<str>,
    /// The tool call that asks.
    pub call: Option<Call>,
    /// What kind of thing is asked for: `shell`, `read`, `write`...
    pub kind: Box<str>,
    /// What is asked for, whole and unaltered, where one text of at most [`ASKS_MAX`] characters says it all: a command, the
    /// path of a file to read, an address.
    pub asks: Option<Box<str>>,
    /// The sub-agent that asks.
    pub agent: Option<Box<str>>,
    /// An organisation's policy wants a person to answer it.
    pub is_managed: bool,
    /// Since when it is open.
    pub at: Moment,
}

impl Request {
    /// Copilot asks about one of its extensions, such as our bridge, whether that may do more: its user alone answers, in the
    /// terminal, and nobody in the user's stead.
    pub(crate) fn is_consent(&self) -> bool {
        is_consent(self.kind.as_bytes())
    }

    /// What it is about, where it is such a question.
    pub(crate) fn consent_words(&self) -> Option<&'static str> {
        let ours = || self.asks.as_deref() == Some(OUR_EXTENSION);
        self.is_consent().then(|| match ours() {
            true => "Copilot asks in its terminal whether Pilotlight may answer there",
            false => "Copilot asks in its terminal whether an extension may do more",
        })
    }
}

/// The kinds of request that are about an extension's rights.
pub(crate) fn is_consent(kind: &[u8]) -> bool {
    matches!(kind, b"extension-permission-access" | b"extension-env-access")
}

/// What Copilot calls the bridge.
const OUR_EXTENSION: &str = "plugin:pilotlight:pilotlight";

/// A sub-agent that has started and not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// Its id.
    pub id: Box<str>,
    /// The tool call that started it; `None` where its start was not read.
    pub call: Option<Call>,
    /// Its last event.
    pub last: Moment,
}

/// How, and when, a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// How.
    pub ending: Ending,
    /// When.
    pub at: Moment,
    /// Its last message ends in a question.
    pub asks: bool,
}

impl Closed {
    /// Nothing in the log says that it ended: time alone does.
    pub(crate) const fn is_guess(&self) -> bool {
        matches!(self.ending, Ending::Unanswered | Ending::NeverClosed | Ending::ResumedSilent)
    }

    /// It ended before what it worked on was done.
    pub(crate) fn left_work(&self) -> bool {
        matches!(&self.ending, Ending::Shutdown { unfinished, .. } if !unfinished.is_empty())
    }

    /// The error that ended it.
    pub(crate) const fn failure(&self) -> Option<&Ending> {
        match self.ending {
            Ending::Failed { .. } => Some(&self.ending),
            _ => None,
        }
    }
}

/// The ways a turn can end.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Its answer came and its last round ended.
    Completed,
    /// The user stopped it.
    Aborted,
    /// `session.error`.
    Failed {
        /// Copilot's category.
        kind: Option<Box<str>>,
        /// Copilot's words.
        message: Option<Box<str>>,
        /// The HTTP status of the model's answer.
        status: Option<i64>,
    },
    /// The session was shut down.
    Shutdown {
        /// Tools that were open.
        unfinished: Vec<Box<str>>,
        /// The failure that the last turn had ended in.
        error: Option<Box<Ending>>,
    },
    /// A new prompt took its place.
    Prompted,
    /// The session was resumed without its pending work.
    Resumed,
    /// It had failed, and the user went on without a prompt.
    PassedOver,
    /// A round ended without a message, and nothing followed.
    Unanswered,
    /// The answer came, its round never ended.
    NeverClosed,
    /// Resumed with pending work of which nothing was left, and nothing followed.
    ResumedSilent,
    /// What is open was left by an owner before the present one.
    ByFormerOwner,
    /// The server that runs the session says that nothing is going on.
    NoActiveWork,
}

/// A turn's end by time alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lapse {
    /// When.
    pub at: Moment,
    /// How.
    pub ending: Ending,
    /// Its last message ends in a question.
    pub asks: bool,
}
