//! Starts the task of an order that may be carried out, and says right before it sends something whether it still may.

use super::check_turn;
use crate::Engine;
use crate::control::PendingOrder;
use crate::ledger::LockGuard;
use crate::parts::tasks::{OrderTask, TaskId, log_view_of};
use pilotlight_agents::channel::site::{LogView, Site};
use pilotlight_core::action::Trait;
use pilotlight_core::fleet::Kind;
use pilotlight_core::order::{Order, Outcome, Report};
use pilotlight_core::owner::Held;
use pilotlight_core::session::{Key, Observed};
use pilotlight_system::process::terminal_of;
use std::path::PathBuf;
use std::time::Instant;
use tokio::sync::watch;

impl Engine {
    /// Starts the task for an order that may be carried out now.
    pub(super) fn start_task(&mut self, key: &Key, pending: PendingOrder, guard: Option<LockGuard>) {
        let now = self.world.now();
        let action = pending.order.operation.action();
        // From here on, orders for the session come to us and are not forwarded.
        if action.is(Trait::Counted)
            && let Some(serve) = self.orders.on_first_attach.take()
        {
            self.contacts.holder_folders.clear();
            serve();
        }
        let built = self.order_task(key, &pending).zip(self.world.fleet.get(key));
        let Some(((log_view, order_task), entry)) = built else {
            return pending.report(Report::End(Outcome::Unknown));
        };
        let task = order_task.task;
        let marks = entry.session().observed.facts.marks;
        // These act without asking for a permit.
        if !(action.is(Trait::AsksServer) || action.is(Trait::OverBridge) || action.is(Trait::Recovery)) {
            pending.begin();
        }
        self.contacts.tasks.start((key, entry.session()), pending, guard, log_view, order_task);
        let recovers = action.is(Trait::Counted);
        self.world.update_control(key, |control| {
            if action.excludes_others() {
                control.under_way = Some(action);
            }
            // Continuing after the end of a turn belongs to an attempt that was already counted.
            if recovers && control.pending_continue.is_none() {
                control.attempts.note_attempt(&marks, now.wall);
            }
        });
        if recovers {
            self.save_attempts(task, key);
        }
    }

    /// The task that carries out an order, with everything that it needs, and what keeps up to date what it sees of the
    /// session.
    fn order_task(&mut self, key: &Key, pending: &PendingOrder) -> Option<(watch::Sender<LogView>, OrderTask)> {
        let (task, finding) = (self.contacts.tasks.new_id(), self.contacts.finding_now(&self.world, key));
        let entry = self.world.fleet.get(key)?;
        let (session, status) = (entry.session(), entry.verdict.status);
        let Observed { owner, about, held, .. } = &session.observed;
        let (log_view, seen) = watch::channel(log_view_of(session, status));
        let site = Site {
            id: session.id.clone(),
            cwd: session.cwd().map(PathBuf::from),
            owned: *held == Held::Verified,
            log_view: seen,
            finding,
            drawn_by: owner.live().filter(|pid| about.kind == Kind::Terminal && terminal_of(*pid).is_some()),
            permit: self.contacts.tasks.permit(task),
            reports: self.contacts.tasks.reports(task),
        };
        let suspects = self.disk.suspects(key, &pending.order, session).into_iter();
        let order_task = OrderTask {
            suspects: suspects
                .map(|pid| (pid, self.contacts.servers_at(&self.world, &self.disk, key, pid, false)))
                .collect(),
            messages: self.contacts.tasks.sender(),
            site,
            order: Order { by_command: pending.is_by_command(), ..pending.order.clone() },
            status,
            task,
            reach: self.contacts.reach(&self.world, &self.disk, key),
            source: self.disk.homes.source(key.source).clone(),
            kind: about.kind,
            owner: owner.clone(),
            evidence: entry.evidence(),
            pane: session.observed.pane.clone(),
            names: self.world.config.owners.names.clone(),
            actions: self.world.config.actions.clone(),
            resumes_here: self.contacts.tasks.resumes_here.clone(),
            now: self.world.now().wall,
            started: Instant::now(),
            was_postponed: session.control.pending_continue.is_some(),
        };
        Some((log_view, order_task))
    }

    pub(crate) fn save_attempts(&mut self, task: TaskId, key: &Key) {
        if let Some(session) = self.world.fleet.session(key) {
            self.contacts.tasks.save_attempts(task, &session.control.attempts);
        }
    }

    /// Whether a task may send what it is about to send: whoever gave the order is still there, and the turn that it
    /// was for is still the last.
    pub(crate) fn may_send(&mut self, task: TaskId) -> Result<(), String> {
        let Some((key, _)) = self.contacts.tasks.session_and_action(task) else {
            return Err("it was cancelled; nothing was sent".into());
        };
        let resumes = self.contacts.tasks.creates_owner(task);
        if resumes {
            self.disk.scan_processes_now(&mut self.world);
        }
        self.read_session_now(&key);
        if !self.disk.may_touch(&key) {
            return Err("its file system has not answered in time; nothing was sent: try again".into());
        }
        self.world.count_shared_owners();
        // The server that we started for the session does not count as another process.
        let control = self.disk.homes.source(key.source).control();
        let is_ours = |pid: u32| control.is_some_and(|control| control.is_of_our_server(pid));
        let owner = self.world.fleet.get(&key).and_then(|entry| entry.session().observed.owner.live());
        if let Some(pid) = owner.filter(|pid| resumes && !is_ours(*pid)) {
            return Err(format!("process {pid} has opened it meanwhile; nothing was done"));
        }
        let Some(pending) = self.contacts.tasks.order_of(task) else {
            return Err("it was cancelled; nothing was sent".into());
        };
        if pending.is_abandoned() {
            return Err("the command that asked for it has ended; nothing was sent".into());
        }
        match self.world.fleet.get(&key) {
            Some(entry) => {
                let session = entry.session();
                self.contacts.tasks.update_log_views(&self.world.fleet, [&key]);
                if self.would_end_another(session, pending.order.operation.action()) {
                    return Err(
                        "its process has opened another session, which would end as well: it is signalled no further"
                            .into(),
                    );
                }
                check_turn(&pending.order, session)?;
                pending.begin();
                self.contacts.tasks.note_permit(task, self.world.now().wall);
                Ok(())
            }
            None => Err("this session no longer exists".into()),
        }
    }
}
