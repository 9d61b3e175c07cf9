//! Has Claude Code install and remove the bridge with its own `plugin` commands, and reads whether it is enabled.
//!
//! Claude Code's settings are only read here. Claude Code itself writes them. Seen with 2.1.332.

use super::files::{FOLDER, Files, HookProgram};
use super::settings::{self, Content, POLICY_FOLDER};
use super::{NAME, PLUGIN, others, rewriting};
use crate::adapter::Adapter;
use crate::bridge::{Installed, Installer, UserHomes, foreign, words};
use crate::claude_code::ClaudeCode;
use pilotlight_core::time::Time;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Whether this home's settings enable the bridge from that marketplace.
pub fn installed(home: &Path, marketplace: &Path) -> Installed {
    match settings::user(home) {
        Content::Missing => Installed::No,
        Content::Unreadable => Installed::Unreadable,
        Content::Of(settings) => judge(&settings, &settings::policy(Path::new(POLICY_FOLDER)), marketplace),
    }
}

/// When it was installed in a home. Sessions that are older do not have it, unless their user reloaded the plugins there.
pub fn installed_at(home: &Path) -> Option<Time> {
    let plugins = settings::list(home, "installed_plugins.json");
    Time::parse(plugins["plugins"][PLUGIN][0]["installedAt"].as_str()?.as_bytes())
}

fn judge(settings: &Value, policy: &[Value], marketplace: &Path) -> Installed {
    let known = &settings["extraKnownMarketplaces"][NAME];
    if foreign(known, marketplace, FOLDER).is_some() {
        return Installed::Foreign;
    }
    let source = &known["source"]["path"];
    let enabled = &settings["enabledPlugins"][PLUGIN];
    let (Some(source), Some(enabled)) = (source.as_str(), enabled.as_bool()) else { return Installed::No };
    if Path::new(source) != marketplace {
        Installed::Elsewhere
    } else if policy.iter().any(|policy| forbids(policy, marketplace)) {
        Installed::Forbidden
    } else if !enabled || settings["disableAllHooks"] == true {
        Installed::SwitchedOff
    } else {
        Installed::Yes
    }
}

/// Whether a policy forbids hooks, this plugin or that marketplace.
fn forbids(policy: &Value, marketplace: &Path) -> bool {
    let is_ours = |source: &Value| source["path"].as_str().is_some_and(|path| Path::new(path) == marketplace);
    // Patterns are evaluated by Claude Code; here, any pattern counts as admitting it, and none as blocking it.
    let admits = |source: &Value| is_ours(source) || source["pathPattern"].is_string();
    // The second name is an alias, which does not count beside the first.
    let allowed = ["strictKnownMarketplaces", "allowedMarketplaces"].map(|key| policy[key].as_array());
    let allowed = allowed.into_iter().flatten().next();
    let is_managed = policy["enabledPlugins"][PLUGIN] == true;
    policy["disableAllHooks"] == true
        || policy["allowManagedHooksOnly"] == true && !is_managed
        || policy["enabledPlugins"][PLUGIN] == false
        || allowed.is_some_and(|allowed| !allowed.iter().any(admits))
        || policy["blockedMarketplaces"].as_array().is_some_and(|blocked| blocked.iter().any(is_ours))
}

/// Settings without our two entries, and without what is empty where these stood.
fn besides_ours(mut settings: Value) -> Map<String, Value> {
    for (key, entry) in [("extraKnownMarketplaces", NAME), ("enabledPlugins", PLUGIN)] {
        let Some(entries) = settings.get_mut(key).and_then(Value::as_object_mut) else { continue };
        entries.remove(entry);
        if entries.is_empty() {
            settings.as_object_mut().map(|settings| settings.remove(key));
        }
    }
    settings.as_object().cloned().unwrap_or_default()
}

/// Whether a home still names the bridge, in its settings or its lists.
fn is_named(home: &Path) -> bool {
    let is_in_settings = match settings::user(home) {
        Content::Of(settings) => {
            settings["extraKnownMarketplaces"][NAME].is_object() || !settings["enabledPlugins"][PLUGIN].is_null()
        }
        Content::Missing | Content::Unreadable => false,
    };
    is_in_settings || is_known(home)
}

