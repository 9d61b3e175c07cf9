//! The last that was heard of a session: what, where and when. The ages on its row count from it.

use super::liveness::{Liveness, StreamProbe};
use crate::facts::{Facts, LastWritten};
use crate::time::Moment;

/// The last that was heard of a session.
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
    /// What, and where: "tool.execution_start (bash), in its log".
    pub fn words(&self) -> String {
        match self.source {
            Source::Log(facts) => format!("{}, in its log", written_words(facts)),
            Source::Connection => "data, on its connection to the model".into(),
        }
    }
}

fn written_words(facts: &Facts) -> String {
    let LastWritten::Event { kind, by_sub_agent } = &facts.last_written else { return "part of a line".into() };
    if *by_sub_agent {
        return format!("{kind} of a sub-agent");
    }
    let tool = facts.turn.iter().flat_map(|turn| &turn.tools).next_back();
    let tool = tool.filter(|tool| kind.is("tool.execution_start") && Some(tool.at) == facts.progress);
    tool.map_or_else(|| kind.to_string(), |tool| format!("{kind} ({})", tool.name))
}
