//! What an order is carried out over, whichever agent the session is of.
//!
//! A [`Channel`] is what each of them can do; a kept [`Connection`], [`Servers`], a [`Bridge`] and a [`Service`] can do more,
//! and [`Reach`] lists those available for one session. An [`ActionContext`] carries the session, permit and reports of an order. A
//! [`failure`] says what went wrong, with the [`fault`] of each server tried. All channels share [`answering`]: it chooses a
//! [`request`], shows it in full, compares it with the log, and only then answers.
//!
//! # What keeps orders harmless
//!
//! - Right before sending anything, a task asks the loop (`Permit`). The loop reads the disk again, and refuses if the
//!   sender of the order has left, or if the turn that it names is no longer the last; an answer names its request instead.
//!   After that the order may have taken effect: it ends as done, failed, refused or unconfirmed.
//! - A command approves in two orders: the first shows the request and is refused, the second names the text that was shown.
//! - A question is answered by its id, and only if it is the one that was shown, by a hash of its words and choices.
//! - Nothing that is known to wait for its user is aborted. An attached client is sent new questions, and reads earlier
//!   ones from the server's own event log.
//! - A connection is given up after three unanswered heartbeats, when its owner is gone, or when its server no longer has
//!   the session. If only the session's folder is gone, its server is asked.
//! - A session that a live process owns, or has loaded without a lock, is never resumed elsewhere. If somebody takes it up
//!   after we loaded it, it is not prompted.
//! - A prompt is sent again only if every tool since then was denied before it ran: a tool without a result may have had its
//!   effect, and its shell may still run.
//! - `reconnect` is refused to agents, too, if the settings approve everything that attached sessions request.
//! - A server's word on whether its session works overrides the guesses of the verdict, unless it is older than the last
//!   line of the log.

pub mod action_context;
pub(crate) mod answering;
pub mod connection_event;
pub mod endpoint;
pub mod failure;
pub mod fault;
pub mod order;
pub mod request;
pub mod warnings;

use action_context::ActionContext;
use answering::shown;
use async_trait::async_trait;
use connection_event::ConnectionEvent;
use failure::Failure;
use fault::Place;
use order::{Policy, Prompt, SilentTurn};
use pilotlight_core::action::ServerState;
use pilotlight_core::attempts::Mark;
use pilotlight_core::order::{Decision, Reply, Which};
use pilotlight_core::stream_probe::Word;
use request::Request;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// What an order is carried out over.
#[async_trait]
pub trait Channel: fmt::Debug + Send + Sync {
    /// The open request with this id, whole.
    ///
    /// # Errors
    /// It is not open, or nobody can be asked.
    async fn request(&self, context: &ActionContext, id: &str) -> Result<Request, Failure>;

    /// Answers permission requests. Returns what was achieved.
    ///
    /// # Errors
    /// Why it was not answered, or what is not confirmed.
    async fn answer(&self, context: &ActionContext, which: &Which, decision: &Decision) -> Result<String, Failure>;

    /// Whether it takes more than yes or no: a note, a stop, a rule.
    fn takes_more(&self) -> bool {
        false
    }

    /// Answers a question, or shows it. Returns what was achieved.
    ///
    /// # Errors
    /// Why it was not answered, or what is not confirmed.
    async fn reply(&self, context: &ActionContext, reply: &Reply) -> Result<String, Failure>;

    /// Stops the turn. Returns what was achieved.
    ///
    /// # Errors
    /// Why it was not stopped, or what is not confirmed.
    async fn stop(&self, context: &ActionContext) -> Result<String, Failure>;

    /// Whether the session's model is answering.
    ///
    /// # Errors
    /// Nobody can be asked.
    async fn receives(&self, _context: &ActionContext) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Shows an open request whole, and leaves it open.
    ///
    /// # Errors
    /// It is not open, or nobody can be asked.
    async fn look(&self, context: &ActionContext, id: &str) -> Result<(), Failure> {
        let request = self.request(context, id).await?;
        context.show_request(shown(context, &request).await);
        Ok(())
    }
}

/// The request with this id among the open ones.
pub(crate) fn open_request(open: Vec<Request>, id: &str) -> Result<Request, Failure> {
    open.into_iter().find(|open| *open.id == *id).ok_or_else(Failure::no_longer_open)
}

/// Who can be asked whether a session's answer arrives.
#[async_trait]
pub trait Listener: Send + Sync {
    /// Listens for `window`. `None` if nothing usable was heard.
    async fn listen(&self, id: &str, window: Duration) -> Option<Word>;
}

/// A connection to a session that is kept, so that what the session asks comes to us.
#[async_trait]
pub trait Connection: Channel {
    /// Its server.
    fn place(&self) -> Place;

    /// How we are connected.
    fn state(&self) -> ServerState;

    /// Whether the session is known to end when we disconnect.
    fn ends_with_us(&self) -> bool;

    /// For a server of our own: whether the session has the instructions that its own program gave it.
    fn has_instructions(&self) -> Option<bool>;

    /// Call this when the session is gone from disk: its server is asked whether it still has it.
    fn recheck_loaded(&self);

    /// What listens over it, without keeping it open.
    fn listener(&self) -> Arc<dyn Listener>;

