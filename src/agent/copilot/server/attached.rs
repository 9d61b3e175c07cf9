//! One more client of a session: asked for permission, told what happens, able to send.
//!
//! The permission handler is part of the resume itself, so no request can come before it is there; what came before is
//! taken over from the list of open requests. Resuming a session that is loaded writes nothing to its log, as long as the
//! resume event is suppressed: otherwise every reader of the log would take the open turn for over.
//!
//! A server ends a session with its last client. Whoever attaches to a session whose client went away is that last one: an
//! [`Attached`] wants to be kept, and closes its connection when it is dropped.

mod teller;
#[cfg(test)]
mod tests;

pub use teller::{Event, What};

use super::asking::Questions;
use super::client::{Activity, Decision, Link};
use super::fault::Fault;
use super::recover::{self, Failure, RequestAnswer, Site, Steps};
use super::replying::{self, QuestionAnswer};
use crate::core::order::Step;
use crate::core::text::counted;
use async_trait::async_trait;
use github_copilot_sdk::handler::{PermissionHandler, PermissionResult};
use github_copilot_sdk::session::Session;
use github_copilot_sdk::{PermissionRequestData, RequestId, ResumeSessionConfig, SessionId};
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use teller::Teller;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// Who answers the requests of a session that we are attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The user, one by one.
    Ask,
    /// We allow every one, because the user's settings say so; but for those that the organisation wants a person for.
    ApproveAll,
    /// The user; and nothing is done about what is open or silent already.
    Observe,
}

/// An attachment. Closed when dropped.
#[derive(Debug)]
pub struct Attached {
    pub(super) link: Link,
    id: Box<str>,
    policy: Policy,
    answered: Answered,
    /// What it asks its user.
    questions: Arc<watch::Sender<Questions>>,
    /// The SDK answers for as long as this lives.
    _session: SessionHeld,
    forward: AbortHandle,
    /// Says that the session may be gone though its server lives.
    doubt: Arc<Notify>,
    /// The clients that were connected when we came, where none of them was there to be asked.
    alone_among: Option<BTreeSet<u16>>,
    /// For a server of our own: whether another process seemed to have the session already when it was resumed.
    pub(super) taken_before: Option<bool>,
}

