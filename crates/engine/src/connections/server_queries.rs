//! Asks the servers of silent sessions what these do, without an order: each once before its silence is called `stuck`.

use crate::connections::Connections;
use crate::disk::Disk;
use crate::parts::tasks::TaskMessage;
use crate::world::World;
use pilotlight_agents::channel::{ACTIVITY_TIMEOUT, ServerActivity};
use pilotlight_core::action::ServerState;
use pilotlight_core::fleet::Session;
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::{Answer, Status};
use pilotlight_system::log::{self, private};
use std::collections::BTreeMap;

/// What a server said of one session.
pub(crate) struct QueriedSession {
    pub(crate) key: Key,
    /// The last sign of life in its log when it was asked.
    pub(crate) progress: Time,
    pub(crate) result: Option<ServerActivity>,
}

/// Applies what its server said. It counts only for this progress: what happens later makes it outdated.
fn apply_activity(session: &mut Session, progress: Time, result: Option<ServerActivity>, now: Time) {
    let liveness = &mut session.liveness;
    liveness.querying_server = false;
    liveness.answer = result.map(|ServerActivity { active, requests, .. }| Answer { progress, active, requests });
    let all = result.and_then(|result| result.approves_all);
    liveness.approves_all = all.map(|all| (all, now)).or(liveness.approves_all);
}

/// Whether a session's server should be asked because the session is silent. Returns its owner, whether that may be
/// trusted with a token, and the last sign of life in the log, by the wall clock.
pub(crate) fn due_query(session: &Session, status: Status) -> Option<((u32, bool), Time)> {
    let is_silent = status.is_silent() && session.observed.problem.is_none();
    let is_due = is_silent && session.control.server == ServerState::Listening && session.control.under_way.is_none();
    let (pid, progress) = (session.observed.owner.live()?, session.observed.facts.progress?.wall);
    is_due.then_some(((pid, session.may_be_trusted()), progress))
}

impl Connections {
    /// Asks the servers of sessions that have just become silent beyond their limit, once per silence.
    pub(crate) fn query_silent_sessions(&mut self, world: &mut World, disk: &Disk) {
        if !world.config.actions.ask_servers {
            return;
        }
        // One connection asks about all sessions of a process. The token is not shown on behalf of a session that the
        // process may not hold.
        let mut owners: BTreeMap<(u32, bool), Vec<(Key, Time)>> = BTreeMap::new();
        for key in &world.changes.updated {
            if let Some((owner, progress)) = self.due_query(world, key) {
                let wanted = owners.entry(owner).or_default();
                if !wanted.iter().any(|(known, _)| known == key) {
                    wanted.push((key.clone(), progress));
                }
            }
        }
        for ((pid, _), wanted) in owners {
            self.query_process(world, disk, pid, wanted);
        }
    }

    /// Asks the server of a process about these sessions, each with the last sign of life in its log.
    pub(crate) fn query_process(&mut self, world: &mut World, disk: &Disk, pid: u32, wanted: Vec<(Key, Time)>) {
        let servers = wanted.first().and_then(|(key, _)| self.listed_servers_of(world, disk, key));
        let Some(servers) = servers else { return };
        for (key, progress) in &wanted {
            self.tasks.queried.insert(key.clone(), *progress);
            if let Some(session) = world.fleet.session(key) {
                session.liveness.querying_server = true;
            }
            world.judge(key);
        }
        log::debug!(pid = private(&pid), sessions = wanted.len(), "its server is asked what they do");
        let sender = self.tasks.sender();
        tokio::spawn(async move {
            let ids: Vec<_> = wanted.iter().map(|(key, _)| Box::<str>::from(&*key.id)).collect();
            let results = servers.activity(&ids, ACTIVITY_TIMEOUT).await;
            let queried = wanted.into_iter().zip(results);
            let queried = queried.map(|((key, progress), result)| QueriedSession { key, progress, result }).collect();
            let _ = sender.send(TaskMessage::Queried(queried)); // fails only when the engine has ended
        });
    }

    /// [`due_query`] for a session that was not asked about in this silence yet.
    fn due_query(&self, world: &World, key: &Key) -> Option<((u32, bool), Time)> {
        let entry = world.fleet.get(key)?;
        let wanted = due_query(entry.session(), entry.verdict.status)?;
        (self.tasks.queried.get(key) != Some(&wanted.1)).then_some(wanted)
    }

    /// Applies what a server said.
    pub(crate) fn apply_activities(&mut self, world: &mut World, queried: Vec<QueriedSession>) {
        let now = world.now().wall;
        for QueriedSession { key, progress, result } in queried {
            if let Some(session) = world.fleet.session(&key) {
                apply_activity(session, progress, result, now);
            }
            world.judge(&key);
        }
    }
}
