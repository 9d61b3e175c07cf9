//! Carries out one order in a task next to the loop, so that waiting does not block the loop.

mod let_answer;
mod process;

use super::message::{Continuation, TaskEnd, TaskId, TaskMessage};
use crate::agent::channel::connection::Connection;
use crate::agent::channel::event::Event;
use crate::agent::channel::failure::{Failure, FailureKind};
use crate::agent::channel::fault::{Fault, Place};
use crate::agent::channel::order::{Policy, Prompt, SilentTurn};
use crate::agent::channel::site::{RECEIVES, Site};
use crate::agent::channel::{self, BridgeHandle, Channel};
use crate::agent::evidence::Evidence;
use crate::agent::source::Source;
use crate::config::{Actions, Permissions};
use crate::core::action::Trait;
use crate::core::fleet::Kind;
use crate::core::order::{Ask, Doubt, Order, Outcome, Reply, Which};
use crate::core::owner::Owner;
use crate::core::time::Time;
use crate::core::verdict::Status;
use crate::core::words::offer::without_program;
use crate::system::paths::{expand, user_home};
use crate::system::process::Force;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// The prompt that has a session continue where its last prompt must not be sent again, if the settings name no other.
const GO_ON: &str = "Go on from where you stopped; before you repeat a step, check whether it was done.";
/// What comes before it where we have just become the one who is asked.
const PERMISSIONS_ARE_BACK: &str = "Permissions can be given again in this session.";

/// The task that carries out one order.
pub(super) struct OrderTask {
    pub(super) messages: mpsc::UnboundedSender<TaskMessage>,
    pub(super) site: Site,
    /// The order. It knows whether a command gave it, and not a click.
    pub(super) order: Order,
    pub(super) status: Status,
    pub(super) task: TaskId,
    pub(super) connection: Option<Arc<Connection>>,
    /// The bridge to the session's terminal.
    pub(super) bridge: Option<BridgeHandle>,
    pub(super) source: Source,
    pub(super) kind: Kind,
    pub(super) owner: Owner,
    pub(super) evidence: Option<Evidence>,
    pub(super) names: Vec<String>,
    pub(super) actions: Actions,
    /// The wall clock when the task was started; `started` measures how long ago that was.
    pub(super) now: Time,
    pub(super) started: Instant,
    /// The session was already told to continue, and that waited for the end of its turn.
    pub(super) was_postponed: bool,
}

/// The result, before it becomes an [`Outcome`].
type OrderResult = Result<(String, Option<Arc<Connection>>, Continuation), OrderError>;

