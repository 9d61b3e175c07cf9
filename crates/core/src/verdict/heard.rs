//! The last that was heard of a session: what, where and when. The ages on its row count from it.

use super::vitals::{Reception, Vitals};
use crate::facts::{Facts, LastWritten};
use crate::time::Moment;

/// The last that was heard of a session.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
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
pub fn last_heard<'a>(facts: &'a Facts, vitals: &Vitals) -> Option<Heard<'a>> {
    let in_log = facts.progress.map(|at| Heard { at, source: Source::Log(facts) });
    let reception = vitals.reception(facts).filter(|_| facts.waits_for_model());
    let received = reception.and_then(Reception::heard);
    let received = received.map(|at| Heard { at, source: Source::Connection });
    in_log.into_iter().chain(received).max_by_key(|heard| heard.at.awake)
}

impl Heard<'_> {
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
