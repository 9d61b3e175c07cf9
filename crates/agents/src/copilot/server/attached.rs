//! One more client of a session: it answers permission requests, receives events and can send prompts.
//!
//! The permission handler is part of the resume call, so no request can arrive before it is in place. Earlier requests
//! are taken over from the list of open ones. Resuming a loaded session writes nothing to its log if the resume event
//! is suppressed. Otherwise every reader of the log would take the open turn for over.
//!
//! A server ends a session when its last client disconnects. If the session's own client is gone, we are the last one.
//! So an [`Attached`] must be kept: dropping it closes the connection.

mod forwarder;
#[cfg(test)]
mod tests;

use super::client::{Activity, Decision, ServerClient};
use super::questions::Questions;
use super::recover::answer::{answer_over, requests_over};
use super::recover::stop;
use super::reply;
use super::servers::Endpoints;
use crate::channel::Keep;
use crate::channel::action_context::{ActionContext, RECEIVES};
use crate::channel::failure::Failure;
use crate::channel::fault::Fault;
use crate::channel::order::{Policy, SilentTurn};
use crate::channel::request::Request;
use async_trait::async_trait;
use forwarder::EventForwarder;
use github_copilot_sdk::handler::{PermissionHandler, PermissionResult};
use github_copilot_sdk::session::Session;
use github_copilot_sdk::{PermissionRequestData, RequestId, ResumeSessionConfig, SessionId};
use pilotlight_core::order::{Reply, Step, Which};
use pilotlight_core::text::counted;
use pilotlight_system::log::{self, private};
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// How often the server's event log is read for a prompt that was just sent: it shows there within milliseconds.
const PROMPT_POLL: Duration = Duration::from_millis(10);

/// An attachment to a session. Dropping it closes the connection.
#[derive(Debug)]
pub struct Attached {
    pub(super) link: ServerClient,
    id: Box<str>,
    policy: Policy,
    approved: AutoApproved,
    questions: Arc<watch::Sender<Questions>>,
    /// Keeps the SDK's handlers alive.
    _session: SdkSession,
    forwarder: AbortHandle,
    /// Notified when the session may be gone although its server lives.
    recheck: Arc<Notify>,
    /// Whether its server is that of the terminal interface, which keeps it when we leave.
    in_terminal: bool,
    /// The clients that were connected before us, if none of them could be asked.
    silent_clients: Option<BTreeSet<u16>>,
    /// For a server of our own: whether another process seemed to have the session when it was resumed.
    pub(super) in_use_before: Option<bool>,
}

/// What a session does, by its server's own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing, and nobody has prompted it since.
    Rests,
    Works,
    /// Somebody has prompted it since.
    Prompted,
}

/// The SDK's session, which does not implement `Debug`.
struct SdkSession(#[expect(dead_code, reason = "kept alive")] Session);

impl std::fmt::Debug for SdkSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

/// The requests that were allowed automatically, so that none is answered twice.
#[derive(Clone, Debug, Default)]
struct AutoApproved(Arc<Mutex<HashSet<String>>>);

impl AutoApproved {
    /// Adds a request. Returns whether it was new.
    fn insert(&self, request: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request.to_owned())
    }
}

/// Answers the server's permission requests.
struct RequestHandler {
    policy: Policy,
    approved: AutoApproved,
}

#[async_trait]
impl PermissionHandler for RequestHandler {
    async fn handle(&self, _: SessionId, request: RequestId, data: PermissionRequestData) -> PermissionResult {
        let managed = data.managed_settings_enabled || data.managed_approval_required == Some(true);
        if self.policy == Policy::ApproveAll && !managed && self.approved.insert(request.as_ref()) {
            PermissionResult::approve_once()
        } else {
            // The request stays open for the user or for another client.
            PermissionResult::no_result()
        }
    }
}

/// Attaches to a session where it is loaded, so that its requests reach us too. Open requests are taken over. If there
/// are none, and the session is silent although its server reports work, the turn is aborted; what came of that is
/// returned beside the connection, which exists in any case.
pub async fn attach(
    servers: &Endpoints,
    context: &ActionContext,
    keep: Keep,
) -> Result<(Attached, Result<SilentTurn, Failure>), Failure> {
    let (link, _) = servers.find(context).await?;
    let failed = |fault| Failure::of(Step::Attach, fault);
    // A resume event in the log would mean that the session starts over.
    let config = ResumeSessionConfig::new(SessionId::new(&*context.id)).with_suppress_resume_event(true);
    let attached = Attached::over(link, context, config, keep).await.map_err(failed)?;
    context.step(Step::Attach, "attached");
    let open = attached.take_over(context).await?;
    let silent = attached.abort_if_silent(context, open).await;
    Ok((attached, silent))
}

