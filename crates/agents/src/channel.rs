//! What an order is carried out over, whichever agent the session is of.
//!
//! So far Copilot alone can be acted on: its servers and its bridges are in its folder. What an order is for is a
//! [`site`], what is asked of a channel an [`order`], and what goes wrong a [`failure`], with the [`fault`] of each
//! server that was tried.

pub mod connection;
pub mod connection_event;
pub mod endpoint;
pub mod failure;
pub mod fault;
pub mod listener;
pub mod order;
pub mod says;
pub mod site;
pub mod warnings;

use super::copilot::server::attached;
use super::copilot::server::hosted;
use super::copilot::server::recover;
use super::copilot::server::request::Request;
use connection::Connection;
use connection_event::ConnectionEvent;
use failure::Failure;
use order::{Policy, SilentTurn};
use pilotlight_core::order::{Reply, Step, Which};
use site::Site;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// The service of an agent that runs a session, and how it is reached: so far, Codex alone has one.
pub use super::codex::door::Door as Service;
pub use super::copilot::bridge::carry::BridgeHandle;
pub use super::copilot::server::hosted::is_of_our_server;
pub use super::copilot::server::probe::{PROBE_TIMEOUT, ProbeResult, has_loaded, listen_once, probe};
pub use super::copilot::server::recover::shown;
pub use super::copilot::server::servers::endpoints;

/// What an order is carried out over.
#[derive(Clone)]
pub enum Channel {
    /// A connection that is kept.
    Connection(Arc<Connection>),
    /// The bridge to the session's terminal.
    Bridge(BridgeHandle),
    /// The session's servers, to none of which a connection is kept.
    Servers,
    /// The service that runs the session: a connection is made for each order.
    Service(Service),
}

impl Channel {
    /// The best of what there is. A server is better than a bridge.
    pub fn best(
        connection: Option<Arc<Connection>>,
        bridge: Option<BridgeHandle>,
        service: Option<Service>,
        has_servers: bool,
    ) -> Self {
        match (connection, bridge) {
            (None, None) if let Some(service) = service => Self::Service(service),
            (Some(connection), _) => Self::Connection(connection),
            (None, Some(bridge)) if !has_servers => Self::Bridge(bridge),
            (None, _) => Self::Servers,
        }
    }

    /// The open request with this id, whole.
    pub async fn request(&self, site: &Site, id: &str) -> Result<Request, Failure> {
        let open = match self {
            Self::Connection(connection) => connection.attached().requests(site).await?,
            Self::Bridge(bridge) => bridge.requests(site, &[id.to_owned()]).await,
            Self::Servers => recover::requests(site).await?,
            Self::Service(service) => {
                let open = service.requests(site).await?;
                if let Some(other) = open.first().filter(|_| open.iter().all(|open| *open.id != *id)) {
                    return Err(Failure::open_instead(&other.id));
                }
                open
            }
        };
        open.into_iter().find(|open| *open.id == *id).ok_or_else(Failure::no_longer_open)
    }

    /// Answers a permission request. Returns what was achieved.
    pub async fn answer(&self, site: &Site, which: &Which, approve: bool) -> Result<String, Failure> {
        match self {
            Self::Connection(connection) => connection.attached().answer(site, which, approve).await,
            Self::Bridge(bridge) => bridge.answer(site, which, approve).await,
            Self::Servers => recover::answer(site, which, approve).await,
            Self::Service(service) => service.answer(site, which, approve).await,
        }
    }

    /// Answers a question, or shows it. Returns what was achieved.
    pub async fn reply(&self, site: &Site, reply: &Reply) -> Result<String, Failure> {
        match self {
            Self::Connection(connection) => connection.attached().reply(site, reply).await,
            Self::Bridge(bridge) => bridge.reply(site, reply).await,
            Self::Service(_) => {
                Err(Failure::refusal(Step::TakeOver, "its service takes no answers: answer it where it asks"))
            }
            Self::Servers => Err(Failure::refusal(
                Step::TakeOver,
                "Pilotlight is not attached to it any more: reconnect first, or answer it where it asks",
            )),
        }
    }

    /// Stops the turn. Returns what was achieved.
    pub async fn stop(&self, site: &Site) -> Result<String, Failure> {
        match self {
            Self::Connection(connection) => connection.attached().abort(site).await,
            Self::Bridge(bridge) => bridge.stop(site).await,
            Self::Servers => recover::stop(site).await,
            Self::Service(service) => service.stop(site).await,
        }
    }

    /// Whether the session's model is answering.
    pub async fn receives(&self, site: &Site) -> Result<bool, Failure> {
        match self {
            Self::Connection(connection) => Ok(connection.attached().receives(site).await),
            Self::Bridge(bridge) => Ok(bridge.receives(site).await),
            Self::Servers => recover::receives(site).await,
            // It does not tell, without sending all that it hears.
            Self::Service(_) => Ok(false),
        }
    }
}

/// Attaches to a session where it is loaded, and takes over what it asks. The fate of a silent turn is returned beside the
/// connection, which exists in any case.
pub async fn attach(
    site: &Site,
    policy: Policy,
    events: UnboundedSender<ConnectionEvent>,
    generation: u64,
) -> Result<(Connection, Result<SilentTurn, Failure>), Failure> {
    let (attached, silent) = attached::attach(site, policy, events, generation).await?;
    Ok((Connection::Attached(attached), silent))
}

/// Resumes a session in a server of our own: `program`, with this home. The caller has verified that its process is gone.
pub async fn host(
    program: &Path,
    home: &Path,
    site: &Site,
    policy: Policy,
    events: UnboundedSender<ConnectionEvent>,
    generation: u64,
) -> Result<Connection, Failure> {
    hosted::host(program, home, site, policy, events, generation).await.map(Connection::Hosted)
}
