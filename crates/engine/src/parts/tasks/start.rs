//! Starts the task that carries out an order.

use super::message::{TaskId, TaskMessage};
use super::{OrderTask, Running, Tasks};
use crate::parts::resumes::Resumer;
use pilotlight_agents::channel::site::{Permit, Reports};
use std::sync::Arc;
use tokio::sync::mpsc::unbounded_channel;

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

    /// Starts a task. The caller has checked that its order may be carried out.
    pub(crate) fn start(&mut self, task: OrderTask) -> Arc<OrderTask> {
        let task = Arc::new(task);
        if task.new_owner.is_some() {
            task.write_resume_record(task.now, Resumer::ours(task.now));
        }
        let handle = tokio::spawn(Arc::clone(&task).run()).abort_handle();
        self.running.insert(task.id, Running { task: Arc::clone(&task), early: Vec::new(), handle });
        task
    }
}
