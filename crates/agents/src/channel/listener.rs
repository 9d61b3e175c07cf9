//! Listens to a session's model.

use super::connection::Connection;
use super::endpoint::Endpoint;
use crate::copilot::bridge::carry::BridgeHandle;
use crate::copilot::server::client::Link;
use pilotlight_core::reception::Word;
use std::path::Path;
use std::time::Duration;

/// Who can be asked whether an answer arrives.
pub enum Listener {
    /// The server to which a connection is kept.
    Link(Link),
    /// One of these servers.
    Servers(Vec<Endpoint>),
    /// The bridge to the session's terminal.
    Bridge(BridgeHandle),
}

impl Listener {
    /// The server of a connection that is kept.
    pub fn over(connection: &Connection) -> Self {
        Self::Link(connection.link().clone())
    }

    /// Listens for `window`. `None` if nothing usable was heard.
    pub async fn listen(self, id: &str, window: Duration) -> Option<Word> {
        match self {
            Self::Link(link) => link.listen(id, window).await.ok(),
            Self::Bridge(bridge) => bridge.listen(window).await,
            Self::Servers(endpoints) => {
                for endpoint in &endpoints {
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
    }
}
