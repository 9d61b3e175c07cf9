//! The bridges in plain terminals, to a command: whether they are installed, and where it listens for them if no tray
//! runs.

use super::context::runtime;
use super::trays::ask_first;
use pilotlight_agents::adapter::{Adapter, FIRST};
use pilotlight_agents::bridge::Installer;
#[cfg(unix)]
use pilotlight_agents::claude_code;
use pilotlight_agents::claude_code::ClaudeCode;
use pilotlight_agents::claude_code::bridge::files::Files as HookFiles;
use pilotlight_agents::copilot::bridge::{BridgeConfig, Files as BridgeFiles, is_listened_to};
#[cfg(unix)]
use pilotlight_agents::hooks::{HookConfig, Memory};
use pilotlight_agents::opencode;
use pilotlight_agents::opencode::bridge::files::Files as PluginFiles;
#[cfg(unix)]
use pilotlight_engine::Engine;
use pilotlight_engine::control::{self, origin};
use pilotlight_system::paths;
#[cfg(unix)]
use pilotlight_system::paths::Folders;
use pilotlight_system::runtime::Runtime;
#[cfg(unix)]
use std::path::Path;

/// Whether terminals may have a bridge: the user has installed it, in whatever state it is now.
pub(super) fn has_bridge() -> bool {
    paths::project().is_some_and(|project| BridgeFiles::new(&project).is_installed())
}

/// The agents whose bridge the user has installed, in whatever state it is now.
pub(super) fn installed_bridges() -> Vec<&'static str> {
    let Some(project) = paths::project() else { return Vec::new() };
    let copilot = BridgeFiles::new(&project).is_installed().then_some(FIRST.name());
    let claude_code = HookFiles::new(&project).is_installed().then_some(ClaudeCode.profile().names.name);
    let opencode = PluginFiles::new(&project).is_installed().then_some(opencode::NAME);
    copilot.into_iter().chain(claude_code).chain(opencode).collect()
}

/// Has an engine listen for the bridges that are hooks, in this folder. `shared`: other processes may listen there, too, one at
/// a time.
#[cfg(unix)]
pub(super) fn listen_to_hooks(engine: &mut Engine, project: &Folders, folder: &Path, shared: bool) {
    let (hook, plugin) = (HookFiles::new(project), PluginFiles::new(project));
    let memory = Memory::default();
    let config = |is_installed| {
        let is_users = origin::is_listener_of_user;
        HookConfig { folder: folder.to_owned(), is_installed, is_users, shared, memory: memory.clone() }
    };
    let hooks = config(Box::new(move || hook.is_installed()));
    engine.listen_to_bridges(claude_code::bridge::Bridges::at(hooks));
    let hooks = config(Box::new(move || plugin.is_installed()));
    engine.listen_to_bridges(opencode::bridge::Bridges::at(hooks));
}

/// Where a command listens for bridges: `None` if the bridge is not installed, or another process listens already.
pub(super) fn place_for_bridges() -> Option<BridgeConfig> {
    let project = paths::project()?;
    let (files, folders) = (BridgeFiles::new(&project), paths::runtime_folders(&project));
    files.key()?;
    if folders.iter().any(|folder| is_listened_to(folder)) {
        return None;
    }
    let folder = folders.into_iter().find(|folder| Runtime::make(folder).is_ok())?;
    Some(BridgeConfig { folder, files, is_users: origin::is_listener_of_user, shared: false, only_looks: false })
}

/// The same for a command that only looks.
pub(super) fn place_to_look() -> Option<BridgeConfig> {
    place_for_bridges().map(|place| BridgeConfig { only_looks: true, ..place })
}

/// Where a process that others may run beside listens for bridges once it is told to.
pub(super) fn shared_place() -> Option<BridgeConfig> {
    let project = paths::project()?;
    let folder = paths::runtime_folders(&project).into_iter().find(|folder| Runtime::make(folder).is_ok())?;
    let files = BridgeFiles::new(&project);
    Some(BridgeConfig { folder, files, is_users: origin::is_listener_of_user, shared: true, only_looks: false })
}

/// Tells the running tray that the bridge was installed or removed, so that it starts or stops listening.
pub(super) fn announce_bridge_change() {
    let Ok(runtime) = runtime() else { return };
    let _ = runtime.block_on(ask_first(control::ask_to_listen_to_bridges)); // one that does not answer checks at its next start
}
