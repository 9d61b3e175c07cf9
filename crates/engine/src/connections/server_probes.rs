//! Probes the servers of silent sessions, without an order: each once before its silence is called `stuck`.

use crate::connections::Connections;
use crate::disk::Disk;
use crate::parts::tasks::TaskMessage;
use crate::world::World;
use pilotlight_agents::channel::{PROBE_TIMEOUT, ServerProbe};
use pilotlight_core::action::ServerState;
use pilotlight_core::fleet::Session;
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::{Answer, Status};
use pilotlight_system::log::{self, private};
use std::collections::BTreeMap;

/// The result of probing one session.
pub(crate) struct ProbedSession {
    pub(crate) key: Key,
    /// The last sign of life in its log when the probe began.
    pub(crate) progress: Time,
    pub(crate) result: Option<ServerProbe>,
}

/// Applies the result of a probe. It counts only for this progress: what happens later makes it outdated.
pub fn apply_probe(session: &mut Session, progress: Time, result: Option<ServerProbe>, now: Time) {
    let liveness = &mut session.liveness;
    liveness.probing = false;
    liveness.answer = result.map(|ServerProbe { active, requests, .. }| Answer { progress, active, requests });
    let all = result.and_then(|result| result.approves_all);
    liveness.approves_all = all.map(|all| (all, now)).or(liveness.approves_all);
}

/// Whether a session's server should be probed because the session is silent. Returns its owner, whether that may be
/// trusted with a token, and the last sign of life in the log, by the wall clock.
pub fn due_probe(session: &Session, status: Status) -> Option<((u32, bool), Time)> {
    let is_silent = status.is_silent() && session.observed.problem.is_none();
    let is_due = is_silent && session.control.server == ServerState::Listening && session.control.under_way.is_none();
    let (pid, progress) = (session.observed.owner.live()?, session.observed.facts.progress?.wall);
    is_due.then_some(((pid, session.may_be_trusted()), progress))
}

impl Connections {
    /// Probes the servers of sessions that have just become silent beyond their limit, once per silence.
    pub(crate) fn probe_silent_sessions(&mut self, world: &mut World, disk: &Disk) {
        if !world.config.actions.ask_servers {
            return;
        }
        // One connection asks about all sessions of a process. The token is not shown on behalf of a session that the
        // process may not hold.
        let mut owners: BTreeMap<(u32, bool), Vec<(Key, Time)>> = BTreeMap::new();
        for key in &world.changes.updated {
            if let Some((owner, progress)) = self.due_probe(world, key) {
                let wanted = owners.entry(owner).or_default();
                if !wanted.iter().any(|(known, _)| known == key) {
                    wanted.push((key.clone(), progress));
                }
            }
        }
        for ((pid, _), wanted) in owners {
            self.probe_process(world, disk, pid, wanted);
        }
    }

    /// Probes the server of a process about these sessions, each with the last sign of life in its log.
    pub(crate) fn probe_process(&mut self, world: &mut World, disk: &Disk, pid: u32, wanted: Vec<(Key, Time)>) {
        let servers = wanted.first().and_then(|(key, _)| self.listed_servers_of(world, disk, key));
        let Some(servers) = servers else { return };
        for (key, progress) in &wanted {
            self.tasks.probed.insert(key.clone(), *progress);
            if let Some(session) = world.fleet.session(key) {
                session.liveness.probing = true;
            }
            world.judge(key);
        }
        log::debug!(pid = private(&pid), sessions = wanted.len(), "its server is asked what they do");
        let sender = self.tasks.sender();
        tokio::spawn(async move {
            let ids: Vec<_> = wanted.iter().map(|(key, _)| Box::<str>::from(&*key.id)).collect();
            let results = servers.probe(&ids, PROBE_TIMEOUT).await;
            let probed = wanted.into_iter().zip(results);
            let probed = probed.map(|((key, progress), result)| ProbedSession { key, progress, result }).collect();
            let _ = sender.send(TaskMessage::Probed(probed)); // fails only when the engine has ended
        });
    }

    /// [`due_probe`] for a session that was not probed in this silence yet.
    fn due_probe(&self, world: &World, key: &Key) -> Option<((u32, bool), Time)> {
        let entry = world.fleet.get(key)?;
        let wanted = due_probe(entry.session(), entry.verdict.status)?;
        (self.tasks.probed.get(key) != Some(&wanted.1)).then_some(wanted)
    }

    /// Applies the results of a probe.
    pub(crate) fn apply_probes(&mut self, world: &mut World, probed: Vec<ProbedSession>) {
        let now = world.now().wall;
        for ProbedSession { key, progress, result } in probed {
            if let Some(session) = world.fleet.session(&key) {
                apply_probe(session, progress, result, now);
            }
            world.judge(&key);
        }
    }
}
