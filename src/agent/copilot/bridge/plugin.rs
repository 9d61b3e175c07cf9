//! Has Copilot install and remove the bridge, by its own `plugin` commands, and reads whether it is on.
//!
//! Copilot's settings are Copilot's: they are read here, and written by nobody but itself.

use super::{EXTENSION, NAME, PLUGIN};
use crate::agent::copilot::user_settings::Settings;
use crate::system::descriptors;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// What an organisation lays down for all users of a machine, as the CLI 1.0.102 reads it on Linux. What it hands out by its server
/// is not on the disk.
const POLICY: &str = "/etc/github-copilot/managed-settings.json";
/// One command of Copilot's takes a second; on a machine under load many times that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a home has the bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Installed {
    /// It is not installed.
    No,
    /// New sessions start it.
    Yes,
    /// It was switched off in Copilot: this plugin, this extension, or all of them.
    SwitchedOff,
    /// An organisation's policy keeps it from being started.
    Forbidden,
    /// It is installed from another folder: another user's data folder, or one that was moved.
    Elsewhere,
}

/// What the settings of this home say of the bridge in that marketplace.
pub(crate) fn installed(home: &Path, marketplace: &Path) -> Installed {
    judge(Settings::read(home), Settings::policy(Path::new(POLICY)), marketplace)
}

fn judge(settings: Option<Settings>, policy: Option<Settings>, marketplace: &Path) -> Installed {
    let Some(settings) = settings else { return Installed::No };
    let source = &settings.0["extraKnownMarketplaces"][NAME]["source"]["path"];
    let enabled = &settings.0["enabledPlugins"][PLUGIN];
    let (Some(source), Some(enabled)) = (source.as_str(), enabled.as_bool()) else { return Installed::No };
    let extensions = &settings.0["extensions"];
    let is_disabled = |disabled: &Value| disabled.as_array().is_some_and(|ids| ids.iter().any(|id| id == EXTENSION));
    if Path::new(source) != marketplace {
        Installed::Elsewhere
    } else if !enabled || extensions["mode"] == "disabled" || is_disabled(&extensions["disabledExtensions"]) {
        Installed::SwitchedOff
    } else if policy.is_some_and(|policy| forbids(&policy.0, marketplace)) {
        Installed::Forbidden
    } else {
        Installed::Yes
    }
}

/// Whether a policy keeps Copilot from starting the bridge in that marketplace.
fn forbids(policy: &Value, marketplace: &Path) -> bool {
    let is_ours = |path: &Value| path.as_str().is_some_and(|path| Path::new(path) == marketplace);
    // What a pattern admits is for Copilot to judge.
    let admits = |source: &Value| is_ours(&source["path"]) || source["pathPattern"].is_string();
    let known = policy["strictKnownMarketplaces"].as_array();
    let other = &policy["extraKnownMarketplaces"][NAME];
    policy["enabledPlugins"][PLUGIN] == false
        || known.is_some_and(|known| !known.iter().any(admits))
        || other.is_object() && !is_ours(&other["source"]["path"])
}

/// What Copilot is told to install it in a home, be it anew: the arguments of each command.
pub(crate) fn to_install(home: &Path, marketplace: &Path) -> Vec<Vec<String>> {
    // It adds none by a name that it knows already.
    let known = known(home);
    let is_other = known.as_ref().is_some_and(|path| path != marketplace);
    let remove = is_other.then(|| words(&["plugin", "marketplace", "remove", NAME]));
    let add =
        (is_other || known.is_none()).then(|| words(&["plugin", "marketplace", "add", &marketplace.to_string_lossy()]));
    remove.into_iter().chain(add).chain([words(&["plugin", "install", PLUGIN])]).collect()
}

/// What Copilot is told to remove it from a home without a trace. Nothing, where there is none.
pub(crate) fn to_remove(home: &Path) -> Vec<Vec<String>> {
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
pub(crate) async fn run(program: &Path, home: &Path, arguments: &[String]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).env("COPILOT_HOME", home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    descriptors::give_back(command.as_std_mut());
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What the CLI 1.0.102 was seen to start, and not to start.
    #[test]
    fn a_bridge_is_on_unless_its_user_or_a_policy_switched_it_off() {
        let ours = Path::new("/data/bridge");
        let on = json!({
            "extraKnownMarketplaces": {"pilotlight": {"source": {"source": "directory", "path": ours}}},
            "enabledPlugins": {"pilotlight@pilotlight": true},
        });
        let with = |key: &str, value: Value| {
            let mut settings = on.clone();
            settings[key] = value;
            judge(Some(Settings(settings)), None, ours)
        };
        assert_eq!(judge(None, None, ours), Installed::No);
        assert_eq!(judge(Some(Settings(json!({}))), None, ours), Installed::No);
        assert_eq!(judge(Some(Settings(on.clone())), None, Path::new("/data/other")), Installed::Elsewhere);
        assert_eq!(with("extensions", json!({"mode": "load_only"})), Installed::Yes);
        assert_eq!(with("extensions", json!({"disabledExtensions": ["plugin:other:other"]})), Installed::Yes);
        // A user's own word on what only a policy can say counts for nothing.
        assert_eq!(with("strictKnownMarketplaces", json!([])), Installed::Yes);
        for (key, value) in [
            ("enabledPlugins", json!({"pilotlight@pilotlight": false})),
            ("extensions", json!({"mode": "disabled"})),
            ("extensions", json!({"disabledExtensions": [EXTENSION]})),
        ] {
            assert_eq!(with(key, value.clone()), Installed::SwitchedOff, "{key}: {value}");
        }
        let under = |policy: &Value| judge(Some(Settings(on.clone())), Some(Settings(policy.clone())), ours);
        let elsewhere = json!({"source": "directory", "path": "/elsewhere"});
        for forbids in [
            json!({"strictKnownMarketplaces": []}),
            json!({"strictKnownMarketplaces": [{"source": "github", "repo": "a/b"}, elsewhere]}),
            json!({"enabledPlugins": {"pilotlight@pilotlight": false}}),
            json!({"extraKnownMarketplaces": {"pilotlight": {"source": elsewhere}}}),
        ] {
            assert_eq!(under(&forbids), Installed::Forbidden, "{forbids}");
        }
        for allows in [
            json!({}),
            json!({"strictKnownMarketplaces": [{"source": "directory", "path": ours}]}),
            json!({"strictKnownMarketplaces": [{"source": "pathPattern", "pathPattern": "^/data/.*"}]}),
            json!({"strictPluginOnlyCustomization": true}),
            json!({"extraKnownMarketplaces": {"corp": {"source": elsewhere}}}),
        ] {
            assert_eq!(under(&allows), Installed::Yes, "{allows}");
        }
    }
}
