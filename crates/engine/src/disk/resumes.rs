//! Keeps sessions that were resumed a moment ago from being resumed again.

use crate::disk::Disk;
use crate::parts::resumes::{RESUME_TIMEOUT, ResumeRecord};
use crate::world::World;
use pilotlight_core::action::{Action, ActionFlag};
use pilotlight_core::fleet::Session;
use pilotlight_core::order::{Order, Risk};
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;
use pilotlight_system::log::{self, cause};
use std::path::Path;

impl Disk {
    /// Reads from the pages which sessions were resumed recently and wait for their new owner, so that nobody is
    /// offered to resume them again.
    pub(crate) fn refresh_recent_resumes(&mut self, world: &mut World) {
        let now = world.now();
        self.recent_resumes.refresh(&self.ledger, now);
        let ours = std::process::id();
        for pid in self.recent_resumes.resumers().filter(|pid| *pid != ours) {
            // One that has exited since is noticed at the next refresh.
            self.owners.follow_process(pid, now);
        }
        for key in world.fleet.keys().collect::<Vec<_>>() {
            let at = self.resumed_at(&key);
            if let Some(session) = world.fleet.session(&key)
                && std::mem::replace(&mut session.control.resumed, at) != at
            {
                self.agenda.push_urgent(key);
            }
        }
    }

    /// When a session was resumed, if that was recently.
    pub(super) fn resumed_at(&self, key: &Key) -> Option<Time> {
        self.recent_resumes.at(&key.id, || self.page(key))
    }

    /// Why a session must not be resumed now although nobody has it open: it was resumed a moment ago, or a process
    /// that has just started may be about to open it and does not show yet which one it will open.
    pub(crate) fn why_not_resumable(
        &self,
        world: &World,
        key: &Key,
        action: Action,
        session: &Session,
    ) -> Option<String> {
        if !action.is(ActionFlag::Recovery) || session.runner().live().is_some() {
            return None;
        }
        if let Some(opener) = self.process_scans.opener(&self.homes, key) {
            return Some(format!(
                "process {} has just started, and may be about to open it: try again in a few seconds",
                opener.pid
            ));
        }
        let age = self.page(key).read::<ResumeRecord>()?.age(world.now().wall)?;
        Some(format!(
            "it was resumed {age} ago, and its new process does not show yet: if no terminal opened, try again in {}",
            RESUME_TIMEOUT - age
        ))
    }

    /// The processes that may have a session open and do not say so, which are to be asked before an order that resumes it.
    pub(crate) fn suspects(&self, key: &Key, order: &Order, session: &Session) -> Vec<u32> {
        let is_settled = order.agreed.contains(&Risk::OtherOwner) || session.runner().live().is_some();
        if is_settled || !order.operation.action().is(ActionFlag::Recovery) {
            return Vec::new();
        }
        let (folder, last) = (session.cwd().map(Path::new), session.observed.facts.progress.map(|last| last.wall));
        self.process_scans.openings().suspects(self.homes.root(key.home), &key.id, folder, last).collect()
    }

    /// Notes that the resume of a session is over, and whether it is `done`: others wait for the new owner only if it has
    /// yet to appear. Returns whether nobody need wait.
    pub(crate) fn resume_ended(&mut self, world: &mut World, key: &Key, done: bool) -> bool {
        self.scan_processes_now(world);
        let home = self.homes.home(key.home);
        let has_owner = self.process_scans.opener(&self.homes, key).is_some()
            || home.owner_now(&key.id, &world.config.owners.names, world.now().wall).live().is_some();
        let is_over = !done || has_owner;
        if !is_over {
            self.recent_resumes.awaited.insert(key.clone());
        }
        is_over
    }

    /// Removes the records of resumes whose new owner has appeared after the task's end: nobody need wait any more.
    pub(super) fn clear_arrived_resumes(&mut self) {
        let has_owner = |key: &&Key| self.process_scans.opener(&self.homes, key).is_some();
        let arrived: Vec<Key> = self.recent_resumes.awaited.iter().filter(has_owner).cloned().collect();
        for key in arrived {
            self.recent_resumes.awaited.remove(&key);
            // If another process holds the lock, it checks the owner itself.
            if let Ok(hold) = self.page(&key).try_lock("resume")
                && let Err(error) = hold.remove::<ResumeRecord>()
            {
                log::warn!("cannot remove the record that a session was resumed: {}", cause(&*error));
            }
        }
    }
}