/// Whether a home's list of marketplaces has ours.
fn is_known(home: &Path) -> bool {
    settings::list(home, "known_marketplaces.json")[NAME].is_object()
}

const ABOUT: &str = "\
The bridge lets Pilotlight answer what Claude Code asks you in sessions that run in terminals.
- In sessions that are started from now on, Claude Code starts Pilotlight whenever it asks you something, and passes on what it asks: the command, the text of a file
- The dialog in the terminal stays, and the first answer counts. Pilotlight answers nothing without your click
- Claude Code adds two entries to its settings.json, and `pilotlight bridge remove` removes them. Sessions that are still running then keep the hook, which does nothing
- Claude Code rewrites that file: its form changes (two spaces of indentation, letters instead of escapes like \\u00e9). Its values stay, except some that Claude Code finds invalid, such as an unknown theme. You are told if one is lost
- Sessions that already run are not covered until you enter /reload-plugins there, or restart them";

const WHAT_STAYS: &str = "\
What stays: the keys \"extraKnownMarketplaces\" and \"enabledPlugins\" in Claude Code's settings.json, and Claude Code's folder \
\"plugins\", with a copy of the hook for some time. Running sessions keep the hook, which does nothing.";

/// The two entries, for a user who has to take them out.
const BY_HAND: &str = "extraKnownMarketplaces.pilotlight and enabledPlugins.\"pilotlight@pilotlight\"";