impl Attached {
    /// Resumes the session over this connection with `config`, and starts to forward its events.
    pub(super) async fn over(
        link: ServerClient,
        context: &ActionContext,
        config: ResumeSessionConfig,
        keep: Keep,
    ) -> Result<Self, Fault> {
        let Keep { policy, events, generation } = keep;
        let silent_clients = context.log_view.borrow().denied.then(|| link.other_clients()).flatten();
        let approved = AutoApproved::default();
        let handler = Arc::new(RequestHandler { policy, approved: approved.clone() });
        let session = link.resume(config.with_permission_handler(handler)).await?;
        // The first subscription includes the events from during the resume.
        let subscription = session.subscribe();
        // Attach even if the server keeps no event log: later questions arrive as events.
        let logged = match link.questions(&context.id).await {
            Err(Fault::Unknown(..) | Fault::Rejected(..) | Fault::Misunderstood(..)) => Questions::default(),
            logged => logged?,
        };
        let active = link.activity(&context.id).await?.has_active_work;
        let in_terminal = link.is_foreground(&context.id).await;
        // The end of a question may be missing from the log. A session without work asks nothing.
        let questions = Arc::new(watch::Sender::new(if active { logged } else { Questions::default() }));
        let recheck = Arc::new(Notify::new());
        let forwarder = EventForwarder {
            link: link.clone(),
            id: context.id.clone(),
            generation,
            events,
            questions: Arc::clone(&questions),
            recheck: Arc::clone(&recheck),
        };
        let forwarder = tokio::spawn(forwarder.run(subscription, active)).abort_handle();
        let session = SdkSession(session);
        Ok(Self {
            link,
            id: context.id.clone(),
            policy,
            approved,
            questions,
            _session: session,
            forwarder,
            recheck,
            in_terminal,
            silent_clients,
            in_use_before: None,
        })
    }

    /// Takes over the requests that were open before we attached. Returns how many there were.
    pub(super) async fn take_over(&self, context: &ActionContext) -> Result<usize, Failure> {
        if self.policy == Policy::Observe {
            return Ok(0);
        }
        let failed = |fault| Failure::of(Step::Answer, fault);
        let open = self.link.pending(&self.id).await.map_err(failed)?;
        let mut approved = 0;
        if self.policy == Policy::ApproveAll {
            for request in open.iter().filter(|request| !request.managed && self.approved.insert(&request.id)) {
                let answered = self.link.answer(&self.id, &request.id, Decision::ApproveUnseen).await;
                approved += usize::from(answered.map_err(failed)?);
            }
        }
        context.step(Step::Answer, format!("{}, {approved} approved", counted(open.len(), "open request")));
        Ok(open.len())
    }

    /// Whether an open question to the user is known.
    pub(crate) fn asks(&self) -> bool {
        !self.questions.borrow().is_empty()
    }

    /// Aborts the turn of a session that is silent although its server reports work, if it had no requests open when we
    /// attached.
    pub(crate) async fn abort_if_silent(&self, context: &ActionContext, open: usize) -> Result<SilentTurn, Failure> {
        let is_silent = self.policy != Policy::Observe && open == 0 && context.log_view.borrow().silent;
        if is_silent { self.abort_silent(context).await } else { Ok(SilentTurn::Over) }
    }

    /// Aborts the turn if one runs, unless an open question to the user is known, a tool is open, which may work, or wait
    /// for the user of another client, or its model's answer arrives.
    pub(crate) async fn abort_silent(&self, context: &ActionContext) -> Result<SilentTurn, Failure> {
        if self.asks() {
            context.step(Step::Answer, "it asks you something: nothing is stopped");
            return Ok(SilentTurn::Asks);
        }
        if context.log_view.borrow().tools_open > 0 {
            context.step(Step::Answer, "an open tool may be working, or waiting for you: nothing is stopped");
            return Ok(SilentTurn::Asks);
        }
        if self.receives(context).await {
            context.step(Step::Answer, RECEIVES);
            return Ok(SilentTurn::Receives);
        }
        self.abort_if_busy(context).await?;
        Ok(SilentTurn::Over)
    }

    /// Whether the session's model is answering.
    pub(crate) async fn receives(&self, context: &ActionContext) -> bool {
        context.receives(|wait| self.link.hears(&self.id, wait)).await
    }

    /// Aborts the turn if one runs.
    pub(super) async fn abort_if_busy(&self, context: &ActionContext) -> Result<(), Failure> {
        let activity = self.activity().await.map_err(|fault| Failure::of(Step::Abort, fault))?;
        if activity.has_active_work {
            self.abort(context).await?;
        }
        Ok(())
    }

