//! What is known about a session beyond its log: from its processes, its server, its bridge and our own actions; and when it
//! last did anything, by its log or beyond that.

use crate::facts::{Facts, LastWritten};
use crate::form::Form;
use crate::question::Question;
use crate::stream_probe::{ProbeResult, ProbedStream};
use crate::time::{Moment, Time};
use serde::{Deserialize, Serialize};

/// What is known about a session beyond its log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveness {
    /// The last sample of the CPU use of the owner's descendants.
    pub busy: Option<Sample>,
    /// Whether the session has active work, according to the server that we are attached to. `None`: not attached.
    pub has_active_work: Option<bool>,
    /// When we last attached with a permission handler, by the wall clock. Earlier denials no longer count.
    pub attached: Option<Time>,
    /// When we last stopped one of its turns, by the wall clock.
    pub stopped: Option<Time>,
    /// Its server's latest answer to what it does, without attaching.
    pub answer: Option<Answer>,
    /// Its server is being asked. Until that is done, no silence counts as `stuck`.
    #[serde(rename = "probing")]
    pub querying_server: bool,
    /// What was last found out about whether it receives an answer.
    pub stream_probe: Option<StreamProbe>,
    /// That is being found out. Until then, the silence has not reached its next limit.
    pub probing_stream: bool,
    /// It was seen to receive an answer piece by piece: it has its answers streamed.
    pub streams: bool,
    /// The questions that its server or bridge reports as open, oldest first.
    pub questions: Vec<Asking>,
    /// Whether it approves everything without asking, by the last word of its server, and when that was (wall clock).
    pub approves_all: Option<(bool, Time)>,
    /// When we reconnected it without having it continue its work, by the wall clock.
    pub left_undone: Option<Time>,
}

impl Liveness {
    /// The server's answer, if nothing has happened since it was asked.
    pub fn answer(&self, facts: &Facts) -> Option<&Answer> {
        self.answer.as_ref().filter(|answer| facts.progress.is_some_and(|progress| progress.wall == answer.progress))
    }

    /// What was found out about whether it receives an answer, if nothing has happened since.
    pub fn stream_probe(&self, facts: &Facts) -> Option<&StreamProbe> {
        let is_current = |one: &&StreamProbe| facts.progress.is_some_and(|progress| progress.wall == one.progress);
        self.stream_probe.as_ref().filter(is_current)
    }
}

/// A server's answer to what a session does, without attaching. Valid until the next event. Covers permission requests but not
/// questions, which servers report to attached clients only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The last progress in the log when it was asked, by the wall clock.
    pub progress: Time,
    /// It has active work.
    pub active: bool,
    /// Number of open permission requests.
    pub requests: usize,
}

/// What was found out about whether a silent session receives an answer. Valid until the next event in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamProbe {
    /// The last progress in the log at that time, by the wall clock.
    pub progress: Time,
    /// When it was found out.
    pub at: Moment,
    pub probe_result: ProbeResult,
    /// When something last arrived, if anything has since the session asked its model.
    pub last: Option<Moment>,
}

impl StreamProbe {
    /// What was found out at `at` about a session whose log had its last `progress` then.
    pub fn new(found: ProbedStream, progress: Time, at: Moment) -> Self {
        let before = |ago| Moment { wall: at.wall - ago, awake: at.awake - ago };
        Self { progress, at, probe_result: found.probe_result, last: found.last.map(before) }
    }

    /// When something of an answer last arrived. `None` if nothing has, or only what keeps a connection alive.
    pub(super) fn last_activity(&self) -> Option<Moment> {
        match self.probe_result {
            ProbeResult::Receiving { .. } => Some(self.last.unwrap_or(self.at)),
            ProbeResult::Silent { .. } => self.last,
            _ => None,
        }
    }
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    pub question: Question,
    /// When it was asked, by the wall clock.
    pub since: Time,
    /// How to answer it, or why it cannot be answered from here, without quoting it.
    pub form: Result<Form, Box<str>>,
}

/// A sample of the CPU use of an owner's descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// They used CPU.
    pub busy: bool,
    /// When the sample ended.
    pub at: Moment,
}

/// The last that was heard of a session: what, where and when. The ages on its row count from it.
#[derive(Clone, Copy, Debug)]
pub struct LastActivity<'a> {
    /// When.
    pub at: Moment,
    source: Source<'a>,
}

/// Where something was heard.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// In its log.
    Log(&'a Facts),
    /// On its connection to the model: something arrived that is not in its log yet.
    Connection,
}

/// The last that was heard of a session; `None` if nothing was. What only keeps a connection alive does not count.
pub fn last_activity<'a>(facts: &'a Facts, liveness: &Liveness) -> Option<LastActivity<'a>> {
    let in_log = facts.progress.map(|at| LastActivity { at, source: Source::Log(facts) });
    let stream_probe = liveness.stream_probe(facts).filter(|_| facts.waits_for_model());
    let received = stream_probe.and_then(StreamProbe::last_activity);
    let received = received.map(|at| LastActivity { at, source: Source::Connection });
    in_log.into_iter().chain(received).max_by_key(|last| last.at.awake)
}

impl LastActivity<'_> {
    /// What, and where: "the event tool.execution_start (bash) in its log".
    pub fn words(&self) -> String {
        match self.source {
            Source::Log(facts) => format!("{} in its log", written_words(facts)),
            Source::Connection => "data on its connection to the model".into(),
        }
    }
}

fn written_words(facts: &Facts) -> String {
    let LastWritten::Event { kind, by_sub_agent } = &facts.last_written else { return "part of a line".into() };
    if *by_sub_agent {
        return format!("the event {kind} of a sub-agent");
    }
    let tool = facts.turn.iter().flat_map(|turn| &turn.tools).next_back();
    let tool = tool.filter(|tool| kind.is("tool.execution_start") && Some(tool.at) == facts.progress);
    tool.map_or_else(|| format!("the event {kind}"), |tool| format!("the event {kind} ({})", tool.name))
}
