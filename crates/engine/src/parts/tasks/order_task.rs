//! One order that is being carried out: in a task next to the loop, so that waiting does not block the loop.

mod let_answer;
mod process;
mod reconnect;

use super::{TaskId, TaskMessage};
use crate::config::Actions;
use crate::control::PendingOrder;
use crate::ledger::LockGuard;
use crate::parts::resumes::{ResumeRecord, Resumer};
use pilotlight_agents::channel::action_context::{ActionContext, LogView, RECEIVES};
use pilotlight_agents::channel::failure::Failure;
use pilotlight_agents::channel::fault::Place;
use pilotlight_agents::channel::{Connection, Reach, Servers};
use pilotlight_agents::evidence::Evidence;
use pilotlight_agents::home::{Home, Resume};
use pilotlight_core::action::{Action, ActionFlag};
use pilotlight_core::attempts::Attempts;
use pilotlight_core::fleet::Kind;
use pilotlight_core::order::{Operation, Reply};
use pilotlight_core::owner::Owner;
use pilotlight_core::session::Key;
use pilotlight_core::time::Time;
use pilotlight_core::verdict::Status;
use pilotlight_system::log::{self, cause};
use pilotlight_system::paths::{expand, user_home};
use pilotlight_system::process::Force;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch};

/// Why a note, a stop or a rule is not passed on.
const ONLY_YES_OR_NO: &str =
    "nothing was answered: its agent takes only yes or no from here, and no note, stop or rule";

/// An order that is being carried out, shared by the loop and the task.
pub(crate) struct OrderTask {
    pub(crate) id: TaskId,
    pub(crate) key: Key,
    /// The order, and who gave it.
    pub(crate) pending: PendingOrder,
    pub(crate) messages: mpsc::UnboundedSender<TaskMessage>,
    pub(crate) context: ActionContext,
    /// Keeps up to date what the task sees of the session.
    pub(crate) log_view: watch::Sender<LogView>,
    pub(crate) status: Status,
    pub(crate) reach: Reach,
    pub(crate) home: Home,
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
    /// The session's last turn had been denied or cut off when this began.
    pub(crate) cut_off: bool,
    /// The session's lock, kept while the task runs.
    pub(crate) guard: Option<LockGuard>,
    /// The session had no owner, and this gives it one.
    pub(crate) new_owner: Option<NewOwner>,
    /// The connection that it has made, to be kept.
    pub(crate) kept: OnceLock<Arc<dyn Connection>>,
}

/// A session's new owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewOwner {
    /// A server of our own, which ends with us.
    Server,
    /// A terminal, which outlives us.
    Terminal,
}

/// How an order ended.
pub(crate) type OrderResult = Result<Done, Failure>;

/// An order was carried out.
pub(crate) struct Done {
    /// What was achieved, in words for the user.
    pub(crate) words: String,
    pub(crate) continuation: Continuation,
}

/// Whether a session that was reconnected continues with what it had been told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// Nothing was sent.
    None,
    /// A prompt was sent, and the session accepted it.
    Sent,
    /// It continues when the turn that still runs is over.
    Waiting,
}

/// What the loop knows of it.
impl OrderTask {
    /// What is asked for.
    pub(crate) fn operation(&self) -> &Operation {
        &self.pending.order.operation
    }

    /// The action that it is.
    pub(crate) fn action(&self) -> Action {
        self.operation().action()
    }

    /// The servers that this task contacts.
    pub(crate) fn contacted(&self) -> Vec<Place> {
        let servers = self.reach.servers.as_ref().filter(|_| self.action().is(ActionFlag::AsksServer));
        servers.map_or_else(Vec::new, |servers| servers.places())
    }

    /// Saves how often its session was recovered, for whichever process acts on it next.
    pub(crate) fn save_attempts(&self, attempts: &Attempts) {
        let guard = self.guard.as_ref();
        if let Some(guard) = guard.filter(|guard| guard.page().read::<Attempts>().unwrap_or_default() != *attempts)
            && let Err(error) = guard.write(attempts)
        {
            log::warn!("cannot save for other processes how often a session was recovered: {}", cause(&*error));
        }
    }

    /// Records for other processes that it is resuming its session: until this process ends, if there is one.
    pub(super) fn write_resume_record(&self, now: Time, by: Option<Resumer>) {
        if let Some(Err(error)) = self.guard.as_ref().map(|guard| guard.write(&ResumeRecord { at: now.0, by })) {
            log::warn!("cannot record for other processes that a session is being resumed: {}", cause(&*error));
        }
    }

