//! What popups need from their caller.

use crate::tray::messages::PopupEvent;
use pilotlight_core::alert::PopupId;
use std::time::Instant;
use tokio::runtime::Handle;

/// What popups need.
pub struct PopupConfig {
    /// The runtime for their task.
    pub runtime: Handle,
    /// The address of a bus to use instead of the session's. Linux only.
    pub bus: Option<String>,
    /// Whether to trust a notification server with this process id when it reports a click on Approve: an agent must
    /// not run a server that approves its own requests. Called once per popup; Linux only.
    pub may_answer: Box<dyn Fn(u32) -> bool + Send + Sync>,
    /// The time, for telling whether a click came too soon to be meant for its popup. Linux only.
    pub now: Box<dyn Fn() -> Instant + Send + Sync>,
    /// Called once for each popup that is raised and not withdrawn, when it is clicked or closed. Must not block.
    pub clicked: Box<dyn Fn(PopupId, PopupEvent) + Send + Sync>,
}
