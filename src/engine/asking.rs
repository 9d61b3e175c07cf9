//! What is asked of servers without a click: one look at a session before its silence is called `stuck`; and what of that, and of
//! the connections that are kept, `status` is told over the control socket, so that it says what we say.

use super::acting::Happening;
use super::{Engine, Key, Round};
use crate::agent::copilot::server::look::{LOOKED_WITHIN, Told, look};
use crate::core::action::ServerState;
use crate::core::fleet::Session;
use crate::core::order::{Given, Outcome, Report, Said};
use crate::core::time::Time;
use crate::core::verdict::{Answer, Status};
use std::collections::BTreeMap;

/// What came of a look at one session.
pub(super) struct Looked {
    key: Key,
    /// The last sign of life in its log when the look began.
    progress: Time,
    told: Option<Told>,
}

/// Whether the server of a session is to be asked what it does, because it is silent: its owner, whether that may be trusted, and
/// the last sign of life in its log, by the wall clock.
pub(crate) fn wants_a_look(session: &Session, status: Status) -> Option<((u32, bool), Time)> {
    let is_silent = matches!(status, Status::Quiet | Status::Stuck) && session.problem.is_none();
    let is_due = is_silent && session.control.server == ServerState::Listens && session.control.under_way.is_none();
    let (pid, progress) = (session.owner.live()?, session.facts.progress?.wall);
    is_due.then_some(((pid, session.may_be_trusted()), progress))
}

impl Engine {
    /// Asks the servers of sessions that have just become silent beyond their limit: each once for each silence.
    pub(super) fn ask_servers(&mut self, round: &mut Round) {
        if !self.config.actions.ask_servers {
            return;
        }
        // One connection asks for all sessions of a process; a token is not shown for one that its process may not hold.
        let mut owners: BTreeMap<(u32, bool), Vec<(Key, Time)>> = BTreeMap::new();
        for key in &round.changed {
            if let Some((owner, progress)) = self.wants_a_look(key) {
                let wanted = owners.entry(owner).or_default();
                if !wanted.iter().any(|(known, _)| known == key) {
                    wanted.push((key.clone(), progress));
                }
            }
        }
        for ((pid, _), wanted) in owners {
            let endpoints = wanted.first().map(|(key, _)| self.verified_endpoints_of(pid, key)).unwrap_or_default();
            if endpoints.is_empty() {
                continue;
            }
            for (key, progress) in &wanted {
                self.acting.asked.insert(key.clone(), *progress);
                if let Some(folder) = self.fleet.folder(key) {
                    folder.session.live.asking = true;
                }
                self.judge(key, round);
            }
            tracing::debug!(pid, sessions = wanted.len(), "its server is asked what they do");
            let tell = self.acting.teller();
            tokio::spawn(async move {
                let ids: Vec<_> = wanted.iter().map(|(key, _)| Box::<str>::from(&*key.1)).collect();
                let told = look(&endpoints, &ids, LOOKED_WITHIN).await;
                let looked = wanted.into_iter().zip(told);
                let looked = looked.map(|((key, progress), told)| Looked { key, progress, told }).collect();
                let _ = tell.send(Happening::Looked(looked)); // the engine may have ended
            });
        }
    }

    /// Whether a session's server is to be asked: its owner, whether that may be trusted, and the last sign of life in its log.
    fn wants_a_look(&self, key: &Key) -> Option<((u32, bool), Time)> {
        let entry = self.fleet.get(key)?;
        let wanted = wants_a_look(entry.session(), entry.verdict.status)?;
        (self.acting.asked.get(key) != Some(&wanted.1)).then_some(wanted)
    }

    /// A look is over.
    pub(super) fn looked(&mut self, looked: Vec<Looked>, round: &mut Round) {
        for Looked { key, progress, told } in looked {
            if let Some(folder) = self.fleet.folder(&key) {
                let live = &mut folder.session.live;
                live.asking = false;
                // Where something happened meanwhile, what was told is of before that.
                live.answer = told.map(|Told { active, requests }| Answer { progress, active, requests });
            }
            self.judge(&key, round);
        }
    }

    /// Tells what is known of sessions beside their logs, and that is all.
    pub(super) fn tell_said(&self, given: &Given) {
        let said = self.fleet.entries().filter_map(|(key, entry)| {
            let session = entry.session();
            Said::of(self.homes.home_folder(key), session)
        });
        given.report(Report::Said(said.collect()));
        given.report(Report::End(Outcome::Done(String::new())));
    }
}