    /// Call this right before it acts. From then on, the terminal that it opens may bring the session its new owner even
    /// if this process ends.
    pub(crate) fn note_permit(&self, now: Time) {
        if self.new_owner == Some(NewOwner::Terminal) {
            self.write_resume_record(now, None);
        }
    }

    /// Removes the record that it is resuming its session, because the new owner has appeared or the resume failed: other
    /// processes need not wait any more.
    pub(crate) fn clear_resume_record(&self) {
        if let Some(Err(error)) = self.guard.as_ref().map(LockGuard::remove::<ResumeRecord>) {
            log::warn!("cannot remove the record that a session was resumed: {}", cause(&*error));
        }
    }
}

/// What is done next to the loop.
impl OrderTask {
    /// Carries out the order and reports its end.
    pub(super) async fn run(self: Arc<Self>) {
        let (messages, id) = (self.messages.clone(), self.id);
        let result = self.carry_out().await;
        // From here on, the loop alone has it, and what it holds: the session's lock above all.
        drop(self);
        let _ = messages.send(TaskMessage::End(id, result)); // fails only when the engine has ended
    }

    async fn carry_out(&self) -> OrderResult {
        self.ask_suspects().await?;
        match self.operation() {
            Operation::Look(request) => self.look(request).await,
            operation @ (Operation::Approve(_)
            | Operation::Always { .. }
            | Operation::Deny(_)
            | Operation::DenyWith { .. }) => self.answer(operation).await,
            Operation::Answer(reply) => self.reply(reply).await,
            Operation::Reconnect { resend: false } => self.reconnect(None).await,
            Operation::Reconnect { resend: true } => self.reconnect(Some(FollowUp::Resend)).await,
            Operation::Continue => self.reconnect(Some(FollowUp::Continue)).await,
            Operation::Stop => self.stop().await,
            Operation::End { confirmed } => self.end(&[Force::Interrupt, Force::Terminate], *confirmed).await,
            Operation::ForceQuit => self.end(&[Force::Kill], false).await,
            Operation::Resume => self.resume().await,
            Operation::ShowTerminal => self.show_terminal().await,
            Operation::LetAnswer => self.let_answer().await,
            // The loop closes the connection when it receives this result.
            Operation::Detach => done("detached"),
        }
    }

    /// Shows an open request, and leaves it open.
    async fn look(&self, request: &str) -> OrderResult {
        self.reach.channel()?.look(&self.context, request).await?;
        done("shown, and left open")
    }

    async fn answer(&self, operation: &Operation) -> OrderResult {
        let Some((which, decision)) = operation.decision() else { return done("") };
        let channel = self.reach.channel()?;
        if decision.says_more() && !channel.takes_more() {
            return Err(Failure::refused(ONLY_YES_OR_NO));
        }
        done(channel.answer(&self.context, which, &decision).await?)
    }

    /// Answers a session's question to its user, or shows the question.
    async fn reply(&self, reply: &Reply) -> OrderResult {
        done(self.reach.channel_for_questions()?.reply(&self.context, reply).await?)
    }

    /// The agent's program: the one in the settings, or else the one that is found.
    async fn program(&self) -> Result<PathBuf, Failure> {
        let named = self.actions.program.as_deref();
        let named = named.and_then(|named| expand(named, user_home().as_deref()));
        self.home.program(named.as_deref()).await.map_err(Failure::failed)
    }

    /// Reports that the session's model is answering, so that it no longer counts as stuck.
    fn report_receiving(&self) {
        let _ = self.messages.send(TaskMessage::Receives(self.id)); // fails only when the engine has ended
    }

    async fn stop(&self) -> OrderResult {
        let channel = self.reach.channel()?;
        if self.pending.order.unless_receiving && channel.receives(&self.context).await? {
            self.report_receiving();
            return Err(Failure::refused(RECEIVES));
        }
        done(channel.stop(&self.context).await?)
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
    Ok(Done { words: words.into(), continuation: Continuation::None })
}

/// Runs blocking work on a thread of its own.
async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, Failure> {
    let (sender, result) = oneshot::channel();
    let work = move || {
        let _ = sender.send(work()); // fails only when the order was given up
    };
    let refused = |error| Failure::failed(format!("cannot start another thread: {error}. Nothing was done"));
    std::thread::Builder::new().name("order".into()).spawn(work).map_err(refused)?;
    match result.await {
        Ok(result) => result.map_err(Failure::failed),
        Err(_) => Err(Failure::failed("an internal error occurred")),
    }
}
