//! The bridge to terminals: the problems that `doctor` finds with it, and their repair.

use super::checks::examined;
use super::fixes::in_terminal;
use crate::support::synthetic::User;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const FOLDER: &str = ".local/share/pilotlight/bridge";
const FILES: &str = ".local/share/pilotlight/bridge/plugins/pilotlight/extensions/pilotlight";

/// Copilot's own settings.
fn settings(user: &User) -> PathBuf {
    user.home().join("settings.json")
}

/// A user whose settings enable the bridge.
fn switched_on() -> User {
    let user = User::new();
    let on = json!({
        "extraKnownMarketplaces": {"pilotlight": {"source": {"source": "directory", "path": user.scratch.path().join(FOLDER)}}},
        "enabledPlugins": {"pilotlight@pilotlight": true},
    });
    fs::write(settings(&user), on.to_string()).unwrap();
    user
}

/// Asserts that `doctor` has one finding on the bridge, with this level and these words.
fn reports(user: &User, level: &str, words: &str) {
    let found = examined(&mut user.pilotlight(&[])).0;
    let findings: Vec<&Value> = found.iter().filter(|it| it["check"] == "bridge").collect();
    let matches = |it: &Value| it["level"] == level && it["said"].as_str().unwrap().contains(words);
    assert!(findings.len() == 1 && matches(findings[0]), "expected {level}: {words}\n{findings:#?}");
}

#[test]
fn a_bridge_that_is_gone_or_of_another_version_is_repaired() {
    let user = switched_on();
    let fix = || {
        let terminal = in_terminal(&user.pilotlight(&["doctor", "--fix"]));
        terminal.shows("Write the bridge of this program into");
        terminal.text("y");
        terminal.press(&["Enter"]);
        terminal.shows("sessions that are started from now on have it");
        terminal.shows("exited with");
    };
    reports(&user, "problem", "which is gone");
    fix();
    reports(&user, "ok", "have the bridge");
    let at = |name: &str| user.scratch.path().join(FILES).join(name);
    // Case 197b: changed by somebody else, or installed by another version.
    fs::write(at("extension.mjs"), "// of another version").unwrap();
    reports(&user, "problem", "was changed since it was installed: it does not run");
    let read = || serde_json::from_slice::<Value>(&fs::read(at("bridge.json")).unwrap()).unwrap();
    let mut settings = read();
    settings["hash"] = Value::Null;
    fs::write(at("bridge.json"), settings.to_string()).unwrap();
    reports(&user, "warning", "comes from another version of Pilotlight");
    fix();
    reports(&user, "ok", "have the bridge");
    // The program was moved.
    let mut settings = read();
    settings["program"] = "/opt/elsewhere/pilotlight".into();
    fs::write(at("bridge.json"), settings.to_string()).unwrap();
    reports(&user, "warning", "accepts /opt/elsewhere/pilotlight as Pilotlight");
    fix();
    fs::remove_file(user.scratch.path().join(".local/state/pilotlight/bridge.key")).unwrap();
    reports(&user, "problem", "its key is gone");
    fix();
    reports(&user, "ok", "have the bridge");
}

#[test]
fn settings_that_switch_it_off_are_found_with_and_without_comments() {
    let user = switched_on();
    let on = fs::read_to_string(settings(&user)).unwrap();
    let set = |text: &str| fs::write(settings(&user), text).unwrap();
    set(&format!("// mine\n{},}} /* the end */", on.strip_suffix('}').unwrap()));
    reports(&user, "problem", "which is gone");
    set(&on.replace("true", "false"));
    reports(&user, "warning", "switched off in Copilot");
    for off in [json!({"mode": "disabled"}), json!({"disabledExtensions": ["plugin:pilotlight:pilotlight"]})] {
        let mut settings: Value = serde_json::from_str(&on).unwrap();
        settings["extensions"] = off;
        set(&settings.to_string());
        reports(&user, "warning", "switched off in Copilot");
    }
    set(&on.replace(FOLDER, "former/bridge"));
    reports(&user, "warning", "installed there from another folder");
    set(&on.replace(FOLDER, "elsewhere"));
    reports(&user, "warning", "another marketplace of the name");
    set("{}");
    reports(&user, "ok", "not installed");
}

