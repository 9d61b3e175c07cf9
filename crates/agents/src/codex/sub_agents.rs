//! The sub-agents of a thread. Each is a thread of its own, with its own log and lock, which the same process holds; the
//! root's turn may end before theirs.

use super::asking::Asking;
use super::head::Head;
use super::lock::{self, Lock};
use super::log_format::LOG_FORMAT;
use super::store;
use crate::tail::{ReadContext, ReadOutcome, Tail};
use pilotlight_core::facts::{self, Facts};
use pilotlight_core::time::Time;
use pilotlight_core::turn::Request;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most sub-agents of a thread that are read.
const AGENTS_MAX: usize = 64;

/// The sub-agents of a thread.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    /// Threads that have a lock, and the log of those that are sub-agents of this one.
    known: BTreeMap<Arc<str>, Option<Box<Followed>>>,
}

/// One sub-agent.
#[derive(Debug)]
struct Followed {
    log: PathBuf,
    /// What it is called. Empty: that is not known.
    name: Box<str>,
    tail: Tail,
    facts: Facts,
}

impl SubAgents {
    /// Forgets them: nobody runs their thread.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// Finds those that were started since, by the locks of the home: threads that were loaded since this one was.
    fn find(&mut self, root: &Path, home: &Path, id: &str, loaded: Time) {
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
            let head = head.flatten();
            let name = head.as_ref().map(|head| head.nickname.clone()).unwrap_or_default();
            let whole = head.and_then(|head| store::whole_of(root, head));
            let is_ours = whole.is_some_and(|whole| *whole == *id);
            let sub_agent = log
                .filter(|_| is_ours)
                .map(|log| Box::new(Followed { log, name, tail: Tail::default(), facts: Facts::default() }));
            self.known.insert(other, sub_agent);
        }
    }

    /// Reads what is new of them, and adds to `asked` what they probably ask. `pid` runs them. Returns whether there is more
    /// to read.
    pub(super) fn read(
        &mut self,
        (root, home, id, loaded): (&Path, &Path, &str, Time),
        pid: u32,
        (asking, asked): (&mut Asking, &mut Vec<Request>),
        context: ReadContext<'_>,
        buffer: &mut Vec<u8>,
    ) -> bool {
        self.find(root, home, id, loaded);
        let mut is_partial = false;
        for (id, sub_agent) in self.known.iter_mut().filter_map(|(id, sub_agent)| Some((id, sub_agent.as_mut()?))) {
            let Followed { log, tail, facts, .. } = &mut **sub_agent;
            // One that cannot be read counts as one that has done nothing yet.
            let outcome = tail.read(&LOG_FORMAT, log, facts, context, buffer);
            is_partial |= matches!(outcome, Ok(ReadOutcome::More));
            asked.extend(asking.requests(facts, pid, Some(&**id), context.now));
        }
        asked.sort_by_key(|request| request.at.awake);
        is_partial
    }

    /// Those that are known.
    pub(super) fn known(&self) -> impl Iterator<Item = facts::SubAgentLog<'_>> {
        let sub_agents = self.known.iter().filter_map(|(id, sub_agent)| Some((&**id, sub_agent.as_ref()?)));
        sub_agents.map(|(id, sub_agent)| {
            let name = Some(&*sub_agent.name).filter(|name| !name.is_empty());
            facts::SubAgentLog { id, name, facts: &sub_agent.facts, is_done: false }
        })
    }
}
