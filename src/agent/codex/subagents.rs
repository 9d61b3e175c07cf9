//! The sub-agents of a thread. Each is a thread of its own, with its own log and lock, which the same process holds; the
//! root's turn may end before theirs.

use super::asking::Asking;
use super::dialect::DIALECT;
use super::head::Head;
use super::lock::{self, Lock};
use super::store;
use crate::agent::tail::{ReadContext, ReadOutcome, Tail};
use crate::core::facts::Facts;
use crate::core::text::NAME_MAX;
use crate::core::time::{Moment, Time};
use crate::core::turn::{Agent, Request};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most sub-agents of a thread that are read.
const AGENTS_MAX: usize = 64;

/// The sub-agents of a thread.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    /// Threads that have a lock, and the log of those that are sub-agents of this one.
    known: HashMap<Arc<str>, Option<Box<SubAgent>>>,
}

/// One sub-agent.
#[derive(Debug)]
struct SubAgent {
    log: PathBuf,
    tail: Tail,
    facts: Facts,
}

/// What they do.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) agents: Vec<Agent>,
    pub(super) rested: Option<Moment>,
    pub(super) asked: Vec<Request>,
    /// Whether all of their logs were read to the end.
    pub(super) is_partial: bool,
}

impl SubAgents {
    /// Forgets them: nobody runs their thread.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// Finds those that were started since, by the locks of the home: threads that were loaded since this one was.
    fn find(&mut self, root: &Path, id: &str, loaded: Time) {
        let Some(home) = root.parent() else { return };
        let open: Vec<_> = lock::ids(home).filter(|other| **other != *id).collect();
        self.known.retain(|known, _| open.contains(known));
        for other in open {
            let is_full = self.known.values().flatten().count() >= AGENTS_MAX;
            if is_full || self.known.contains_key(&other) {
                continue;
            }
            let Some(lock) = Lock::of(home, &other) else { continue };
            let log = store::log_of(root, &other).filter(|_| lock.loaded >= loaded);
            let head = log.as_deref().map(Head::read);
            let is_unwritten = lock.loaded >= loaded && !matches!(head, Some(Some(_)));
            if is_unwritten {
                continue; // its log will say whose it is
            }
            let is_ours = head.flatten().is_some_and(|head| *head.session == *id);
            let agent = log
                .filter(|_| is_ours)
                .map(|log| Box::new(SubAgent { log, tail: Tail::default(), facts: Facts::default() }));
            self.known.insert(other, agent);
        }
    }

    /// Reads what is new of them. `pid` runs them.
    pub(super) fn read(
        &mut self,
        (root, id, loaded): (&Path, &str, Time),
        pid: u32,
        asking: &mut Asking,
        context: ReadContext<'_>,
        buffer: &mut Vec<u8>,
    ) -> Beside {
        self.find(root, id, loaded);
        let mut beside = Beside::default();
        for (id, agent) in self.known.iter_mut().filter_map(|(id, agent)| Some((id, agent.as_mut()?))) {
            let SubAgent { log, tail, facts } = &mut **agent;
            // One that cannot be read counts as one that has done nothing yet.
            let outcome = tail.read(&DIALECT, log, facts, context, buffer);
            beside.is_partial |= matches!(outcome, Ok(ReadOutcome::More));
            let asked = asking.requests(facts, pid, Some(&**id), context.now);
            if let (Some(turn), Some(last)) = (&facts.turn, facts.progress) {
                let tools = turn.tools.iter().map(|tool| tool.call).collect();
                beside.agents.push(Agent { id: id.chars().take(NAME_MAX).collect(), call: None, last, tools });
                beside.asked.extend(asked);
            }
            let rested = facts.closed.as_ref().map(|closed| closed.at);
            beside.rested = beside.rested.into_iter().chain(rested).max_by_key(|at| at.awake);
        }
        beside.agents.sort_by(|one, other| one.id.cmp(&other.id));
        beside.asked.sort_by_key(|request| request.at.awake);
        beside
    }
}
