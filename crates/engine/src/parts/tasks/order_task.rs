//! Carries out one order in a task next to the loop, so that waiting does not block the loop.

mod let_answer;
mod process;
mod reconnect;

use super::message::{Continuation, TaskEnd, TaskId, TaskMessage};
use crate::config::Actions;
use pilotlight_agents::channel::failure::{Failure, FailureKind};
use pilotlight_agents::channel::fault::Fault;
use pilotlight_agents::channel::site::{RECEIVES, Site};
use pilotlight_agents::channel::{Connection, Reach, Servers};
use pilotlight_agents::evidence::Evidence;
use pilotlight_agents::source::{Resume, Source};
use pilotlight_core::action::Trait;
use pilotlight_core::fleet::Kind;
use pilotlight_core::order::{Operation, Order, Outcome, Reply, Which};
use pilotlight_core::owner::Owner;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::Status;
use pilotlight_system::paths::{expand, user_home};
use pilotlight_system::process::Force;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// The task that carries out one order.
pub(crate) struct OrderTask {
    pub(crate) messages: mpsc::UnboundedSender<TaskMessage>,
    pub(crate) site: Site,
    /// The order. It knows whether a command gave it, and not a click.
    pub(crate) order: Order,
    pub(crate) status: Status,
    pub(crate) task: TaskId,
    pub(crate) reach: Reach,
    pub(crate) source: Source,
    pub(crate) kind: Kind,
    pub(crate) owner: Owner,
    /// The processes that may have the session open and do not say so, which are asked before it is resumed, with their
    /// servers.
    pub(crate) suspects: Vec<(u32, Option<Arc<dyn Servers>>)>,
    pub(crate) evidence: Option<Arc<dyn Evidence>>,
    /// The tmux pane that its agent says it is in.
    pub(crate) pane: Option<Box<str>>,
    pub(crate) names: Vec<String>,
    pub(crate) actions: Actions,
    /// Who resumes sessions instead of a new terminal, if anybody.
    pub(crate) resumes_here: Option<mpsc::UnboundedSender<Resume>>,
    /// The wall clock when the task was started; `started` measures how long ago that was.
    pub(crate) now: Time,
    pub(crate) started: Instant,
    /// The session was already told to continue, and that waited for the end of its turn.
    pub(crate) was_postponed: bool,
}

/// The result, before it becomes an [`Outcome`].
type OrderResult = Result<(String, Option<Arc<dyn Connection>>, Continuation), OrderError>;

/// Why an order failed.
struct OrderError {
    outcome: Outcome,
    faults: Vec<Fault>,
    /// The connection that was made before the failure, to be kept.
    connection: Option<Arc<dyn Connection>>,
}

impl OrderError {
    fn failed(why: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed(why.into()), faults: Vec::new(), connection: None }
    }

    fn refused(why: impl Into<String>) -> Self {
        Self { outcome: Outcome::Refused(why.into()), faults: Vec::new(), connection: None }
    }
}

impl From<Failure> for OrderError {
    fn from(failure: Failure) -> Self {
        let words = failure.to_string();
        let outcome = match failure.kind {
            FailureKind::Unconfirmed => Outcome::Unconfirmed(words),
            FailureKind::Refused => Outcome::Refused(words),
            FailureKind::Failed if failure.faults.iter().any(Fault::refuses_us) => Outcome::Refused(words),
            FailureKind::Failed => Outcome::Failed(words),
        };
        Self { outcome, faults: failure.faults, connection: None }
    }
}

