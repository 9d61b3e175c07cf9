//! The bridges in plain terminals, to a command: whether they are installed, and where it listens for them if no tray
//! runs.

use super::context::runtime;
use crate::agent::copilot::bridge::files::Files;
use crate::agent::copilot::bridge::known::BridgeState;
use crate::agent::copilot::bridge::socket::{Bridge, BridgeEvent, is_listened_to, serve};
use crate::agent::copilot::bridge::wire::Hello;
use crate::control;
use crate::core::fleet::Session;
use crate::engine::BridgeConfig;
use crate::system::paths;
use crate::system::runtime::Runtime;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout for the tray to take note of a change.
const TRAY_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether terminals may have a bridge: the user has installed it, in whatever state it is now.
pub(super) fn has_bridge() -> bool {
    paths::project().is_some_and(|project| Files::new(&project).is_installed())
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
    Some(BridgeConfig { folder, files })
}

/// How long bridges have to connect: they watch for somebody who listens, and are there within two seconds.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Where no tray runs: listens until all these sessions' bridges have connected, or for three seconds, and notes what
/// they say of themselves. Returns false if another command listens already, so that nothing is known.
pub(super) fn meet_bridges(sessions: &mut [Session], untried: bool) -> bool {
    if sessions.is_empty() || !has_bridge() {
        return true;
    }
    let Some(BridgeConfig { folder, files }) = place_for_bridges() else { return false };
    let (Some(key), Ok(runtime)) = (files.key(), runtime()) else { return false };
    runtime.block_on(async {
        // Nothing may change because somebody looks: no bridge makes use of a remembered consent, or takes us for the one
        // that the user lets answer.
        let Ok((_socket, mut events)) = serve(&folder, key.to_vec(), false, |_| false) else { return false };
        let is_of = |hello: &Hello, session: &Session| {
            session.id == hello.session && session.observed.owner.live() == Some(hello.ppid)
        };
        let mut connected: HashMap<_, (Hello, Bridge)> = HashMap::new();
        let meet = async {
            let all_are_there = |connected: &HashMap<_, (Hello, Bridge)>| {
                sessions.iter().all(|session| connected.values().any(|(hello, _)| is_of(hello, session)))
            };
            while !all_are_there(&connected)
                && let Some(event) = events.recv().await
            {
                match event {
                    BridgeEvent::Joined(id, hello, bridge) => {
                        connected.insert(id, (hello, bridge));
                    }
                    BridgeEvent::Message(..) => {}
                    BridgeEvent::Gone(id) => drop(connected.remove(&id)),
                }
            }
        };
        let _ = timeout(CONNECT_WITHIN, meet).await; // those that have not connected by then are not there
        for session in sessions {
            if let Some((hello, _)) = connected.values().find(|(hello, _)| is_of(hello, session)) {
                let state = BridgeState::new(hello);
                session.control.bridge = Some(state.bridge(untried));
                session.control.release.clone_from(&state.release);
                session.control.old_bridge = state.is_other;
            }
        }
        true
    })
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
