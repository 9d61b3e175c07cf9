//! How an order becomes a task beside the loop: what it is told of the session, and what it sees of that from then on.

use super::{Acting, Running, Task};
use crate::agent::copilot::bridge::carry::Way;
use crate::agent::copilot::owner::Lock;
use crate::agent::copilot::server::recover::{Permit, Sight, Site};
use crate::agent::copilot::server::servers::Endpoint;
use crate::agent::copilot::store::LOG;
use crate::config::Actions;
use crate::core::action::is_cut_off;
use crate::core::fleet::Session;
use crate::core::order::Given;
use crate::core::owner::Held;
use crate::core::time::Time;
use crate::core::turn::Ending;
use crate::core::verdict::Status;
use crate::engine::Key;
use crate::engine::ledger::Hold;
use crate::engine::resumed::{Resumed, makes_an_owner};
use crate::engine::work::Work;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

/// What an order is carried out on.
pub(in crate::engine) struct Ground<'a> {
    pub(in crate::engine) key: &'a Key,
    pub(in crate::engine) session: &'a Session,
    pub(in crate::engine) status: Status,
    pub(in crate::engine) path: &'a Path,
    /// The lock of the session's owner.
    pub(in crate::engine) lock: Option<Lock>,
    pub(in crate::engine) endpoints: Vec<Endpoint>,
    /// The bridge to its terminal.
    pub(in crate::engine) way: Option<Way>,
    /// Further programs that count as Copilot.
    pub(in crate::engine) names: &'a [String],
    pub(in crate::engine) actions: &'a Actions,
    pub(in crate::engine) now: Time,
    pub(in crate::engine) hold: Option<Hold>,
}

impl Acting {
    /// Carries an order out, which may be carried out: that was asked before.
    pub(in crate::engine) fn start(&mut self, given: Given, ground: Ground<'_>) -> Task {
        let key = ground.key.clone();
        let action = given.order.ask.action();
        let (sight, seen) = watch::channel(sight_of(ground.session, ground.status));
        let site = Site {
            id: ground.session.id.clone(),
            cwd: ground.session.about.cwd.as_deref().or(ground.session.facts.cwd.as_deref()).map(PathBuf::from),
            endpoints: ground.endpoints.clone(),
            owned: ground.session.held == Held::Seen,
            sight: seen,
            permit: Permit::default(), // the task's own
        };
        self.generation += 1;
        let work = Work {
            tell: self.tell.clone(),
            site,
            ask: given.order.ask.clone(),
            status: ground.status,
            task: self.generation,
            held: self.held.get(&key).map(|held| Arc::clone(&held.connection)),
            way: ground.way,
            home: home_of(ground.path),
            log: ground.path.join(LOG),
            kind: ground.session.about.kind,
            owner: ground.session.owner.clone(),
            lock: ground.lock,
            folder: ground.path.to_owned(),
            names: ground.names.to_vec(),
            actions: ground.actions.clone(),
            now: ground.now,
            begun: Instant::now(),
            waited: ground.session.control.goes_on.is_some(),
        };
        let resumes = makes_an_owner(action) && ground.session.runner().live().is_none();
        if let Some(hold) = ground.hold.as_ref().filter(|_| resumes)
            && let Err(error) = hold.write(&Resumed { at: ground.now.0 })
        {
            tracing::warn!("that a session is being resumed cannot be kept for other processes: {error:#}");
        }
        let cut_off = is_cut_off(ground.session, ground.status);
        let (begun, early) = (ground.now, Vec::new());
        let running = Running { key, given, action, cut_off, sight, hold: ground.hold, resumes, early, begun };
        self.running.insert(self.generation, running);
        tokio::spawn(work.run());
        self.generation
    }
}

/// The home of a session's folder.
fn home_of(folder: &Path) -> PathBuf {
    folder.parent().and_then(Path::parent).unwrap_or(folder).to_owned()
}

/// What a recovery needs to see of a session.
pub(super) fn sight_of(session: &Session, status: Status) -> Sight {
    let facts = &session.facts;
    let aborted = facts.closed.as_ref().filter(|closed| closed.ending == Ending::Aborted).map(|closed| closed.at.wall);
    let tools_open = facts.turn.as_ref().map_or(0, |turn| turn.tools.len());
    Sight {
        turn_open: facts.turn.is_some(),
        tools_open,
        ran: facts.ran,
        prompt: facts.marks.prompt,
        root: facts.root.clone(),
        denied: facts.denials.after(None) > 0,
        answered: facts.answered.iter().copied().collect(),
        requests: facts.requests.iter().map(|request| (request.id, request.asks.clone())).collect(),
        events: facts.events,
        aborted,
        silent: status == Status::Stuck,
        unmatched_tools: tools_open > 0,
    }
}
