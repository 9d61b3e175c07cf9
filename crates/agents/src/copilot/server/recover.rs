//! Acts on a session over its server: answers requests, stops a turn, sends a prompt again.
//!
//! Answering and stopping do not attach: see [`client`](super::client). Each function reports its steps, in words that
//! contain nothing of the session's content. It returns what was achieved, or the step that failed.

pub(super) mod answer;
pub(crate) mod drawn;
mod resend;
pub(super) mod stop;
#[cfg(test)]
mod tests;

pub(crate) use resend::LOG_GROWTH_TIMEOUT;
pub use resend::resend;

use super::activity;
use super::attached;
use super::client::{Activity, ServerClient};
use super::connection::Kept;
use super::servers::Endpoints;
use crate::channel::action_context::ActionContext;
use crate::channel::failure::Failure;
use crate::channel::fault::Place;
use crate::channel::order::SilentTurn;
use crate::channel::request::Request;
use crate::channel::{Channel, Connection, Keep, Listener, ServerActivity, Servers, open_request};
use answer::{answer_over, requests_over};
use async_trait::async_trait;
use pilotlight_core::order::{self, Reply, Step, Which};
use pilotlight_core::stream_probe::Word;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stop::abort;

impl Endpoints {
    /// Finds the server that has the session loaded, and connects to it.
    pub(super) async fn find(&self, context: &ActionContext) -> Result<(ServerClient, Activity), Failure> {
        let cwd = context.cwd.as_deref().unwrap_or(Path::new(""));
        let mut faults = Vec::new();
        for endpoint in self.all() {
            let attempt = async {
                let link = ServerClient::open(endpoint, cwd).await?;
                let activity = link.reach(&context.id, context.owned).await?;
                Ok((link, activity))
            };
            match attempt.await {
                Ok((link, activity)) => {
                    context.step(Step::Attach, format!("connected to {}", link.place()));
                    return Ok((link, activity));
                }
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            return Err(Failure::no_server());
        }
        let why = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Err(Failure { step: Some(Step::Attach), faults, ..Failure::failed(why) })
    }
}

/// Answers and stops without attaching.
#[async_trait]
impl Channel for Endpoints {
    async fn request(&self, context: &ActionContext, id: &str) -> Result<Request, Failure> {
        let (link, _) = self.find(context).await?;
        open_request(requests_over(&link, context).await?, id)
    }

    async fn answer(
        &self,
        context: &ActionContext,
        which: &Which,
        decision: &order::Decision,
    ) -> Result<String, Failure> {
        let (link, _) = self.find(context).await?;
        answer_over(&link, context, which, decision.approves()).await
    }

    async fn reply(&self, _context: &ActionContext, _reply: &Reply) -> Result<String, Failure> {
        Err(Failure::not_attached())
    }

    async fn stop(&self, context: &ActionContext) -> Result<String, Failure> {
        let (link, _) = self.find(context).await?;
        abort(&link, context).await
    }

    async fn receives(&self, context: &ActionContext) -> Result<bool, Failure> {
        let (link, _) = self.find(context).await?;
        let receives = context.receives(|wait| link.hears(&context.id, wait)).await;
        link.leave();
        Ok(receives)
    }
}

#[async_trait]
impl Listener for Endpoints {
    async fn listen(&self, id: &str, window: Duration) -> Option<Word> {
        for endpoint in self.all() {
            let Ok(link) = ServerClient::open(endpoint, Path::new("")).await else { continue };
            let word = link.listen(id, window).await;
            link.leave();
            if let Ok(word) = word {
                return Some(word);
            }
        }
        None
    }
}

#[async_trait]
impl Servers for Endpoints {
    fn are_listed(&self) -> bool {
        self.are_listed
    }

    fn places(&self) -> Vec<Place> {
        self.all().iter().map(|endpoint| Place::At(endpoint.address)).collect()
    }

    async fn activity(&self, ids: &[Box<str>], within: Duration) -> Vec<Option<ServerActivity>> {
        activity::activity(self.all(), ids, within).await
    }

    async fn has_loaded(&self, id: &str, within: Duration) -> Option<bool> {
        activity::has_loaded(self.all(), id, within).await
    }

    async fn attach(
        &self,
        context: &ActionContext,
        keep: Keep,
    ) -> Result<(Arc<dyn Connection>, Result<SilentTurn, Failure>), Failure> {
        let (attached, silent) = attached::attach(self, context, keep).await?;
        Ok((Arc::new(Kept::Attached(attached)), silent))
    }
}