    /// Whether its server says that the session works.
    async fn is_working(&self) -> bool;

    /// Aborts the turn if it is silent, and neither asks nor receives.
    ///
    /// # Errors
    /// Why it was not aborted, or what is not confirmed.
    async fn abort_silent(&self, context: &ActionContext) -> Result<SilentTurn, Failure>;

    /// Sends a prompt that continues the session. `before` is the last prompt when the order began.
    ///
    /// # Errors
    /// Why it was not sent, or what is not confirmed.
    async fn send_on(&self, context: &ActionContext, prompt: &Prompt, before: Option<Mark>) -> Result<(), Failure>;

    /// Closes it in an orderly way. If a task still uses it, the task closes it at its end.
    async fn close(self: Arc<Self>);
}

/// What makes a connection that is to be kept.
#[derive(Clone, Debug)]
pub struct Keep {
    /// Who answers the session's permission requests.
    pub policy: Policy,
    /// Receives what is heard over it.
    pub events: UnboundedSender<ConnectionEvent>,
    /// Tells its events from those of an earlier one.
    pub generation: u64,
}

/// The servers of a process, to none of which a connection is kept.
#[async_trait]
pub trait Servers: Channel + Listener {
    /// Whether the process is known to listen there. Else these are only likely.
    fn are_listed(&self) -> bool;

    /// Which they are.
    fn places(&self) -> Vec<Place>;

    /// Asks what these sessions do, without attaching to any. `None` for a session that none told of within this time.
    async fn activity(&self, ids: &[Box<str>], within: Duration) -> Vec<Option<ServerActivity>>;

    /// Whether the process has a session loaded, by their word. `None` if one of them does not answer.
    async fn has_loaded(&self, id: &str, within: Duration) -> Option<bool>;

    /// Attaches to a session where it is loaded, and takes over what it asks. The fate of a silent turn is returned beside
    /// the connection, which exists in any case.
    ///
    /// # Errors
    /// There is no connection.
    async fn attach(
        &self,
        context: &ActionContext,
        keep: Keep,
    ) -> Result<(Arc<dyn Connection>, Result<SilentTurn, Failure>), Failure>;
}

/// How long servers may take to say what all sessions of a process do. Copilot takes milliseconds.
pub const ACTIVITY_TIMEOUT: Duration = Duration::from_secs(2);

/// A session's state, as its server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerActivity {
    /// Whether it has active work.
    pub active: bool,
    /// How many permission requests are open.
    pub requests: usize,
    /// Whether everything is approved without asking. `None`: it does not tell.
    pub approves_all: Option<bool>,
}

/// A connection from the session's own terminal to us.
#[async_trait]
pub trait Bridge: Channel + Listener {
    /// Sends a prompt on the user's behalf, if the session waits for one and none has arrived meanwhile.
    ///
    /// # Errors
    /// Why it was not sent, or what is not confirmed.
    async fn send_on(&self, context: &ActionContext, prompt: &Prompt) -> Result<(), Failure>;

    /// Has the agent ask in the terminal whether we may answer permission requests there. Returns what came of it.
    ///
    /// # Errors
    /// Why it did not ask, or that the user refused.
    async fn let_answer(&self, context: &ActionContext) -> Result<String, Failure>;
}

/// A service that runs sessions: a connection is made for each order.
#[async_trait]
pub trait Service: Channel {
    /// Listens until the connection ends, and tells what each session does.
    ///
    /// # Errors
    /// Why it ended.
    async fn watch(&self, tell: &(dyn Fn(ServiceReport) + Sync)) -> Result<(), Failure>;
}

/// What a service reports of one of its sessions, unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceReport {
    /// The session.
    pub id: Box<str>,
    /// It works.
    pub active: bool,
    /// Number of requests that it is known to have open, at least.
    pub requests: usize,
}

/// What reaches a session now.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    pub connection: Option<Arc<dyn Connection>>,
    pub servers: Option<Arc<dyn Servers>>,
    pub bridge: Option<Arc<dyn Bridge>>,
    pub service: Option<Arc<dyn Service>>,
}

impl Reach {
    /// The best of it. A server is better than a bridge.
    ///
    /// # Errors
    /// Nothing reaches it.
    pub fn channel(&self) -> Result<Arc<dyn Channel>, Failure> {
        if let Some(connection) = &self.connection {
            return Ok(Arc::clone(connection) as _);
        }
        if let Some(servers) = &self.servers {
            return Ok(Arc::clone(servers) as _);
        }
        if let Some(bridge) = &self.bridge {
            return Ok(Arc::clone(bridge) as _);
        }
        let service = self.service.clone().ok_or_else(Failure::no_server)?;
        Ok(service)
    }

    /// The best of it that hears questions: a server tells them only to who is attached.
    ///
    /// # Errors
    /// Nothing of it does.
    pub fn channel_for_questions(&self) -> Result<Arc<dyn Channel>, Failure> {
        let heard = Self { servers: None, ..self.clone() };
        heard.channel().map_err(|_| Failure::not_attached())
    }

    /// The bridge, if there is nothing better.
    pub fn only_bridge(&self) -> Option<&Arc<dyn Bridge>> {
        self.bridge.as_ref().filter(|_| self.connection.is_none() && self.servers.is_none())
    }
}