/// A user of Claude Code alone, whose settings have the bridge, and another program.
fn with_hook() -> (User, PathBuf) {
    let user = User::new();
    let home = user.scratch.path().join(".claude");
    fs::create_dir_all(home.join("projects")).unwrap();
    let other = json!([{"hooks": [{"type": "command", "command": "/opt/other --ask"}]}]);
    let settings = json!({
        "extraKnownMarketplaces": {"pilotlight": {"source": {"source": "directory", "path": user.scratch.path().join(HOOK_FOLDER)}}},
        "enabledPlugins": {"pilotlight@pilotlight": true},
        "hooks": {"PermissionRequest": other},
    });
    fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    (user, home)
}

const HOOK_FOLDER: &str = ".local/share/pilotlight/bridge-claude-code";

#[test]
fn a_hook_that_is_gone_moved_or_of_another_version_is_repaired() {
    let (user, home) = with_hook();
    let hook = user.scratch.path().join(HOOK_FOLDER).join("plugins/pilotlight/hooks/hooks.json");
    let found = |words: &str| {
        let found = examined(&mut user.pilotlight(&[])).0;
        let its = |it: &&Value| it["check"] == "bridge" && it["said"].as_str().unwrap().contains(words);
        let levels: Vec<_> = found.iter().filter(its).map(|it| it["level"].as_str().unwrap().to_owned()).collect();
        assert_eq!(levels.len(), 1, "{words}: {found:#?}");
        levels[0].clone()
    };
    let fix = || {
        let terminal = in_terminal(&user.pilotlight(&["doctor", "--fix"]));
        terminal.shows("bridge-claude-code?");
        terminal.text("y");
        terminal.press(&["Enter"]);
        terminal.shows("sessions that are started from now on have it");
        terminal.shows("exited with");
    };
    assert_eq!(found("which is gone or broken"), "problem");
    fix();
    assert_eq!(found("Claude Code passes its requests to Pilotlight"), "ok");
    assert_eq!(found("another program also answers: `/opt/other --ask` (settings.json)"), "warning");
    let rewrite = |from: &str, to: &str| {
        let text = fs::read_to_string(&hook).unwrap();
        fs::write(&hook, text.replace(from, to)).unwrap();
    };
    rewrite("86400", "600");
    assert_eq!(found("comes from another version of Pilotlight"), "warning");
    rewrite(env!("CARGO_BIN_EXE_pilotlight"), "/bin/sh");
    assert_eq!(found("Claude Code starts /bin/sh, not this program"), "warning");
    rewrite("/bin/sh", "/opt/gone/pilotlight");
    assert_eq!(found("Claude Code cannot start /opt/gone/pilotlight, which is gone"), "problem");
    fix();
    assert_eq!(found("Claude Code passes its requests to Pilotlight"), "ok");
    let settings = fs::read_to_string(home.join("settings.json")).unwrap();
    let set = |text: &str| fs::write(home.join("settings.json"), text).unwrap();
    set(&settings.replace("true", "false"));
    assert_eq!(found("the bridge is switched off in Claude Code"), "warning");
    set(&settings.replace(HOOK_FOLDER, "former/bridge-claude-code"));
    assert_eq!(found("installed there from another folder"), "warning");
    set(&settings.replace(HOOK_FOLDER, "elsewhere"));
    assert_eq!(found("another marketplace of the name"), "warning");
    set(&settings.replace('{', "{ // mine\n"));
    assert_eq!(found("Claude Code's settings.json cannot be read"), "warning");
    set("{}");
    assert_eq!(found("not installed: what Claude Code asks is shown"), "ok");
}