impl Installer for Files {
    fn adapter(&self) -> &'static dyn Adapter {
        &ClaudeCode
    }

    fn about(&self) -> &'static str {
        ABOUT
    }

    fn losses(&self, home: &Path) -> Vec<String> {
        rewriting::losses(&settings::text(&settings::path(home)).unwrap_or_default())
    }

    fn kept(&self, home: &Path) -> Map<String, Value> {
        match settings::user(home) {
            Content::Of(settings) => besides_ours(settings),
            Content::Missing | Content::Unreadable => Map::new(),
        }
    }

    fn others(&self, home: &Path) -> Vec<String> {
        others::others(home)
    }

    fn policy(&self) -> PathBuf {
        Path::new(POLICY_FOLDER).join("managed-settings.json")
    }

    fn to_switch_on(&self) -> &'static str {
        "`claude plugin enable pilotlight@pilotlight` switches it on, unless hooks are switched off altogether \
         (`disableAllHooks` in its settings.json)"
    }

    fn what_stays(&self) -> &'static str {
        WHAT_STAYS
    }

    fn installed(&self, home: &Path) -> Installed {
        installed(home, &self.marketplace)
    }

    /// What its settings name is not always what Claude Code has on its list.
    fn foreign(&self, home: &Path) -> Option<String> {
        let named = match settings::user(home) {
            Content::Of(settings) => settings["extraKnownMarketplaces"][NAME].clone(),
            Content::Missing | Content::Unreadable => Value::Null,
        };
        let listed = &settings::list(home, "known_marketplaces.json")[NAME];
        [&named, listed].into_iter().find_map(|marketplace| foreign(marketplace, &self.marketplace, FOLDER))
    }

    fn installed_at(&self, home: &Path) -> Option<Time> {
        installed_at(home)
    }

    /// Both commands do no harm where they were run before, and put in place what was changed meanwhile.
    fn to_install(&self, _: &Path) -> Vec<Vec<String>> {
        let add = words(&["plugin", "marketplace", "add", &self.marketplace.to_string_lossy()]);
        vec![add, words(&["plugin", "install", PLUGIN, "--scope", "user"])]
    }

    fn to_remove(&self, home: &Path) -> Vec<Vec<String>> {
        if !is_named(home) {
            return Vec::new();
        }
        // Settings that were copied from another machine name what this Claude Code does not know: it removes what it knows.
        let add = words(&["plugin", "marketplace", "add", &self.marketplace.to_string_lossy()]);
        let add = (!is_known(home) && self.marketplace.is_dir()).then_some(add);
        let is_installed = !settings::list(home, "installed_plugins.json")["plugins"][PLUGIN].is_null();
        let uninstall = is_installed.then(|| words(&["plugin", "uninstall", PLUGIN, "--scope", "user"]));
        let remove = words(&["plugin", "marketplace", "remove", NAME, "--scope", "user"]);
        add.into_iter().chain(uninstall).chain([remove]).collect()
    }

    fn by_hand(&self, home: &Path) -> Option<&'static str> {
        is_named(home).then_some(BY_HAND)
    }

    fn folder(&self) -> &Path {
        &self.marketplace
    }

    fn main_file(&self) -> PathBuf {
        self.hook()
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
        self.hook_program() == HookProgram::Current
    }

    fn homes(&self) -> UserHomes {
        Self::homes(self)
    }

    fn what_next(&self) -> &'static str {
        "the bridge is on: it covers Claude Code's sessions that are started from now on, and others after /reload-plugins"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const OURS: &str = "/data/bridge-claude-code";

    fn on() -> Value {
        json!({
            "extraKnownMarketplaces": {"pilotlight": {"source": {"source": "directory", "path": OURS}}},
            "enabledPlugins": {"pilotlight@pilotlight": true},
        })
    }

    #[test]
    fn an_installed_bridge_is_on_unless_its_user_or_a_policy_switched_it_off() {
        let with = |key: &str, value: Value| {
            let mut settings = on();
            settings[key] = value;
            judge(&settings, &[], Path::new(OURS))
        };
        assert_eq!(judge(&json!({}), &[], Path::new(OURS)), Installed::No);
        assert_eq!(judge(&on(), &[], Path::new("/data/other")), Installed::Elsewhere);
        assert_eq!(with("enabledPlugins", json!({})), Installed::No);
        assert_eq!(with("enabledPlugins", json!({"pilotlight@pilotlight": false})), Installed::SwitchedOff);
        assert_eq!(with("disableAllHooks", json!(true)), Installed::SwitchedOff);
        assert_eq!(with("disableAllHooks", json!(false)), Installed::Yes);
        // In the user's own settings, a key that only policies have is ignored.
        assert_eq!(with("strictKnownMarketplaces", json!([])), Installed::Yes);
    }

    /// The marketplaces as tried with 2.1.332; the hooks as read in its program.
    #[test]
    fn a_policy_may_forbid_hooks_the_plugin_or_the_marketplace() {
        let under = |policy: &Value| judge(&on(), &[json!({}), policy.clone()], Path::new(OURS));
        let elsewhere = json!({"source": "directory", "path": "/elsewhere"});
        let ours = json!({"source": "directory", "path": OURS});
        for forbids in [
            json!({"disableAllHooks": true}),
            json!({"allowManagedHooksOnly": true}),
            json!({"enabledPlugins": {"pilotlight@pilotlight": false}}),
            json!({"strictKnownMarketplaces": []}),
            json!({"strictKnownMarketplaces": [{"source": "github", "repo": "a/b"}, elsewhere]}),
            json!({"allowedMarketplaces": []}),
            json!({"blockedMarketplaces": [elsewhere, ours]}),
        ] {
            assert_eq!(under(&forbids), Installed::Forbidden, "{forbids}");
        }
        for allows in [
            json!({"strictKnownMarketplaces": [ours], "allowedMarketplaces": []}),
            json!({"strictKnownMarketplaces": [{"source": "pathPattern", "pathPattern": "^/data/.*"}]}),
            json!({"blockedMarketplaces": [elsewhere]}),
            json!({"strictPluginOnlyCustomization": true}),
            json!({"allowManagedHooksOnly": true, "enabledPlugins": {"pilotlight@pilotlight": true}}),
        ] {
            assert_eq!(under(&allows), Installed::Yes, "{allows}");
        }
    }

    #[test]
    fn a_policy_in_parts_counts_and_settings_with_comments_cannot_be_read() {
        let scratch = tempfile::tempdir().unwrap();
        let (home, policy) = (scratch.path().join("home"), scratch.path().join("policy"));
        std::fs::create_dir_all(policy.join("managed-settings.d")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(policy.join("managed-settings.json"), "{").unwrap();
        std::fs::write(policy.join("managed-settings.d/10-hooks.json"), r#"{"disableAllHooks": true}"#).unwrap();
        assert_eq!(settings::policy(&policy), [json!({"disableAllHooks": true})]);
        let says = |text: &str| {
            std::fs::write(home.join("settings.json"), text).unwrap();
            installed(&home, Path::new(OURS))
        };
        assert_eq!(installed(&home, Path::new(OURS)), Installed::No);
        assert_eq!(says(""), Installed::No);
        assert_eq!(says(&format!("\u{feff}{}", on())), Installed::Yes);
        for text in ["{ // mine\n}", "[]", "{\"a\": 1,}"] {
            assert_eq!(says(text), Installed::Unreadable, "{text}");
        }
    }

    #[test]
    fn what_is_kept_of_settings_is_all_but_the_two_entries() {
        let mut with_others = on();
        with_others["enabledPlugins"]["other@market"] = true.into();
        with_others["theme"] = "dark".into();
        for (settings, kept) in [
            (json!({}), json!({})),
            (on(), json!({})),
            (json!({"enabledPlugins": {}, "extraKnownMarketplaces": {}, "a": 1}), json!({"a": 1})),
            (with_others, json!({"enabledPlugins": {"other@market": true}, "theme": "dark"})),
        ] {
            assert_eq!(Value::Object(besides_ours(settings)), kept);
        }
    }

    #[test]
    fn case_850_a_marketplace_of_our_name_from_another_source_is_not_ours() {
        let scratch = tempfile::tempdir().unwrap();
        let (home, files) = (scratch.path(), Files::in_folder(&scratch.path().join("data")));
        std::fs::create_dir_all(home.join("plugins")).unwrap();
        let found = |source: Value, is_listed: bool| {
            let marketplaces = json!({"pilotlight": {"source": source}});
            let settings =
                json!({"extraKnownMarketplaces": marketplaces, "enabledPlugins": {"pilotlight@pilotlight": true}});
            let (settings, listed) = if is_listed { (json!({}), marketplaces) } else { (settings, json!({})) };
            std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
            std::fs::write(home.join("plugins/known_marketplaces.json"), listed.to_string()).unwrap();
            (installed(home, &files.marketplace), files.foreign(home))
        };
        for (source, place) in [
            (json!({"source": "directory", "path": "/src/bridge-claude-code/mine"}), "/src/bridge-claude-code/mine"),
            (json!({"source": "github", "repo": "a/pilotlight"}), "a/pilotlight"),
            (json!({"source": "github", "repo": "a/b", "path": "bridge-claude-code"}), "a/b"),
            (json!({"source": "git", "url": "https://host/p.git"}), "https://host/p.git"),
            (json!(7), "7"),
            (Value::Null, "null"),
        ] {
            assert_eq!(found(source.clone(), false), (Installed::Foreign, Some(place.into())), "{source}");
            assert_eq!(found(source.clone(), true), (Installed::No, Some(place.into())), "{source}, on the list alone");
        }
        for (path, state) in [(&*files.marketplace, Installed::Yes), (Path::new(OURS), Installed::Elsewhere)] {
            assert_eq!(found(json!({"source": "directory", "path": path}), false), (state, None), "{path:?}");
        }
    }

    #[test]
    fn it_is_removed_wherever_it_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path();
        let files = Files::in_folder(&home.join("data"));
        let commands = || files.to_remove(home).iter().map(|words| words[1..].join(" ")).collect::<Vec<_>>();
        assert_eq!(commands(), Vec::<String>::new());
        std::fs::write(home.join("settings.json"), on().to_string()).unwrap();
        let remove = "marketplace remove pilotlight --scope user";
        assert_eq!(commands(), [remove], "Claude Code knows no such marketplace, and there is none to add");
        files.write().unwrap();
        let add = format!("marketplace add {}", files.marketplace.display());
        assert_eq!(commands(), [&*add, remove]);
        std::fs::create_dir_all(home.join("plugins")).unwrap();
        let list =
            |name: &str, value: Value| std::fs::write(home.join("plugins").join(name), value.to_string()).unwrap();
        list("known_marketplaces.json", json!({"pilotlight": {"source": {"source": "directory", "path": OURS}}}));
        let at = "2026-11-29T12:27:15.412Z";
        list(
            "installed_plugins.json",
            json!({"version": 2, "plugins": {PLUGIN: [{"scope": "user", "installedAt": at}]}}),
        );
        assert_eq!(commands(), ["uninstall pilotlight@pilotlight --scope user", remove]);
        assert_eq!(installed_at(home), Time::parse(at.as_bytes()));
        std::fs::write(home.join("settings.json"), "{}").unwrap();
        assert_eq!(commands().len(), 2, "an installation that failed in between");
    }
}
