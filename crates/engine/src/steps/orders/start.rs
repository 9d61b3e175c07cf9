//! Starts the task of an order that may be carried out, and says right before it sends something whether it still may.

use super::check_turn;
use crate::Engine;
use crate::control::PendingOrder;
use crate::ledger::LockGuard;
use crate::parts::tasks::{NewOwner, OrderTask, TaskId, log_view_of};
use pilotlight_agents::channel::action_context::ActionContext;
use pilotlight_core::action::{Action, ActionFlag, is_cut_off};
use pilotlight_core::fleet::Kind;
use pilotlight_core::order::{OrderReport, Outcome};
use pilotlight_core::owner::HoldProof;
use pilotlight_core::session::{Key, Observed};
use pilotlight_system::process::terminal_of;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;
use tokio::sync::watch;

impl Engine {
    /// Starts the task for an order that may be carried out now.
    pub(super) fn start_task(&mut self, key: &Key, pending: &PendingOrder, guard: Option<LockGuard>) {
        let now = self.world.now();
        let action = pending.order.operation.action();
        // From here on, orders for the session come to us and are not forwarded.
        if action.is(ActionFlag::Counted)
            && let Some(serve) = self.on_first_attach.take()
        {
            self.connections.holder_folders.clear();
            serve();
        }
        let Some(task) = self.order_task(key, pending, guard) else {
            return pending.report(OrderReport::End(Outcome::Unknown));
        };
        // These act without asking for a permit.
        if !(action.is(ActionFlag::AsksServer) || action.is(ActionFlag::OverBridge) || action.is(ActionFlag::Recovery))
        {
            pending.begin();
        }
        let task = self.connections.tasks.start(task);
        let recovers = action.is(ActionFlag::Counted);
        let marks = self.world.fleet.get(key).map(|entry| entry.session().observed.facts.marks);
        self.world.update_control(key, |control| {
            if action.excludes_others() {
                control.under_way = Some(action);
            }
            // Continuing after the end of a turn belongs to an attempt that was already counted.
            if let Some(marks) = marks.filter(|_| recovers && control.pending_continue.is_none()) {
                control.attempts.note_attempt(&marks, now.wall);
            }
        });
        if recovers {
            self.save_attempts(&task);
        }
    }

    /// The task that carries out an order, with everything that it needs.
    fn order_task(&mut self, key: &Key, pending: &PendingOrder, guard: Option<LockGuard>) -> Option<OrderTask> {
        let (id, probe_result) = (self.connections.tasks.new_id(), self.connections.finding_now(&self.world, key));
        let entry = self.world.fleet.get(key)?;
        let (session, status) = (entry.session(), entry.verdict.status);
        let Observed { owner, about, held, .. } = &session.observed;
        let (log_view, seen) = watch::channel(log_view_of(session, status));
        let context = ActionContext {
            id: session.id.clone(),
            cwd: session.cwd().map(PathBuf::from),
            owned: *held == HoldProof::Verified,
            log_view: seen,
            probe_result,
            drawn_by: owner.live().filter(|pid| about.kind == Kind::Terminal && terminal_of(*pid).is_some()),
            permit: self.connections.tasks.permit(id),
            reports: self.connections.tasks.reports(id),
        };
        let suspects = self.disk.suspects(key, &pending.order, session).into_iter();
        let with_servers = |pid| (pid, self.connections.servers_at(&self.world, &self.disk, key, pid, false));
        let action = pending.order.operation.action();
        let creates_owner = action.is(ActionFlag::Recovery) && session.runner().live().is_none();
        let hosts = action != Action::Resume && about.kind == Kind::Sdk;
        Some(OrderTask {
            id,
            key: key.clone(),
            pending: pending.clone(),
            messages: self.connections.tasks.sender(),
            context,
            log_view,
            status,
            reach: self.connections.reach(&self.world, &self.disk, key),
            home: self.disk.homes.home(key.home).clone(),
            kind: about.kind,
            owner: owner.clone(),
            suspects: suspects.map(with_servers).collect(),
            evidence: entry.evidence(),
            pane: session.observed.pane.clone(),
            names: self.world.config.owners.names.clone(),
            actions: self.world.config.actions.clone(),
            resumes_here: self.connections.tasks.resumes_here.clone(),
            now: self.world.now().wall,
            started: Instant::now(),
            was_postponed: session.control.pending_continue.is_some(),
            cut_off: is_cut_off(session, status),
            guard,
            new_owner: creates_owner.then_some(if hosts { NewOwner::Server } else { NewOwner::Terminal }),
            kept: OnceLock::new(),
        })
    }

    /// Saves how often a task's session was recovered.
    pub(crate) fn save_attempts(&mut self, task: &OrderTask) {
        if let Some(session) = self.world.fleet.session(&task.key) {
            task.save_attempts(&session.control.attempts);
        }
    }

    /// Whether a task may send now: the order's sender is still there, and the order's turn is still the last.
    pub(crate) fn may_send(&mut self, task: TaskId) -> Result<(), String> {
        let Some(task) = self.connections.tasks.get(task).cloned() else {
            return Err("it was cancelled; nothing was sent".into());
        };
        let (key, pending, resumes) = (&task.key, &task.pending, task.new_owner.is_some());
        if resumes {
            self.disk.scan_processes_now(&mut self.world);
        }
        self.read_session_now(key);
        if !self.disk.may_touch(key) {
            return Err("its file system has not answered in time; nothing was sent: try again".into());
        }
        self.world.count_shared_owners();
        // The server that we started for the session does not count as another process.
        let control = self.disk.homes.home(key.home).control();
        let is_ours = |pid: u32| control.is_some_and(|control| control.is_of_our_server(pid));
        let owner = self.world.fleet.get(key).and_then(|entry| entry.session().observed.owner.live());
        if let Some(pid) = owner.filter(|pid| resumes && !is_ours(*pid)) {
            return Err(format!("process {pid} has opened it meanwhile; nothing was done"));
        }
        if pending.is_abandoned() {
            return Err("the command that asked for it has ended; nothing was sent".into());
        }
        match self.world.fleet.get(key) {
            Some(entry) => {
                let session = entry.session();
                self.connections.tasks.update_log_views(&self.world.fleet, [key]);
                if self.would_end_another(session, task.action()) {
                    return Err(
                        "its process has opened another session, which would end as well: nothing more is signalled"
                            .into(),
                    );
                }
                check_turn(&pending.order, session)?;
                pending.begin();
                task.note_permit(self.world.now().wall);
                Ok(())
            }
            None => Err("this session no longer exists".into()),
        }
    }
}
