//! Has Copilot install and remove the bridge with its own `plugin` commands, and reads whether it is enabled.
//!
//! Copilot's settings are only read here. Copilot itself writes them.

use super::{EXTENSION, NAME, PLUGIN};
use crate::copilot::user_settings::Settings;
use pilotlight_system::descriptors;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// An organisation's policy for all users of a machine, as CLI 1.0.102 reads it on Linux. A policy distributed by a
/// server is not on disk, and unknown here.
const POLICY: &str = "/etc/github-copilot/managed-settings.json";
/// How long one command of Copilot may take. It takes a second, and many times that on a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the bridge is installed in a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Installed {
    /// It is not installed.
    No,
    /// New sessions start it.
    Yes,
    /// It was switched off in Copilot: this plugin, this extension, or all extensions.
    SwitchedOff,
    /// An organisation's policy forbids it.
    Forbidden,
    /// It is installed from another folder: another user's data folder, or one that was moved.
    Elsewhere,
    /// Unknown: Copilot's settings cannot be read.
    Unreadable,
}

/// Whether this home's settings enable the bridge from that marketplace.
pub fn installed(home: &Path, marketplace: &Path) -> Installed {
    let settings = Settings::read(home);
    if settings.is_none() && Settings::exist(home) {
        return Installed::Unreadable;
    }
    judge(settings, Settings::policy(Path::new(POLICY)), marketplace)
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

/// Whether a policy forbids Copilot to start the bridge from that marketplace.
fn forbids(policy: &Value, marketplace: &Path) -> bool {
    let is_ours = |path: &Value| path.as_str().is_some_and(|path| Path::new(path) == marketplace);
    // Patterns are evaluated by Copilot; here, any pattern counts as admitting it.
    let admits = |source: &Value| is_ours(&source["path"]) || source["pathPattern"].is_string();
    let known = policy["strictKnownMarketplaces"].as_array();
    let other = &policy["extraKnownMarketplaces"][NAME];
    policy["enabledPlugins"][PLUGIN] == false
        || known.is_some_and(|known| !known.iter().any(admits))
        || other.is_object() && !is_ours(&other["source"]["path"])
}

/// The commands with which Copilot installs or reinstalls the bridge in a home, as argument lists.
pub fn to_install(home: &Path, marketplace: &Path) -> Vec<Vec<String>> {
    // Copilot refuses to add a second marketplace of the same name.
    let known = known(home);
    let is_other = known.as_ref().is_some_and(|path| path != marketplace);
    let remove = is_other.then(|| words(&["plugin", "marketplace", "remove", NAME]));
    let add =
        (is_other || known.is_none()).then(|| words(&["plugin", "marketplace", "add", &marketplace.to_string_lossy()]));
    remove.into_iter().chain(add).chain([words(&["plugin", "install", PLUGIN])]).collect()
}

/// The commands with which Copilot removes the bridge from a home without a trace; none where it is not installed.
pub fn to_remove(home: &Path) -> Vec<Vec<String>> {
    let known = known(home).is_some();
    // An installation that failed in between has only the marketplace.
    let is_named = Settings::read(home).is_some_and(|settings| !settings.0["enabledPlugins"][PLUGIN].is_null());
    let uninstall = (known && is_named).then(|| words(&["plugin", "uninstall", PLUGIN]));
    let remove = known.then(|| words(&["plugin", "marketplace", "remove", NAME]));
    let forget = is_named.then(|| words(&["config", "--rm", &format!("enabledPlugins.{PLUGIN}")]));
    uninstall.into_iter().chain(remove).chain(forget).collect()
}

/// Whether nothing but a setting without effect stays where this command fails: Copilot 1.0.86 has no `config --rm`.
pub fn only_tidies(command: &[String]) -> bool {
    command.first().is_some_and(|word| word == "config")
}

/// The path of the marketplace that this home has under our name.
fn known(home: &Path) -> Option<PathBuf> {
    let settings = Settings::read(home)?.0;
    let source = &settings["extraKnownMarketplaces"][NAME];
    source.is_object().then(|| source["source"]["path"].as_str().unwrap_or_default().into())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.into()).collect()
}

/// Runs a Copilot command for a home.
///
/// # Errors
/// The output of a failed command, or why it did not run to its end.
pub async fn run(program: &Path, home: &Path, arguments: &[String]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).env("COPILOT_HOME", home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    descriptors::restore(command.as_std_mut());
    let failed = |why: String| format!("`copilot {}` {why}", arguments.join(" "));
    match timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => {
            let outputs = [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).trim().to_owned());
            let reason = outputs.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| output.status.to_string());
            Err(failed(format!("failed: {reason}")))
        }
        Ok(Err(error)) => Err(failed(format!("does not start: {error}"))),
        Err(_) => Err(failed(format!("did not end within {} s", PATIENCE.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As observed with CLI 1.0.102.
    #[test]
    fn an_installed_bridge_is_on_unless_its_user_or_a_policy_switched_it_off() {
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
        // In the user's own settings, a key that only policies have is ignored.
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
