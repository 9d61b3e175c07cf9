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

use super::attached;
use super::client::{Activity, Link};
use super::connection::Kept;
use super::probe;
use super::servers::Endpoints;
use crate::channel::failure::Failure;
use crate::channel::fault::Place;
use crate::channel::order::SilentTurn;
use crate::channel::request::Request;
use crate::channel::site::Site;
use crate::channel::{Channel, Connection, Keep, Listener, ProbeResult, Servers, open_request};
use answer::{answer_over, requests_over};
use async_trait::async_trait;
use pilotlight_core::order::{Reply, Step, Which};
use pilotlight_core::reception::Word;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stop::abort;

impl Endpoints {
    /// Finds the server that has the session loaded, and connects to it.
    pub(super) async fn find(&self, site: &Site) -> Result<(Link, Activity), Failure> {
        let cwd = site.cwd.as_deref().unwrap_or(Path::new(""));
        let mut faults = Vec::new();
        for endpoint in self.all() {
            let attempt = async {
                let link = Link::open(endpoint, cwd).await?;
                let activity = link.reach(&site.id, site.owned).await?;
                Ok((link, activity))
            };
            match attempt.await {
                Ok((link, activity)) => {
                    site.step(Step::Attach, format!("connected to {}", link.place()));
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
    async fn request(&self, site: &Site, id: &str) -> Result<Request, Failure> {
        let (link, _) = self.find(site).await?;
        open_request(requests_over(&link, site).await?, id)
    }

    async fn answer(&self, site: &Site, which: &Which, approve: bool) -> Result<String, Failure> {
        let (link, _) = self.find(site).await?;
        answer_over(&link, site, which, approve).await
    }

    async fn reply(&self, _site: &Site, _reply: &Reply) -> Result<String, Failure> {
        Err(Failure::not_attached())
    }

    async fn stop(&self, site: &Site) -> Result<String, Failure> {
        let (link, _) = self.find(site).await?;
        abort(&link, site).await
    }

    async fn receives(&self, site: &Site) -> Result<bool, Failure> {
        let (link, _) = self.find(site).await?;
        let receives = site.receives(|wait| link.hears(&site.id, wait)).await;
        link.leave();
        Ok(receives)
    }
}

#[async_trait]
impl Listener for Endpoints {
    async fn listen(&self, id: &str, window: Duration) -> Option<Word> {
        for endpoint in self.all() {
            let Ok(link) = Link::open(endpoint, Path::new("")).await else { continue };
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

    async fn probe(&self, ids: &[Box<str>], within: Duration) -> Vec<Option<ProbeResult>> {
        probe::probe(self.all(), ids, within).await
    }

    async fn has_loaded(&self, id: &str, within: Duration) -> Option<bool> {
        probe::has_loaded(self.all(), id, within).await
    }

    async fn attach(
        &self,
        site: &Site,
        keep: Keep,
    ) -> Result<(Arc<dyn Connection>, Result<SilentTurn, Failure>), Failure> {
        let (attached, silent) = attached::attach(self, site, keep).await?;
        Ok((Arc::new(Kept::Attached(attached)), silent))
    }
}