/// Why an order failed.
struct OrderError {
    outcome: Outcome,
    faults: Vec<Fault>,
    /// The connection that was made before the failure, to be kept.
    connection: Option<Arc<Connection>>,
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
        let asks_server = self.order.ask.action().is(Trait::AsksServer);
        let contacted = self.site.endpoints.iter().filter(|_| asks_server).map(|endpoint| Place::At(endpoint.address));
        let contacted: Vec<_> = contacted.collect();
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
        match self.order.ask.clone() {
            Ask::Look(request) => self.look(&request).await,
            Ask::Approve(which) => self.answer(&which, true).await,
            Ask::Deny(which) => self.answer(&which, false).await,
            Ask::Answer(reply) => self.reply(&reply).await,
            Ask::Reconnect { resend: false } => self.reconnect(None).await,
            Ask::Reconnect { resend: true } => self.reconnect(Some(FollowUp::Resend)).await,
            Ask::Continue => self.reconnect(Some(FollowUp::Continue)).await,
            Ask::Stop => self.stop().await,
            Ask::End { confirmed } => self.end(&[Force::Interrupt, Force::Terminate], confirmed).await,
            Ask::ForceQuit => self.end(&[Force::Kill], false).await,
            Ask::Resume => self.resume().await,
            Ask::ShowTerminal => self.show_terminal().await,
            Ask::LetAnswer => self.let_answer().await,
            // The loop closes the connection when it receives this result.
            Ask::Detach => done("detached"),
        }
    }

    fn policy(&self) -> Policy {
        match self.actions.permissions {
            Permissions::Ask => Policy::Ask,
            Permissions::ApproveAll => Policy::ApproveAll,
            Permissions::Observe => Policy::Observe,
        }
    }

    /// Shows an open request, and leaves it open.
    async fn look(self, request: &str) -> OrderResult {
        let request = self.channel().request(&self.site, request).await?;
        self.site.show_request(request.shown());
        done("shown, and left open")
    }

    async fn answer(self, which: &Which, approve: bool) -> OrderResult {
        done(self.channel().answer(&self.site, which, approve).await?)
    }

    /// Answers a session's question to its user, or shows the question.
    async fn reply(self, reply: &Reply) -> OrderResult {
        // Only who is attached hears questions; a bridge is.
        done(Channel::best(self.connection.clone(), self.bridge.clone(), false).reply(&self.site, reply).await?)
    }

    /// What the order is carried out over.
    fn channel(&self) -> Channel {
        Channel::best(self.connection.clone(), self.bridge.clone(), !self.site.endpoints.is_empty())
    }

    /// Brings the session back under control, and continues it if the order asks for that.
    async fn reconnect(self, follow_up: Option<FollowUp>) -> OrderResult {
        let before = self.site.log_view.borrow().prompt;
        // Read before anything is done: an unreadable prompt must not stop us halfway.
        let prompt = match follow_up {
            Some(follow_up) => Some(self.prompt(follow_up).await?),
            None => None,
        };
        if let (Channel::Bridge(bridge), Some((prompt, without))) = (self.channel(), &prompt) {
            bridge.send_on(&self.site, prompt).await?;
            return Ok((sent_words(prompt, without), None, Continuation::Sent));
        }
        let (connection, words) = match (&self.connection, &self.owner, self.kind) {
            (Some(connection), ..) => {
                let silent = if self.status == Status::Stuck {
                    connection.abort_silent(&self.site).await?
                } else {
                    SilentTurn::Over
                };
                if silent == SilentTurn::Receives {
                    self.report_receiving();
                    return done(RECEIVES);
                }
                (Arc::clone(connection), "attached as before")
            }
            (None, owner, _) if owner.live().is_some() => {
                let (attached, silent) = channel::attach(&self.site, self.policy(), self.events(), self.task).await?;
                let connection = Arc::new(attached);
                match silent {
                    // The turn may still run and ask for something, so somebody must stay attached.
                    Err(failure) => {
                        let connection = (failure.kind == FailureKind::Unconfirmed).then_some(connection);
                        return Err(OrderError { connection, ..failure.into() });
                    }
                    // Nothing is sent behind the answer either.
                    Ok(SilentTurn::Receives) => {
                        self.report_receiving();
                        return Ok((
                            format!("attached to its server; {RECEIVES}"),
                            Some(connection),
                            Continuation::None,
                        ));
                    }
                    Ok(SilentTurn::Over | SilentTurn::Asks) => {}
                }
                (connection, "attached to its server: what it asks for comes here from now on")
            }
            (None, _, Kind::Sdk) => {
                if prompt.is_some() {
                    self.check_agreed().await?;
                }
                let program = self.program().await?;
                let (events, policy) = (self.events(), self.policy());
                let home = self.source.home();
                let hosted = channel::host(&program, home, &self.site, policy, events, self.task).await?;
                (Arc::new(hosted), "resumed in a server of our own, for as long as Pilotlight runs")
            }
            (None, ..) => return self.resume().await,
        };
        let kept = self.connection.is_none().then(|| Arc::clone(&connection));
        let lacks = connection.has_instructions().filter(|_| kept.is_some()).map(without_program);
        let Some((prompt, without)) = prompt else {
            let lacks = lacks.map_or(String::new(), |lacks| format!(", {lacks}"));
            return Ok((format!("{words}{lacks}"), kept, Continuation::None));
        };
        if let Some(lacks) = lacks.filter(|_| !self.order.agreed.contains(&Doubt::WithoutProgram)) {
            let words = format!(
                "nothing was sent: it is resumed in a server of our own, {lacks}; tell it to go on once more if you \
                 want that"
            );
            return Ok((words, kept, Continuation::None));
        }
        if follow_up == Some(FollowUp::Continue) && self.has_to_wait(&connection).await {
            return Ok(("attached; it goes on when its turn is over".to_owned(), kept, Continuation::Waiting));
        }
        let (outcome, faults) = match connection.send_on(&self.site, &prompt, before).await {
            Ok(()) => return Ok((format!("{words}; {}", sent_words(&prompt, without)), kept, Continuation::Sent)),
            // The connection is kept, and the user learns of both.
            Err(failure) if failure.kind == FailureKind::Unconfirmed => {
                let words = format!("may have happened: {words}; it was told to go on, but {}", failure.why);
                (Outcome::Unconfirmed(words), failure.faults)
            }
            Err(failure) => {
                let words = format!("{words}; but it was not told to go on: {failure}");
                (Outcome::Failed(words), failure.faults)
            }
        };
        Err(OrderError { outcome, faults, connection: kept })
    }

    /// Refuses to host a session for a command that is to send a prompt and has not agreed to what it would lack: its
    /// process ended after the command was given. A click only hosts it, and another one sends the prompt.
    async fn check_agreed(&self) -> Result<(), OrderError> {
        if !self.order.by_command || self.order.agreed.contains(&Doubt::WithoutProgram) {
            return Ok(());
        }
        let (source, id) = (self.source.clone(), self.site.id.clone());
        let lacks = on_thread(move || Ok(without_program(source.has_instructions(&id)))).await?;
        Err(OrderError::refused(format!(
            "its process has ended meanwhile; nothing was sent: it would go on {lacks}; add `--yes` if you mean it"
        )))
    }

    /// Whether the session's turn still runs, so that a prompt would be queued behind the rest of it.
    async fn has_to_wait(&self, connection: &Connection) -> bool {
        let turn_open = self.site.log_view.borrow().turn_open;
        // A turn that an exited process left open in the log does not run.
        !self.was_postponed && turn_open && connection.is_working().await
    }

    /// The agent's program: the one in the settings, or else the one that is found.
    async fn program(&self) -> Result<PathBuf, OrderError> {
        let named = self.actions.program.as_deref();
        let named = named.and_then(|named| expand(named, user_home().as_deref()));
        self.source.program(named.as_deref()).await.map_err(OrderError::failed)
    }

    /// The prompt to send, and a note on what it leaves out.
    async fn prompt(&self, follow_up: FollowUp) -> Result<(Prompt, &'static str), OrderError> {
        if follow_up == FollowUp::Continue && self.site.log_view.borrow().ran > 0 {
            let is_by_bridge = matches!(self.channel(), Channel::Bridge(_));
            // A bridge does not know whether permissions can be given.
            let ours = || if is_by_bridge { GO_ON.to_owned() } else { format!("{PERMISSIONS_ARE_BACK} {GO_ON}") };
            return Ok((Prompt::Continue(self.actions.continue_prompt.clone().unwrap_or_else(ours)), ""));
        }
        let (source, id) = (self.source.clone(), self.site.id.clone());
        let failed = |error| format!("the last prompt cannot be read from its log: {error}. Nothing was done");
        // Reading a long log takes time.
        let last = on_thread(move || source.last_prompt(&id).map_err(failed)).await?;
        let without = if last.has_attachments { ", without its attachments" } else { "" };
        Ok((Prompt::Repeat(last.text), without))
    }

    /// Reports that the session's model is answering, so that it no longer counts as stuck.
    fn report_receiving(&self) {
        let _ = self.messages.send(TaskMessage::Receives(self.task)); // fails only when the engine has ended
    }

    fn events(&self) -> mpsc::UnboundedSender<Event> {
        let (events, mut live) = mpsc::unbounded_channel();
        let messages = self.messages.clone();
        tokio::spawn(async move {
            while let Some(event) = live.recv().await {
                if messages.send(TaskMessage::Live(event)).is_err() {
                    return;
                }
            }
        });
        events
    }

    async fn stop(self) -> OrderResult {
        let channel = self.channel();
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

/// Describes the prompt that was sent; `without` notes what it leaves out.
fn sent_words(prompt: &Prompt, without: &str) -> String {
    match prompt {
        Prompt::Repeat(_) => format!("your last prompt was sent again{without}"),
        Prompt::Continue(_) => "it was told to go on, as a tool ran since your last prompt".to_owned(),
    }
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