/// The SDK's session cannot be shown.
struct SessionHeld(#[expect(dead_code, reason = "kept alive")] Session);

impl std::fmt::Debug for SessionHeld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

/// The requests that we allowed by ourselves, so that none is answered twice.
#[derive(Clone, Debug, Default)]
struct Answered(Arc<Mutex<HashSet<String>>>);

impl Answered {
    /// Whether this request is not among them yet; now it is.
    fn is_new(&self, request: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(request.to_owned())
    }
}

/// Asked by the server for every request.
struct Answering {
    policy: Policy,
    answered: Answered,
}

#[async_trait]
impl PermissionHandler for Answering {
    async fn handle(&self, _: SessionId, request: RequestId, data: PermissionRequestData) -> PermissionResult {
        let managed = data.managed_settings_enabled || data.managed_approval_required == Some(true);
        if self.policy == Policy::ApproveAll && !managed && self.answered.is_new(request.as_ref()) {
            PermissionResult::approve_once()
        } else {
            // It stays open, for the user or for another client.
            PermissionResult::no_result()
        }
    }
}

/// Attaches to a session where it is loaded: from now on its requests are asked of us too. The requests that are open
/// already are taken over; if none is, but the session is silent although its server says that it works, the turn is
/// aborted.
pub async fn attach(
    site: &Site,
    policy: Policy,
    events: UnboundedSender<Event>,
    generation: u64,
    steps: Steps<'_>,
) -> Result<Attached, Failure> {
    let (attached, open) = join(site, policy, events, generation, steps).await?;
    attached.stop_silence(site, open, steps).await?;
    Ok(attached)
}

/// The same without the abort. Also says how many requests were open.
pub(crate) async fn join(
    site: &Site,
    policy: Policy,
    events: UnboundedSender<Event>,
    generation: u64,
    steps: Steps<'_>,
) -> Result<(Attached, usize), Failure> {
    let (link, _) = recover::find(site, steps).await?;
    let failed = |fault| Failure::of(Step::Attach, fault);
    // Without a trace in its log, which would tell that the session begins anew.
    let how = ResumeSessionConfig::new(SessionId::new(&*site.id)).with_suppress_resume_event(true);
    let attached = Attached::to(link, site, policy, how, events, generation).await.map_err(failed)?;
    steps(Step::Attach, "attached".to_owned());
    let open = attached.take_over(steps).await?;
    Ok((attached, open))
}

impl Attached {
    /// Resumes the session over this connection, as `how` says, and begins to tell what happens.
    pub(super) async fn to(
        link: Link,
        site: &Site,
        policy: Policy,
        how: ResumeSessionConfig,
        events: UnboundedSender<Event>,
        generation: u64,
    ) -> Result<Self, Fault> {
        let alone_among = site.sight.borrow().denied.then(|| link.peers()).flatten();
        let answered = Answered::default();
        let handler = Arc::new(Answering { policy, answered: answered.clone() });
        let session = link.resume(how.with_permission_handler(handler)).await?;
        // The first subscription begins with what came during the resume.
        let heard = session.subscribe();
        // A server that keeps no such log is no reason not to attach: what is asked from now on is heard.
        let asked = match link.questions(&site.id).await {
            Err(Fault::Unknown(..) | Fault::Rejected(..) | Fault::Misunderstood(..)) => Questions::default(),
            asked => asked?,
        };
        let active = link.activity(&site.id).await?.has_active_work;
        // The log may tell of a question whose end was cut off it; where nothing works, nothing asks.
        let questions = Arc::new(watch::Sender::new(if active { asked } else { Questions::default() }));
        let doubt = Arc::new(Notify::new());
        let teller = Teller {
            link: link.clone(),
            id: site.id.clone(),
            generation,
            events,
            questions: Arc::clone(&questions),
            doubt: Arc::clone(&doubt),
        };
        let forward = tokio::spawn(teller.tell(heard, active)).abort_handle();
        let session = SessionHeld(session);
        Ok(Self {
            link,
            id: site.id.clone(),
            policy,
            answered,
            questions,
            _session: session,
            forward,
            doubt,
            alone_among,
            taken_before: None,
        })
    }

    /// Sees to the requests that were open before we came, and says how many there were.
    pub(super) async fn take_over(&self, steps: Steps<'_>) -> Result<usize, Failure> {
        if self.policy == Policy::Observe {
            return Ok(0);
        }
        let failed = |fault| Failure::of(Step::TakeOver, fault);
        let open = self.link.pending(&self.id).await.map_err(failed)?;
        let mut approved = 0;
        if self.policy == Policy::ApproveAll {
            for request in open.iter().filter(|request| !request.managed && self.answered.is_new(&request.id)) {
                let answered = self.link.answer(&self.id, &request.id, Decision::ApproveUnseen).await;
                approved += usize::from(answered.map_err(failed)?);
            }
        }
        steps(Step::TakeOver, format!("{}, {approved} approved", counted(open.len(), "open request")));
        Ok(open.len())
    }

    /// Whether it is known to wait for its user.
    pub(crate) fn asks(&self) -> bool {
        !self.questions.borrow().is_empty()
    }

    /// Aborts the turn of a session that had `open` requests when we came, if it is silent although its server says that it works.
    pub(crate) async fn stop_silence(&self, site: &Site, open: usize, steps: Steps<'_>) -> Result<(), Failure> {
        let is_silent = self.policy != Policy::Observe && open == 0 && site.sight.borrow().silent;
        if is_silent { self.abort_silent(site, steps).await } else { Ok(()) }
    }

    /// Aborts what runs, where something does that is not known to wait for the user.
    pub(crate) async fn abort_silent(&self, site: &Site, steps: Steps<'_>) -> Result<(), Failure> {
        if self.asks() {
            steps(Step::TakeOver, "it asks you something: nothing is stopped".to_owned());
            return Ok(());
        }
        self.abort_if_busy(site, steps).await
    }

    /// Aborts what runs, where something does.
    pub(super) async fn abort_if_busy(&self, site: &Site, steps: Steps<'_>) -> Result<(), Failure> {
        let activity = self.activity().await.map_err(|fault| Failure::of(Step::Abort, fault))?;
        if activity.has_active_work {
            self.abort(site, steps).await?;
        }
        Ok(())
    }

    /// Answers open requests, as [`recover::answer`] does.
    pub async fn answer(&self, answer: RequestAnswer<'_>) -> Result<String, Failure> {
        recover::answer_over(&self.link, answer).await
    }

    /// Answers an open question, or shows it.
    pub(crate) async fn reply(&self, answer: QuestionAnswer<'_>) -> Result<String, Failure> {
        replying::reply(&self.link, &self.questions, answer).await
    }

    /// Aborts the turn that runs, as [`recover::stop`] does.
    pub(crate) async fn abort(&self, site: &Site, steps: Steps<'_>) -> Result<String, Failure> {
        recover::abort(&self.link, site, steps).await
    }

    /// What the session does.
    pub async fn activity(&self) -> Result<Activity, Fault> {
        self.link.activity(&self.id).await
    }

    /// Sends a prompt. A session in a server of our own is its server's alone only from its first prompt on; if somebody
    /// else took it up before that, nothing is sent.
    pub async fn send(&self, prompt: &str) -> Result<(), Fault> {
        if self.taken_before == Some(false) && self.link.in_use_elsewhere(&self.id).await? {
            return Err(Fault::Taken(self.link.place()));
        }
        self.link.send(&self.id, prompt).await
    }

    /// The session's folder is gone. From now on its server is asked whether it still has the session, because a server tells
    /// nobody that one was deleted: the attachment to one that it has not any more is over.
    pub(crate) fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// The connection.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Whether the session would end if we left: `Some(true)` where nobody else is connected to its server; `None` where
    /// somebody is, who may or may not be attached to this session. The terminal of a `--ui-server` is no client: its
    /// session does not end.
    pub fn is_last_client(&self) -> Option<bool> {
        self.link.is_only_client()
    }

    /// Leaves. If nobody else is attached, the server ends the session. Else it is left as it was before we came: a server
    /// goes on asking once somebody was there to be asked, and would wait for ever; so a session that could ask nobody, and
    /// that nobody else has come to, is told to ask no more.
    pub async fn leave(self) {
        let Some(before) = &self.alone_among else { return };
        if !self.link.peers().is_some_and(|now| !now.is_empty() && now.is_subset(before)) {
            return;
        }
        let told = async {
            self.link.ask_no_more(&self.id).await?;
            for request in self.link.pending(&self.id).await? {
                self.link.answer(&self.id, &request.id, Decision::Unanswered).await?;
            }
            Ok::<_, Fault>(())
        };
        if let Err(fault) = told.await {
            tracing::warn!(session = %self.id, "what it asks for from now on may wait for ever: {fault}");
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.forward.abort();
        self.link.leave();
    }
}
