//! Starts the task that carries out an order, with everything that it needs.

use super::message::{TaskId, TaskMessage};
use super::order_task::OrderTask;
use super::{NewOwner, RunningTask, Tasks, log_view_of};
use crate::agent::channel::BridgeHandle;
use crate::agent::channel::endpoint::Endpoint;
use crate::agent::channel::site::{Permit, Reports, Site};
use crate::agent::evidence::Evidence;
use crate::agent::source::Source;
use crate::config::Actions;
use crate::control::PendingOrder;
use crate::core::action::{Action, Trait, is_cut_off};
use crate::core::fleet::{Kind, Session};
use crate::core::order::Order;
use crate::core::owner::Held;
use crate::core::reception::Finding;
use crate::core::session::Key;
use crate::core::time::Time;
use crate::core::verdict::Status;
use crate::engine::ledger::LockGuard;
use crate::engine::parts::resumes::Resumer;
use crate::system::process::terminal_of;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// The session that an order is for, and what is needed to carry it out.
pub(crate) struct OrderContext<'a> {
    pub(crate) key: &'a Key,
    pub(crate) session: &'a Session,
    pub(crate) status: Status,
    pub(crate) source: &'a Source,
    /// What shows that its owner owns it.
    pub(crate) evidence: Option<Evidence>,
    pub(crate) endpoints: Vec<Endpoint>,
    /// What its process's connections show, if its turn waits for its model.
    pub(crate) finding: Option<Finding>,
    /// The bridge to the session's terminal.
    pub(crate) bridge: Option<BridgeHandle>,
    /// File names of further programs that count as Copilot.
    pub(crate) names: &'a [String],
    pub(crate) actions: &'a Actions,
    pub(crate) now: Time,
    pub(crate) guard: Option<LockGuard>,
}

impl Tasks {
    /// Starts a task for an order. The caller has checked that it may be carried out.
    pub(crate) fn start(&mut self, pending: PendingOrder, context: OrderContext<'_>) -> TaskId {
        let key = context.key.clone();
        let action = pending.order.ask.action();
        let (log_view, seen) = watch::channel(log_view_of(context.session, context.status));
        self.generation += 1;
        let task = self.generation;
        let site = Site {
            id: context.session.id.clone(),
            cwd: context.session.cwd().map(PathBuf::from),
            endpoints: context.endpoints.clone(),
            owned: context.session.observed.held == Held::Verified,
            log_view: seen,
            finding: context.finding,
            drawn_by: context
                .session
                .observed
                .owner
                .live()
                .filter(|pid| context.session.observed.about.kind == Kind::Terminal && terminal_of(*pid).is_some()),
            permit: permit(&self.sender, task),
            reports: reports(&self.sender, task),
        };
        let order_task = OrderTask {
            messages: self.sender.clone(),
            site,
            order: Order { by_command: pending.is_by_command(), ..pending.order.clone() },
            status: context.status,
            task,
            connection: self.connections.get(&key).map(|kept| Arc::clone(&kept.connection)),
            bridge: context.bridge,
            source: context.source.clone(),
            kind: context.session.observed.about.kind,
            owner: context.session.observed.owner.clone(),
            evidence: context.evidence,
            names: context.names.to_vec(),
            actions: context.actions.clone(),
            now: context.now,
            started: Instant::now(),
            was_postponed: context.session.control.pending_continue.is_some(),
        };
        let creates_owner = action.is(Trait::Recovery) && context.session.runner().live().is_none();
        let hosts = action != Action::Resume && context.session.observed.about.kind == Kind::Sdk;
        let new_owner = creates_owner.then_some(if hosts { NewOwner::Server } else { NewOwner::Terminal });
        let cut_off = is_cut_off(context.session, context.status);
        let (started_at, early) = (context.now, Vec::new());
        let running =
            RunningTask { key, pending, action, cut_off, log_view, guard: context.guard, new_owner, early, started_at };
        self.running.insert(task, running);
        if creates_owner {
            self.write_resume_record(task, context.now, Resumer::ours(context.now));
        }
        tokio::spawn(order_task.run());
        task
    }
}

/// A permit that asks the loop, right before something is sent, whether it may still be sent.
fn permit(messages: &UnboundedSender<TaskMessage>, task: TaskId) -> Permit {
    let (ask, mut questions) = unbounded_channel();
    let messages = messages.clone();
    tokio::spawn(async move {
        while let Some(answer) = questions.recv().await {
            if messages.send(TaskMessage::MaySend(task, answer)).is_err() {
                return;
            }
        }
    });
    Permit::from(ask)
}

/// Reports that go to the loop.
fn reports(messages: &UnboundedSender<TaskMessage>, task: TaskId) -> Reports {
    let messages = messages.clone();
    Reports::to(move |report| drop(messages.send(TaskMessage::Report(task, report)))) // fails only when the engine has ended
}
