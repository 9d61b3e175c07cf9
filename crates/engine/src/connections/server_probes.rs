//! Probes the servers of silent sessions, without an order: each once before its silence is called `stuck`.

use crate::connections::Connections;
use crate::disk::Disk;
use crate::parts::probe::{ProbedSession, apply_probe, due_probe};
use crate::parts::tasks::TaskMessage;
use crate::world::World;
use pilotlight_agents::channel::PROBE_TIMEOUT;
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;
use pilotlight_system::log::{self, private};
use std::collections::BTreeMap;

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
