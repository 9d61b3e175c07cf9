//! Starts the task that carries out an order.

use super::message::{TaskId, TaskMessage};
use super::order_task::OrderTask;
use super::{NewOwner, RunningTask, Tasks};
use crate::control::PendingOrder;
use crate::ledger::LockGuard;
use crate::parts::resumes::Resumer;
use pilotlight_agents::channel::site::{LogView, Permit, Reports};
use pilotlight_core::action::{Action, Trait, is_cut_off};
use pilotlight_core::fleet::{Kind, Session};
use pilotlight_core::session::Key;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

impl Tasks {
    /// The number of a new task.
    pub(crate) const fn new_id(&mut self) -> TaskId {
        self.generation += 1;
        self.generation
    }

    /// A permit that asks the loop, right before something is sent, whether it may still be sent.
    pub(crate) fn permit(&self, task: TaskId) -> Permit {
        let (ask, mut questions) = unbounded_channel();
        let messages = self.sender();
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
    pub(crate) fn reports(&self, task: TaskId) -> Reports {
        let messages = self.sender();
        Reports::to(move |report| drop(messages.send(TaskMessage::Report(task, report)))) // fails only when the engine has ended
    }

    /// Starts a task. The caller has checked that its order may be carried out. `log_view` keeps up to date what it sees of
    /// this session.
    pub(crate) fn start(
        &mut self,
        (key, session): (&Key, &Session),
        pending: PendingOrder,
        guard: Option<LockGuard>,
        log_view: watch::Sender<LogView>,
        order_task: OrderTask,
    ) {
        let action = pending.order.operation.action();
        let creates_owner = action.is(Trait::Recovery) && session.runner().live().is_none();
        let hosts = action != Action::Resume && session.observed.about.kind == Kind::Sdk;
        let running = RunningTask {
            key: key.clone(),
            pending,
            action,
            cut_off: is_cut_off(session, order_task.status),
            log_view,
            guard,
            new_owner: creates_owner.then_some(if hosts { NewOwner::Server } else { NewOwner::Terminal }),
            early: Vec::new(),
            started_at: order_task.now,
        };
        let (task, now) = (order_task.task, order_task.now);
        self.running.insert(task, running);
        if creates_owner {
            self.write_resume_record(task, now, Resumer::ours(now));
        }
        tokio::spawn(order_task.run());
    }
}
