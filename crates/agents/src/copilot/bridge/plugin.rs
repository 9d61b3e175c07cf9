//! Has Copilot install and remove the bridge with its own `plugin` commands, and reads whether it is enabled.
//!
//! Copilot's settings are only read here. Copilot itself writes them.

use super::files::FOLDER;
use super::{EXTENSION, Files, NAME, PLUGIN};
use crate::adapter::Adapter;
use crate::bridge::{Installed, Installer, UserHomes, foreign, words};
use crate::copilot::Copilot;
use crate::copilot::user_settings::Settings;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// An organisation's policy for all users of a machine, as CLI 1.0.102 reads it on Linux. A policy distributed by a
/// server is not on disk, and unknown here.
const POLICY: &str = "/etc/github-copilot/managed-settings.json";
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
    let known = &settings.0["extraKnownMarketplaces"][NAME];
    if foreign(known, marketplace, FOLDER).is_some() {
        return Installed::Foreign;
    }
    let source = &known["source"]["path"];
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
fn to_install(home: &Path, marketplace: &Path) -> Vec<Vec<String>> {
    // Copilot refuses to add a second marketplace of the same name.
    let known = known(home);
    let is_other = known.as_ref().is_some_and(|path| path != marketplace);
    let remove = is_other.then(|| words(&["plugin", "marketplace", "remove", NAME]));
    let add =
        (is_other || known.is_none()).then(|| words(&["plugin", "marketplace", "add", &marketplace.to_string_lossy()]));
    remove.into_iter().chain(add).chain([words(&["plugin", "install", PLUGIN])]).collect()
}

/// The commands with which Copilot removes the bridge from a home without a trace; none where it is not installed.
fn to_remove(home: &Path) -> Vec<Vec<String>> {
    let known = known(home).is_some();
    // An installation that failed in between has only the marketplace.
    let is_named = Settings::read(home).is_some_and(|settings| !settings.0["enabledPlugins"][PLUGIN].is_null());
    let uninstall = (known && is_named).then(|| words(&["plugin", "uninstall", PLUGIN]));
    let remove = known.then(|| words(&["plugin", "marketplace", "remove", NAME]));
    let forget = is_named.then(|| words(&["config", "--rm", &format!("enabledPlugins.{PLUGIN}")]));
    uninstall.into_iter().chain(remove).chain(forget).collect()
}

/// The path of the marketplace that this home has under our name.
fn known(home: &Path) -> Option<PathBuf> {
    let settings = Settings::read(home)?.0;
    let source = &settings["extraKnownMarketplaces"][NAME];
    source.is_object().then(|| source["source"]["path"].as_str().unwrap_or_default().into())
}

const ABOUT: &str = "\
The bridge lets Pilotlight stop, answer and (after you allow it in the terminal) approve in Copilot sessions that run in \
plain terminals. It is a Copilot extension; in an untested release of Copilot, it only watches.
What it costs:
- one process per session, about 40 MB, no CPU use while nothing happens
- the model is offered two more tools, extensions_manage and extensions_reload
- Copilot rewrites its settings.json, and drops comments in it
- a tool that you approved could use any installed extension, this one included, to make Copilot stop asking you. Where you let Pilotlight answer, it could also approve requests itself. Only Copilot's sandbox and its --deny-tool prevent this
Sessions that already run are not covered until they are restarted.";

const WHAT_STAYS: &str = "\
What stays: your consent for folders, in Copilot's permissions-config.json, and an empty \"extraKnownMarketplaces\" in its \
settings. Sessions that run keep the extension until they end.";

impl Installer for Files {
    fn adapter(&self) -> &'static dyn Adapter {
        &Copilot
    }

    fn about(&self) -> &'static str {
        ABOUT
    }

    fn policy(&self) -> PathBuf {
        POLICY.into()
    }

    fn to_switch_on(&self) -> &'static str {
        "`copilot plugin enable pilotlight@pilotlight` switches it on, unless extensions are switched off altogether \
         (`extensions` in its settings.json)"
    }

    fn what_stays(&self) -> &'static str {
        WHAT_STAYS
    }

    fn installed(&self, home: &Path) -> Installed {
        installed(home, &self.marketplace)
    }

    fn foreign(&self, home: &Path) -> Option<String> {
        foreign(&Settings::read(home)?.0["extraKnownMarketplaces"][NAME], &self.marketplace, FOLDER)
    }

    fn to_install(&self, home: &Path) -> Vec<Vec<String>> {
        to_install(home, &self.marketplace)
    }

    fn to_remove(&self, home: &Path) -> Vec<Vec<String>> {
        to_remove(home)
    }

    /// Copilot 1.0.86 has no `config --rm`.
    fn tidies(&self, command: &[String]) -> Option<&'static str> {
        let is_tidying = command.first().is_some_and(|word| word == "config");
        is_tidying.then_some("\"enabledPlugins.pilotlight@pilotlight\"")
    }

    fn folder(&self) -> &Path {
        &self.marketplace
    }

    fn main_file(&self) -> PathBuf {
        self.extension()
    }

    fn write(&self) -> anyhow::Result<()> {
        Self::write(self)
    }

    fn remove(&self) -> anyhow::Result<()> {
        Self::remove(self)
    }

    fn is_installed(&self) -> bool {
        Self::is_installed(self)
    }

    fn is_current(&self) -> bool {
        Self::is_current(self)
    }

    fn is_changed(&self) -> bool {
        Self::is_changed(self)
    }

    fn homes(&self) -> UserHomes {
        Self::homes(self)
    }

    fn what_next(&self) -> &'static str {
        "the bridge is on: restart your sessions to have them covered"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn case_850_a_marketplace_of_our_name_from_another_source_is_not_ours() {
        let scratch = tempfile::tempdir().unwrap();
        let (home, marketplace) = (scratch.path(), scratch.path().join("ours"));
        let files = Files { marketplace, key: PathBuf::new(), folders: Vec::new(), program: None };
        let found = |source: Value| {
            let settings = json!({"extraKnownMarketplaces": {"pilotlight": {"source": source}}});
            std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
            (installed(home, &files.marketplace), files.foreign(home))
        };
        let repo = json!({"source": "github", "repo": "a/pilotlight"});
        assert_eq!(found(repo), (Installed::Foreign, Some("a/pilotlight".into())));
        let older = json!({"source": "directory", "path": "/data/bridge"});
        assert_eq!(found(older), (Installed::No, None), "it is not enabled");
    }

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