    /// Its open requests.
    pub(crate) async fn requests(&self, context: &ActionContext) -> Result<Vec<Request>, Failure> {
        requests_over(&self.link, context).await
    }

    /// Answers open requests, like [`Endpoints`] without attaching.
    pub async fn answer(&self, context: &ActionContext, which: &Which, approve: bool) -> Result<String, Failure> {
        answer_over(&self.link, context, which, approve).await
    }

    /// Answers an open question, or shows it.
    pub(crate) async fn reply(&self, context: &ActionContext, reply: &Reply) -> Result<String, Failure> {
        reply::reply(&self.link, &self.questions, context, reply).await
    }

    /// Aborts the running turn, like [`Endpoints`] without attaching.
    pub(crate) async fn abort(&self, context: &ActionContext) -> Result<String, Failure> {
        stop::abort(&self.link, context).await
    }

    /// The session's activity.
    pub async fn activity(&self) -> Result<Activity, Fault> {
        self.link.activity(&self.id).await
    }

    /// The end of the server's event log. `None` if it keeps none.
    pub(super) async fn log_end(&self) -> Result<Option<String>, Fault> {
        match self.link.log_end(&self.id).await {
            Err(Fault::Unknown(..) | Fault::Rejected(..) | Fault::Misunderstood(..)) => Ok(None),
            end => end.map(Some),
        }
    }

    /// Whether another prompt than `message` is the first after this place in its server's event log. Waits for the first
    /// one until then.
    pub(super) async fn is_behind(&self, log_end: &str, message: &str, until: Instant) -> Result<bool, Fault> {
        loop {
            match self.link.prompt_since(&self.id, log_end).await? {
                Some(first) => return Ok(!first.is_empty() && first != message),
                None if Instant::now() >= until => return Ok(false),
                None => sleep(PROMPT_POLL).await,
            }
        }
    }

    /// Takes back a prompt that still waits for its turn. Returns `false` if it no longer does.
    pub(super) async fn withdraw(&self, message: &str, prompt: &str) -> Result<bool, Fault> {
        self.link.withdraw(&self.id, message, prompt).await
    }

    /// Whether the session rests and was not prompted after this place in its server's event log.
    pub(super) async fn rests_since(&self, log_end: Option<&str>) -> Result<Rest, Fault> {
        if let Some(log_end) = log_end
            && self.link.prompt_since(&self.id, log_end).await?.is_some()
        {
            return Ok(Rest::Prompted);
        }
        Ok(if self.activity().await?.has_active_work { Rest::Works } else { Rest::Rests })
    }

    /// Sends a prompt. A server of our own owns its session only from the first prompt on. If another process resumed
    /// the session before that, nothing is sent. Returns the prompt's id, if the server gives one.
    pub async fn send(&self, prompt: &str) -> Result<Option<String>, Fault> {
        if self.in_use_before == Some(false) && self.link.in_use_elsewhere(&self.id).await? {
            return Err(Fault::Taken(self.link.place()));
        }
        self.link.send(&self.id, prompt).await
    }

    /// Call this when the session's folder is gone. From now on, the heartbeat also asks whether the server still has
    /// the session, because a server does not report that one was deleted. If it does not, the attachment is over.
    pub(crate) fn recheck_loaded(&self) {
        self.recheck.notify_one();
    }

    /// The connection.
    pub fn link(&self) -> &ServerClient {
        &self.link
    }

    /// Whether the session would end if we left. `Some(true)` if we are its server's only client; `None` if there are
    /// others, who may or may not be attached to this session. `Some(false)` if it is in the terminal of a `--ui-server`,
    /// which is no client, and keeps it.
    pub fn is_last_client(&self) -> Option<bool> {
        if self.in_terminal { Some(false) } else { self.link.is_only_client() }
    }

    /// Detaches. If nobody else is attached, the server ends the session. Otherwise the session is left as it was
    /// found. Once a server had a client to ask, it keeps asking, and would wait forever for an answer. So if the
    /// session could ask nobody before us, and no other client has connected since, it is stopped from asking.
    pub async fn leave(self) {
        let Some(before) = &self.silent_clients else { return };
        if !self.link.other_clients().is_some_and(|now| !now.is_empty() && now.is_subset(before)) {
            return;
        }
        let stopped = async {
            self.link.stop_asking(&self.id).await?;
            for request in self.link.pending(&self.id).await? {
                self.link.answer(&self.id, &request.id, Decision::Unanswered).await?;
            }
            Ok::<_, Fault>(())
        };
        if let Err(fault) = stopped.await {
            log::warn!(session = private(&self.id), "its requests may wait for ever from now on: {}", private(&fault));
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.forwarder.abort();
        self.link.leave();
    }
}
