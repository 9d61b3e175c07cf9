//! The chain of events: each names its predecessor, its parent (`parentId`). Two processes that write one log make it
//! fork.
//!
//! Copilot writes some events of one moment in another order: after a stop while a request is open, the `abort` follows
//! its own descendants. So an event is a fork if it is one of these:
//!
//! - an event, other than a resume, whose parent has another child already;
//! - an event that continues from before the last resume;
//! - a resume that continues neither from the last line, as a process does that has read the log, nor from the end of the
//!   chain, as one does that has the session open for another client.
//!
//! A resume settles the forks before it. `model.*` has a chain of its own.

use crate::event::{Body, Event};
use crate::hash::hash;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many events back a duplicate line or a fork is detected. Copilot writes some events of one moment in another
/// order than that of its chain: up to four lines apart.
const RECENT: usize = 32;

/// The latest events, by the hashes of their ids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Chain {
    links: VecDeque<ChainedEvent>,
    /// The last events before the last resume. Only another process than the one that resumed continues from them.
    before: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct ChainedEvent {
    id: u64,
    parent: u64,
}

impl Chain {
    /// Whether the same line was read before.
    pub(super) fn contains(&self, event: &Event<'_>) -> bool {
        let id = hash(event.id);
        !event.id.is_empty() && self.links.iter().any(|link| link.id == id)
    }

    /// Adds an event. Returns whether it forks the chain.
    pub(super) fn push(&mut self, event: &Event<'_>) -> bool {
        if event.id.is_empty() || event.body == Body::Record {
            return false;
        }
        let link = ChainedEvent { id: hash(event.id), parent: hash(event.parent) };
        let resumes = matches!(&event.body, Body::Resume { info, .. } if !info.joins);
        let is_parent = self.links.iter().any(|other| other.parent == link.parent);
        let forks = if resumes {
            // A process continues from the last line that it has read, even if that has a child already: a stop writes
            // the `abort` after events that follow it. If it has the session open, it continues from the chain's end.
            let is_end = !is_parent && self.links.iter().any(|other| other.id == link.parent);
            self.links.back().is_some_and(|last| last.id != link.parent) && !is_end
        } else {
            is_parent || self.before.contains(&link.parent)
        };
        if resumes {
            self.before = self.links.iter().map(|link| link.id).collect();
        }
        if self.links.len() == RECENT {
            self.links.pop_front();
        }
        self.links.push_back(link);
        forks && !event.parent.is_empty()
    }
}
