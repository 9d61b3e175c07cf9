//! The bridges in plain terminals, to a command that runs without a tray: whether they are installed, where it listens
//! for them, and whether one connects.

use super::context::{Context, runtime};
use crate::agent::copilot::bridge::files::Files;
use crate::agent::copilot::bridge::known::BridgeState;
use crate::agent::copilot::bridge::socket::{BridgeEvent, is_listened_to, serve};
use crate::control;
use crate::core::fleet::Session;
use crate::engine::BridgeConfig;
use crate::system::paths;
use crate::system::runtime::Runtime;
use std::time::Duration;
use tokio::time::timeout;

/// How long a running bridge may take to connect.
const BRIDGE_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for the tray to take note of a change.
const TRAY_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the user has installed the bridge.
pub(super) fn has_bridge() -> bool {
    paths::project().is_some_and(|project| Files::new(&project).key().is_some())
}

/// Where a command listens for bridges: `None` if the bridge is not installed, or another process listens already.
pub(super) fn place_for_bridges() -> Option<BridgeConfig> {
    let project = paths::project()?;
    let (files, folders) = (Files::new(&project), paths::runtime_folders(&project));
    files.key()?;
    if folders.iter().any(|folder| is_listened_to(folder)) {
        return None;
    }
    let folder = folders.into_iter().find(|folder| Runtime::make(folder).is_ok())?;
    Some(BridgeConfig { folder, files, briefly: true })
}

/// Whether a bridge that takes orders connects from this session's terminal. Only used if no tray runs, which would
/// know.
pub(super) fn finds_bridge(session: &Session, context: &Context) -> bool {
    let Some(owner) = session.owner.live().filter(|_| session.control.bridge.is_none()) else { return false };
    let (Some(BridgeConfig { folder, files, .. }), Ok(runtime)) = (place_for_bridges(), runtime()) else {
        return false;
    };
    let untried = context.config.actions.bridge_untried;
    let connects = async {
        let (_served, mut heard) = serve(&folder, files.key()?.to_vec(), false).ok()?;
        while let Some(heard) = heard.recv().await {
            if let BridgeEvent::Joined(_, hello, _) = heard
                && (&hello.session, hello.ppid) == (&session.id, owner)
            {
                return Some(BridgeState::new(&hello).bridge(untried).accepts_orders());
            }
        }
        None
    };
    runtime.block_on(async { timeout(BRIDGE_TIMEOUT, connects).await }).ok().flatten() == Some(true)
}

/// Tells the running tray that the bridge was installed or removed, so that it starts or stops listening.
pub(super) fn announce_bridge_change() {
    let folders = paths::project().as_ref().map(paths::runtime_folders).unwrap_or_default();
    let Ok(runtime) = runtime() else { return };
    let announce = async {
        for folder in &folders {
            if let Ok(Some(_checked)) = Runtime::open(folder) {
                let _ = control::ask_to_listen_to_bridges(folder).await; // it checks at its next start
            }
        }
    };
    // A tray that does not answer checks at its next start.
    let _ = runtime.block_on(async { timeout(TRAY_TIMEOUT, announce).await });
}
