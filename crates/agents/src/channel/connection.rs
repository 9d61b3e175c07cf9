//! A connection to a session, which is kept.

use super::failure::Failure;
use super::fault::Place;
use super::order::{Prompt, SilentTurn};
use super::site::Site;
use crate::copilot::server::attached::Attached;
use crate::copilot::server::client::Link;
use crate::copilot::server::hosted::Hosted;
use crate::copilot::server::recover::{LOG_GROWTH_TIMEOUT, resend};
use pilotlight_core::action::ServerState;
use pilotlight_core::attempts::Mark;

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there are a few of them, each in an `Arc` of its own")]
pub enum Connection {
    /// To a server that we do not run.
    Attached(Attached),
    /// To a server of our own.
    Hosted(Hosted),
}

impl Connection {
    /// The attached client, common to both.
    pub(super) const fn attached(&self) -> &Attached {
        match self {
            Self::Attached(attached) => attached,
            Self::Hosted(hosted) => hosted.attached(),
        }
    }

    /// Its server.
    pub fn place(&self) -> Place {
        self.link().place()
    }

    /// The connection to its server.
    pub(super) fn link(&self) -> &Link {
        self.attached().link()
    }

    /// How we are connected.
    pub fn state(&self) -> ServerState {
        match self {
            Self::Attached(_) => ServerState::Attached,
            Self::Hosted(hosted) => hosted.pid().map_or(ServerState::Attached, ServerState::Hosted),
        }
    }

    /// Whether the session is known to end when we disconnect.
    pub fn ends_with_us(&self) -> bool {
        match self {
            Self::Attached(attached) => attached.is_last_client() == Some(true),
            Self::Hosted(_) => true,
        }
    }

    /// For a server of our own: whether the session has the instructions that its own program gave it.
    pub const fn has_instructions(&self) -> Option<bool> {
        match self {
            Self::Attached(_) => None,
            Self::Hosted(hosted) => Some(hosted.has_instructions()),
        }
    }

    /// Call this when the session is gone from disk: its server is asked whether it still has it.
    pub fn recheck_loaded(&self) {
        self.attached().recheck_loaded();
    }

    /// Whether its server says that the session works.
    pub async fn is_working(&self) -> bool {
        self.attached().activity().await.is_ok_and(|activity| activity.has_active_work)
    }

    /// Aborts the turn if it is silent, and neither asks nor receives.
    pub async fn abort_silent(&self, site: &Site) -> Result<SilentTurn, Failure> {
        self.attached().abort_silent(site).await
    }

    /// Sends a prompt that continues the session. `before` is the last prompt when the order began.
    pub async fn send_on(&self, site: &Site, prompt: &Prompt, before: Option<Mark>) -> Result<(), Failure> {
        resend(self.attached(), prompt, before, site, LOG_GROWTH_TIMEOUT).await.map(drop)
    }

    /// Closes it in an orderly way.
    pub async fn close(self) {
        match self {
            Self::Attached(attached) => attached.leave().await,
            Self::Hosted(hosted) => hosted.end().await,
        }
    }
}
