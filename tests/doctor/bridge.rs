//! The bridge to terminals: what is wrong with it, and what of that is put right.

use super::checks::examined;
use super::fixes::{fixing, shows};
use crate::support::made_up::User;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const FOLDER: &str = ".local/share/pilotlight/bridge";
const FILES: &str = ".local/share/pilotlight/bridge/plugins/pilotlight/extensions/pilotlight";

/// The user's settings in Copilot.
fn settings(user: &User) -> PathBuf {
    user.home().join("settings.json")
}

/// A home in whose settings the bridge is on.
fn switched_on() -> User {
    let user = User::new();
    let on = json!({
        "extraKnownMarketplaces": {"pilotlight": {"source": {"source": "directory", "path": user.scratch.path().join(FOLDER)}}},
        "enabledPlugins": {"pilotlight@pilotlight": true},
    });
    fs::write(settings(&user), on.to_string()).unwrap();
    user
}

/// `doctor` says one thing of it: this, and that it is so bad.
fn says(user: &User, level: &str, words: &str) {
    let found = examined(&mut user.pilotlight(&[])).0;
    let of_bridge: Vec<&Value> = found.iter().filter(|it| it["check"] == "bridge").collect();
    let is_so = |it: &Value| it["level"] == level && it["said"].as_str().unwrap().contains(words);
    assert!(of_bridge.len() == 1 && is_so(of_bridge[0]), "expected {level}: {words}\n{of_bridge:#?}");
}

#[test]
fn a_bridge_that_is_gone_or_of_another_version_is_put_right() {
    let user = switched_on();
    let fix = || {
        let terminal = fixing(&user.pilotlight(&["doctor", "--fix"]));
        shows(&terminal, "Write the bridge of this program into");
        terminal.text("y");
        terminal.press(&["Enter"]);
        shows(&terminal, "sessions that are started from now on have it");
        shows(&terminal, "exited with");
    };
    says(&user, "problem", "which is gone");
    fix();
    says(&user, "ok", "have the bridge");
    let at = |name: &str| user.scratch.path().join(FILES).join(name);
    fs::write(at("extension.mjs"), "// of another version").unwrap();
    says(&user, "warning", "of another version");
    fix();
    says(&user, "ok", "have the bridge");
    // As after the program was moved.
    let mut of_us: Value = serde_json::from_slice(&fs::read(at("bridge.json")).unwrap()).unwrap();
    of_us["program"] = "/opt/elsewhere/pilotlight".into();
    fs::write(at("bridge.json"), of_us.to_string()).unwrap();
    says(&user, "warning", "takes /opt/elsewhere/pilotlight for Pilotlight");
    fix();
    fs::remove_file(user.scratch.path().join(".local/state/pilotlight/bridge.key")).unwrap();
    says(&user, "problem", "its key is gone");
    fix();
    says(&user, "ok", "have the bridge");
}

#[test]
fn settings_that_switch_it_off_are_told_be_they_commented_or_not() {
    let user = switched_on();
    let on = fs::read_to_string(settings(&user)).unwrap();
    let set = |text: &str| fs::write(settings(&user), text).unwrap();
    set(&format!("// mine\n{},}} /* the end */", on.strip_suffix('}').unwrap()));
    says(&user, "problem", "which is gone");
    set(&on.replace("true", "false"));
    says(&user, "warning", "switched off in Copilot");
    for off in [json!({"mode": "disabled"}), json!({"disabledExtensions": ["plugin:pilotlight:pilotlight"]})] {
        let mut settings: Value = serde_json::from_str(&on).unwrap();
        settings["extensions"] = off;
        set(&settings.to_string());
        says(&user, "warning", "switched off in Copilot");
    }
    set(&on.replace(FOLDER, "elsewhere"));
    says(&user, "warning", "installed there from another folder");
    set("{}");
    says(&user, "ok", "not installed");
}
