//! Other programs that are called for the same event: hooks in the user's settings, and those of other plugins.

use super::settings::{self, Content};
use super::{EVENT, PLUGIN};
use pilotlight_core::text::plain;
use serde_json::Value;
use std::path::Path;

/// The longest command that is shown, in characters.
const SHOWN: usize = 80;
/// How many are listed.
const MOST: usize = 8;

/// The other programs that this home has called when Claude Code asks something, as its settings name them.
pub(super) fn others(home: &Path) -> Vec<String> {
    let Content::Of(settings) = settings::user(home) else { return Vec::new() };
    let of_user = commands(&settings).map(|command| format!("`{command}` (settings.json)"));
    let installed = settings::list(home, "installed_plugins.json");
    let is_on = |id: &&String| settings["enabledPlugins"][id.as_str()] == true && *id != PLUGIN;
    let plugins = installed["plugins"].as_object().into_iter().flatten().filter(|(id, _)| is_on(id));
    let of_plugins = plugins.flat_map(|(id, installed)| {
        let folder = installed[0]["installPath"].as_str().map(Path::new).filter(|path| path.is_absolute());
        let hooks = folder.map(|folder| settings::object(&folder.join("hooks/hooks.json"))).unwrap_or_default();
        commands(&hooks).map(|command| format!("`{command}` (plugin {})", plain(id, SHOWN))).collect::<Vec<_>>()
    });
    of_user.chain(of_plugins).take(MOST).collect()
}

/// The commands and addresses that these hooks call for the event.
fn commands(settings: &Value) -> impl Iterator<Item = Box<str>> {
    let groups = settings["hooks"][EVENT].as_array().into_iter().flatten();
    let hooks = groups.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
    let called = hooks.filter_map(|hook| hook["command"].as_str().or_else(|| hook["url"].as_str()));
    called.map(|command| plain(command, SHOWN)).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hooks_of_the_user_and_of_other_plugins_are_named() {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path();
        assert!(others(home).is_empty());
        let hooks = |command: &str| json!({"hooks": {EVENT: [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]}});
        let plugin = |name: &str| {
            let folder = home.join(name);
            std::fs::create_dir_all(folder.join("hooks")).unwrap();
            std::fs::write(folder.join("hooks/hooks.json"), hooks(&format!("of-{name}")).to_string()).unwrap();
            json!([{"scope": "user", "installPath": folder}])
        };
        let plugins = json!({"lamp@x": plugin("lamp"), "off@x": plugin("off"), PLUGIN: plugin("ours")});
        std::fs::create_dir_all(home.join("plugins")).unwrap();
        let installed = json!({"version": 2, "plugins": plugins});
        std::fs::write(home.join("plugins/installed_plugins.json"), installed.to_string()).unwrap();
        let mut settings = hooks("notify \u{202e}me");
        let http = json!({"hooks": [{"type": "http", "url": "http://127.0.0.1:9/x"}]});
        settings["hooks"][EVENT].as_array_mut().unwrap().push(http);
        settings["hooks"]["Stop"] = json!([{"hooks": [{"type": "command", "command": "true"}]}]);
        settings["enabledPlugins"] = json!({"lamp@x": true, "off@x": false, PLUGIN: true});
        std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
        let found = others(home);
        assert!(found[0].starts_with("`notify ") && !found[0].contains('\u{202e}'), "{found:?}");
        assert_eq!(found[1..], ["`http://127.0.0.1:9/x` (settings.json)", "`of-lamp` (plugin lamp@x)"]);
    }
}