impl OrderTask {
    /// Carries out the order and reports its end.
    pub(super) async fn run(self) {
        let (messages, task) = (self.messages.clone(), self.task);
        let asks_server = self.order.operation.action().is(Trait::AsksServer);
        let contacted =
            self.reach.servers.as_ref().filter(|_| asks_server).map_or_else(Vec::new, |servers| servers.places());
        let (outcome, connection, continuation, faults) = match self.carry_out().await {
            Ok((words, connection, continuation)) => (Outcome::Done(words), connection, continuation, Vec::new()),
            Err(error) => (error.outcome, error.connection, Continuation::None, error.faults),
        };
        let healthy = if matches!(outcome, Outcome::Done(_)) { contacted } else { Vec::new() };
        let refused = faults.iter().find(|fault| fault.refuses_us()).map(|fault| fault.to_string().into());
        let end = TaskEnd { outcome, connection, continuation, faults, healthy, refused };
        let _ = messages.send(TaskMessage::End(task, end)); // fails only when the engine has ended
    }

    async fn carry_out(self) -> OrderResult {
        self.ask_suspects().await?;
        match self.order.operation.clone() {
            Operation::Look(request) => self.look(&request).await,
            Operation::Approve(which) => self.answer(&which, true).await,
            Operation::Deny(which) => self.answer(&which, false).await,
            Operation::Answer(reply) => self.reply(&reply).await,
            Operation::Reconnect { resend: false } => self.reconnect(None).await,
            Operation::Reconnect { resend: true } => self.reconnect(Some(FollowUp::Resend)).await,
            Operation::Continue => self.reconnect(Some(FollowUp::Continue)).await,
            Operation::Stop => self.stop().await,
            Operation::End { confirmed } => self.end(&[Force::Interrupt, Force::Terminate], confirmed).await,
            Operation::ForceQuit => self.end(&[Force::Kill], false).await,
            Operation::Resume => self.resume().await,
            Operation::ShowTerminal => self.show_terminal().await,
            Operation::LetAnswer => self.let_answer().await,
            // The loop closes the connection when it receives this result.
            Operation::Detach => done("detached"),
        }
    }

    /// Shows an open request, and leaves it open.
    async fn look(self, request: &str) -> OrderResult {
        self.reach.channel()?.look(&self.site, request).await?;
        done("shown, and left open")
    }

    async fn answer(self, which: &Which, approve: bool) -> OrderResult {
        done(self.reach.channel()?.answer(&self.site, which, approve).await?)
    }

    /// Answers a session's question to its user, or shows the question.
    async fn reply(self, reply: &Reply) -> OrderResult {
        done(self.reach.channel_for_questions()?.reply(&self.site, reply).await?)
    }

    /// The agent's program: the one in the settings, or else the one that is found.
    async fn program(&self) -> Result<PathBuf, OrderError> {
        let named = self.actions.program.as_deref();
        let named = named.and_then(|named| expand(named, user_home().as_deref()));
        self.source.program(named.as_deref()).await.map_err(OrderError::failed)
    }

    /// Reports that the session's model is answering, so that it no longer counts as stuck.
    fn report_receiving(&self) {
        let _ = self.messages.send(TaskMessage::Receives(self.task)); // fails only when the engine has ended
    }

    async fn stop(self) -> OrderResult {
        let channel = self.reach.channel()?;
        if self.order.unless_receiving && channel.receives(&self.site).await? {
            self.report_receiving();
            return Err(OrderError::refused(RECEIVES));
        }
        done(channel.stop(&self.site).await?)
    }
}

/// How a session continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FollowUp {
    /// By its last prompt, and nothing else.
    Resend,
    /// By its last prompt if no tool ran since, otherwise by a prompt to continue; not before its turn is over.
    Continue,
}

/// Success, without a connection to keep.
fn done(words: impl Into<String>) -> OrderResult {
    Ok((words.into(), None, Continuation::None))
}

/// Runs blocking work on a thread of its own.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, OrderError> {
    let (sender, result) = oneshot::channel();
    let work = move || {
        let _ = sender.send(work()); // fails only when the order was given up
    };
    let refused = |error| OrderError::failed(format!("cannot start another thread: {error}. Nothing was done"));
    std::thread::Builder::new().name("order".into()).spawn(work).map_err(refused)?;
    match result.await {
        Ok(result) => result.map_err(OrderError::failed),
        Err(_) => Err(OrderError::failed("an internal error occurred")),
    }
}
