//! Has Copilot install and remove the bridge, by its own `plugin` commands, and reads whether it is on.
//!
//! Copilot's settings are Copilot's: they are read here, and written by nobody but itself.

use super::{EXTENSION, NAME, PLUGIN};
use crate::agent::copilot::user_settings::Settings;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// One command of Copilot's takes a second; on a machine under load many times that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a home has the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Installed {
    /// It is not installed.
    No,
    /// New sessions start it.
    Yes,
    /// It was switched off in Copilot: this plugin, this extension, or all of them.
    SwitchedOff,
    /// The settings let no plugin from this folder be started: those of an organisation's policy.
    Forbidden,
    /// It is installed from another folder: another user's data folder, or one that was moved.
    Elsewhere,
}

/// What the settings of this home say of the bridge in that marketplace.
pub fn installed(home: &Path, marketplace: &Path) -> Installed {
    let Some(settings) = Settings::read(home) else { return Installed::No };
    let source = &settings.0["extraKnownMarketplaces"][NAME]["source"]["path"];
    let enabled = &settings.0["enabledPlugins"][PLUGIN];
    let (Some(source), Some(enabled)) = (source.as_str(), enabled.as_bool()) else { return Installed::No };
    let extensions = &settings.0["extensions"];
    let is_disabled =
        |disabled: &serde_json::Value| disabled.as_array().is_some_and(|ids| ids.iter().any(|id| id == EXTENSION));
    if Path::new(source) != marketplace {
        Installed::Elsewhere
    } else if !enabled || extensions["mode"] == "disabled" || is_disabled(&extensions["disabledExtensions"]) {
        Installed::SwitchedOff
    } else if settings.0["strictKnownMarketplaces"].is_array() || settings.0["strictPluginOnlyCustomization"] == true {
        Installed::Forbidden
    } else {
        Installed::Yes
    }
}

/// What Copilot is told to install it in a home, be it anew: the arguments of each command.
pub fn to_install(home: &Path, marketplace: &Path) -> Vec<Vec<String>> {
    // It adds none by a name that it knows already.
    let known = known(home);
    let is_other = known.as_ref().is_some_and(|path| path != marketplace);
    let remove = is_other.then(|| words(&["plugin", "marketplace", "remove", NAME]));
    let add =
        (is_other || known.is_none()).then(|| words(&["plugin", "marketplace", "add", &marketplace.to_string_lossy()]));
    remove.into_iter().chain(add).chain([words(&["plugin", "install", PLUGIN])]).collect()
}

/// What Copilot is told to remove it from a home without a trace. Nothing, where there is none.
pub fn to_remove(home: &Path) -> Vec<Vec<String>> {
    let known = known(home).is_some();
    let uninstall = known.then(|| words(&["plugin", "uninstall", PLUGIN]));
    let remove = known.then(|| words(&["plugin", "marketplace", "remove", NAME]));
    let is_named = Settings::read(home).is_some_and(|settings| !settings.0["enabledPlugins"][PLUGIN].is_null());
    let forget = (known || is_named).then(|| words(&["config", "--rm", &format!("enabledPlugins.{PLUGIN}")]));
    uninstall.into_iter().chain(remove).chain(forget).collect()
}

/// The marketplace that Copilot knows by our name in this home.
fn known(home: &Path) -> Option<PathBuf> {
    let settings = Settings::read(home)?.0;
    let source = &settings["extraKnownMarketplaces"][NAME];
    source.is_object().then(|| source["source"]["path"].as_str().unwrap_or_default().into())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.into()).collect()
}

/// Runs one of these commands for a home.
///
/// # Errors
/// What it said, where it failed.
pub async fn run(program: &Path, home: &Path, arguments: &[String]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).env("COPILOT_HOME", home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    crate::system::descriptors::give_back(command.as_std_mut());
    let failed = |why: String| format!("`copilot {}` {why}", arguments.join(" "));
    match timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let said = [output.stderr, output.stdout].map(|said| String::from_utf8_lossy(&said).trim().to_owned());
            let said = said.into_iter().find(|said| !said.is_empty()).unwrap_or_else(|| output.status.to_string());
            Err(failed(format!("failed: {said}")))
        }
        Ok(Err(error)) => Err(failed(format!("does not start: {error}"))),
        Err(_) => Err(failed(format!("did not end within {} s", PATIENCE.as_secs()))),
    }
}
