//! A connection to a session, which is kept: to a server that we do not run, or to one of our own.

use super::attached::Attached;
use super::client::ServerClient;
use super::hosted::Hosted;
use super::recover::{LOG_GROWTH_TIMEOUT, resend};
use crate::channel::action_context::ActionContext;
use crate::channel::failure::Failure;
use crate::channel::fault::Place;
use crate::channel::order::{Prompt, SilentTurn};
use crate::channel::request::Request;
use crate::channel::{Channel, Connection, Listener, open_request};
use async_trait::async_trait;
use pilotlight_core::action::ServerState;
use pilotlight_core::attempts::Mark;
use pilotlight_core::order::{self, Reply, Which};
use pilotlight_core::stream_probe::Word;
use std::sync::Arc;
use std::time::Duration;

/// A connection to a session, which is kept.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are a few of them, each in an `Arc` of its own")]
pub(crate) enum Kept {
    /// To a server that we do not run.
    Attached(Attached),
    /// To a server of our own.
    Hosted(Hosted),
}

impl Kept {
    /// The attached client, common to both.
    const fn attached(&self) -> &Attached {
        match self {
            Self::Attached(attached) => attached,
            Self::Hosted(hosted) => hosted.attached(),
        }
    }
}

#[async_trait]
impl Channel for Kept {
    async fn request(&self, context: &ActionContext, id: &str) -> Result<Request, Failure> {
        open_request(self.attached().requests(context).await?, id)
    }

    async fn answer(
        &self,
        context: &ActionContext,
        which: &Which,
        decision: &order::Decision,
    ) -> Result<String, Failure> {
        self.attached().answer(context, which, decision.approves()).await
    }

    async fn reply(&self, context: &ActionContext, reply: &Reply) -> Result<String, Failure> {
        self.attached().reply(context, reply).await
    }

    async fn stop(&self, context: &ActionContext) -> Result<String, Failure> {
        self.attached().abort(context).await
    }

    async fn receives(&self, context: &ActionContext) -> Result<bool, Failure> {
        Ok(self.attached().receives(context).await)
    }
}

#[async_trait]
impl Connection for Kept {
    fn place(&self) -> Place {
        self.attached().link().place()
    }

    fn state(&self) -> ServerState {
        match self {
            Self::Attached(_) => ServerState::Attached,
            Self::Hosted(hosted) => hosted.pid().map_or(ServerState::Attached, ServerState::Hosted),
        }
    }

    fn ends_with_us(&self) -> bool {
        match self {
            Self::Attached(attached) => attached.is_last_client() == Some(true),
            Self::Hosted(_) => true,
        }
    }

    fn has_instructions(&self) -> Option<bool> {
        match self {
            Self::Attached(_) => None,
            Self::Hosted(hosted) => Some(hosted.has_instructions()),
        }
    }

    fn recheck_loaded(&self) {
        self.attached().recheck_loaded();
    }

    fn listener(&self) -> Arc<dyn Listener> {
        Arc::new(self.attached().link().clone())
    }

    async fn is_working(&self) -> bool {
        self.attached().activity().await.is_ok_and(|activity| activity.has_active_work)
    }

    async fn abort_silent(&self, context: &ActionContext) -> Result<SilentTurn, Failure> {
        self.attached().abort_silent(context).await
    }

    async fn send_on(&self, context: &ActionContext, prompt: &Prompt, before: Option<Mark>) -> Result<(), Failure> {
        resend(self.attached(), prompt, before, context, LOG_GROWTH_TIMEOUT).await.map(drop)
    }

    async fn close(self: Arc<Self>) {
        match Arc::into_inner(self) {
            Some(Self::Attached(attached)) => attached.leave().await,
            Some(Self::Hosted(hosted)) => hosted.end().await,
            None => {}
        }
    }
}

#[async_trait]
impl Listener for ServerClient {
    async fn listen(&self, id: &str, window: Duration) -> Option<Word> {
        Self::listen(self, id, window).await.ok()
    }
}
