//! The bridge is installed and removed by the real Claude Code's own commands: what they change of the user's settings, and
//! what is said before.

use crate::support::claude::program;
use crate::support::pilotlight::CommandOutput;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const FOLDER: &str = ".local/share/pilotlight/bridge-claude-code";

/// A user with Claude Code on the search path, and config folders of it.
struct Stage {
    scratch: TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { scratch: tempfile::Builder::new().prefix("pilotlight-installed-").tempdir().unwrap() };
        fs::create_dir_all(stage.at("bin")).unwrap();
        fs::create_dir_all(stage.at("run")).unwrap();
        symlink(program(), stage.at("bin/claude")).unwrap();
        stage
    }

    fn at(&self, path: &str) -> PathBuf {
        self.scratch.path().join(path)
    }

    /// A config folder with these settings, of a Claude Code that was used.
    fn home(&self, name: &str, settings: &str) -> PathBuf {
        let home = self.at(name);
        fs::create_dir_all(home.join("projects")).unwrap();
        fs::write(home.join("settings.json"), settings).unwrap();
        home
    }

    fn command(&self, homes: &[&Path], arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilotlight"));
        for home in homes {
            command.arg("--home").arg(home);
        }
        command.args(arguments).env_clear().current_dir(self.scratch.path());
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.at("bin").display()));
        command.env("HOME", self.scratch.path()).env("XDG_RUNTIME_DIR", self.at("run"));
        command.env("DISABLE_TELEMETRY", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command.env("PILOTLIGHT_CONFIG", self.at("config.toml"));
        command
    }

    fn run(&self, homes: &[&Path], arguments: &[&str]) -> CommandOutput {
        CommandOutput::of(self.command(homes, arguments))
    }

    fn succeeds(&self, homes: &[&Path], arguments: &[&str]) -> CommandOutput {
        let ran = self.run(homes, arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran
    }

    /// What `bridge status --json` says of these homes: whether it is installed there.
    fn installed(&self, homes: &[&Path]) -> Vec<String> {
        let rows: Vec<Value> =
            serde_json::from_str(&self.succeeds(homes, &["bridge", "status", "--json"]).out).unwrap();
        assert!(rows.iter().all(|row| row["agent"] == "claude-code"), "{rows:?}");
        rows.iter().map(|row| row["installed"].as_str().unwrap().to_owned()).collect()
    }
}

fn settings(home: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(home.join("settings.json")).unwrap()).unwrap()
}

const RICH: &str = r#"{
    "//": "written by another tool",
  "permissions": {"allow": ["Bash(ls:*)"], "defaultMode": "default"},
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}],
      "PermissionRequest": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "/opt/other --ask"}]}]},
    "enabledPlugins": {"other@market": false}, "unknown": {"x": [1.5, null], "y": "d\u00e4rk"}
}"#;

/// Two config folders, one of which links its settings: everything but our two entries stays, and these go again.
#[test]
fn two_entries_come_and_go_and_all_else_of_the_settings_stays() {
    let stage = Stage::new();
    let (one, two) = (stage.home("one", RICH), stage.home("two", "{}"));
    fs::rename(two.join("settings.json"), stage.at("dotfile.json")).unwrap();
    symlink("../dotfile.json", two.join("settings.json")).unwrap();
    let homes = [one.as_path(), two.as_path()];
    let before = settings(&one);

    let ran = stage.succeeds(&homes, &["bridge", "install", "--agent", "claude-code", "--yes"]);
    for words in [
        "In sessions that are started from now on, Claude Code starts Pilotlight whenever it asks you something",
        "the first answer counts. Pilotlight answers nothing without your click",
        "two entries to its settings.json, and `pilotlight bridge remove` removes them. Sessions that are still running then keep the hook",
        "another program also answers there: `/opt/other --ask` (settings.json)",
        "plugin install pilotlight@pilotlight --scope user",
    ] {
        assert!(ran.err.replace("\n  ", " ").replace('\n', " ").contains(words), "{words}: {}", ran.err);
    }
    assert!(!ran.err.contains("changed its setting"), "{}", ran.err);
    assert_eq!(stage.installed(&homes), ["yes", "yes"]);
    let ours = json!({"source": {"source": "directory", "path": stage.at(FOLDER)}});
    let mut after = settings(&one);
    assert_eq!(after["extraKnownMarketplaces"], json!({"pilotlight": ours}));
    assert_eq!(after["enabledPlugins"], json!({"other@market": false, "pilotlight@pilotlight": true}));
    after["enabledPlugins"] = before["enabledPlugins"].clone();
    after.as_object_mut().unwrap().remove("extraKnownMarketplaces");
    assert_eq!(after, before);
    assert!(
        two.join("settings.json").is_symlink() && settings(&two)["enabledPlugins"]["pilotlight@pilotlight"] == true
    );
    let hook = fs::read_to_string(stage.at(FOLDER).join("plugins/pilotlight/hooks/hooks.json")).unwrap();
    let hook: Value = serde_json::from_str(&hook).unwrap();
    assert_eq!(hook["hooks"]["PermissionRequest"][0]["hooks"][0]["command"], env!("CARGO_BIN_EXE_pilotlight"));

    // Once more changes nothing, and puts back what was switched off.
    let text = fs::read_to_string(one.join("settings.json")).unwrap();
    stage.succeeds(&homes, &["bridge", "install", "--yes"]);
    assert_eq!(fs::read_to_string(one.join("settings.json")).unwrap(), text);
    fs::write(
        one.join("settings.json"),
        text.replace("\"pilotlight@pilotlight\": true", "\"pilotlight@pilotlight\": false"),
    )
    .unwrap();
    assert_eq!(stage.installed(&homes), ["switched-off", "yes"]);
    stage.succeeds(&homes, &["bridge", "install", "--yes"]);
    assert_eq!(stage.installed(&homes), ["yes", "yes"]);

    let ran = stage.succeeds(&homes, &["bridge", "remove", "--yes"]).err.replace('\n', " ");
    assert!(one.join("plugins").is_dir() && ran.contains("Claude Code's folder \"plugins\", with"), "{ran}");
    assert_eq!(stage.installed(&homes), ["no", "no"]);
    let mut removed = settings(&one);
    assert_eq!(removed["extraKnownMarketplaces"], json!({}), "an empty one stays, as is said");
    removed.as_object_mut().unwrap().remove("extraKnownMarketplaces");
    assert_eq!(removed, before);
    assert_eq!(settings(&two), json!({"enabledPlugins": {}, "extraKnownMarketplaces": {}}));
    assert!(two.join("settings.json").is_symlink() && !stage.at(FOLDER).exists());
}

/// Without a yes, and where Claude Code itself could not read its settings, not a byte changes.
#[test]
fn nothing_is_done_without_consent_or_with_settings_that_cannot_be_read() {
    let stage = Stage::new();
    let home = stage.home("one", RICH);
    let text = || fs::read_to_string(home.join("settings.json")).unwrap();
    let ran = stage.run(&[&home], &["bridge", "install"]);
    assert!(ran.code == Some(4) && ran.err.contains("nothing was done"), "{ran:?}");
    assert_eq!(text(), RICH);
    let commented = "{\n  // mine\n  \"theme\": \"dark\"\n}\n";
    fs::write(home.join("settings.json"), commented).unwrap();
    let ran = stage.run(&[&home], &["bridge", "install", "--yes"]);
    assert!(ran.code == Some(1) && ran.err.contains("settings.json cannot be read: correct the mistake"), "{ran:?}");
    assert_eq!((text().as_str(), stage.installed(&[&home])), (commented, vec!["unreadable".into()]));
    assert!(!stage.at(FOLDER).exists() && !home.join("plugins").exists());
    // A value that Claude Code does not know goes: that is said.
    fs::write(home.join("settings.json"), r#"{"theme": "d\u00e4rk", "a": 1}"#).unwrap();
    let ran = stage.succeeds(&[&home], &["bridge", "install", "--yes"]).err;
    assert!(ran.contains("Claude Code changed its setting \"theme\", which was \"därk\""), "{ran}");
    assert!(!ran.contains("changed \"a\""), "{ran}");
    // What the rewriting would lose is said before.
    fs::write(home.join("settings.json"), r#"{"a": 1, "a": 2, "id": 12345678901234567890}"#).unwrap();
    let ran = stage.run(&[&home], &["bridge", "install"]).err;
    assert!(ran.contains("of duplicate keys, only the last is kept"), "{ran}");
    assert!(ran.contains("the number 12345678901234567890 is rounded"), "{ran}");
}

/// A marketplace that the user has from elsewhere under the same name is neither replaced nor removed, nor are its plugins. In
/// the other config folder, the work is done.
#[test]
fn case_850_a_foreign_marketplace_of_the_same_name_stays_with_its_plugins() {
    let stage = Stage::new();
    let (one, two) = (stage.home("one", "{}"), stage.home("two", "{}"));
    let foreign = stage.at("paint-market");
    let paint = json!({"name": "paint", "source": "./paint"});
    let market = json!({"name": "pilotlight", "owner": {"name": "somebody"}, "plugins": [paint]});
    for (file, value) in
        [(".claude-plugin/marketplace.json", market), ("paint/.claude-plugin/plugin.json", json!({"name": "paint"}))]
    {
        fs::create_dir_all(foreign.join(file).parent().unwrap()).unwrap();
        fs::write(foreign.join(file), value.to_string()).unwrap();
    }
    for words in [&["marketplace", "add", foreign.to_str().unwrap()][..], &["install", "paint@pilotlight"]] {
        let mut claude = Command::new(stage.at("bin/claude"));
        claude
            .arg("plugin")
            .args(words)
            .env_clear()
            .envs([("HOME", stage.scratch.path()), ("CLAUDE_CONFIG_DIR", &one)]);
        let ran = CommandOutput::of(claude);
        assert_eq!(ran.code, Some(0), "{words:?}: {ran:?}");
    }
    let files = ["settings.json", "plugins/known_marketplaces.json", "plugins/installed_plugins.json"];
    let texts = || files.map(|file| fs::read_to_string(one.join(file)).unwrap());
    let before = texts();
    assert!(before.iter().all(|text| text.contains("pilotlight")), "{before:?}");
    for (verb, state) in [("install", "yes"), ("remove", "no")] {
        let ran = stage.run(&[&one, &two], &["bridge", verb, "--agent", "claude-code", "--yes"]);
        let said = ran.err.replace("\n  ", " ").replace('\n', " ");
        let place = format!("is not this Pilotlight's, but from {}: nothing is done there", foreign.display());
        assert!(ran.code == Some(1) && said.contains(&place), "{verb}: {ran:?}");
        assert!(said.contains("claude plugin marketplace remove pilotlight` removes it with its plugins"), "{said}");
        assert_eq!((texts(), stage.installed(&[&one, &two])), (before.clone(), vec!["foreign".into(), state.into()]));
    }
    assert!(two.join("plugins").is_dir() && !stage.at(FOLDER).exists());
    let alone = stage.run(&[&one], &["bridge", "remove", "--agent", "claude-code", "--yes"]);
    assert!(alone.code == Some(1) && !alone.err.contains("is removed"), "{alone:?}");
    let alone = stage.run(&[&one], &["bridge", "install", "--agent", "claude-code", "--yes"]);
    assert!(alone.code == Some(1) && !alone.err.contains("These commands will be run"), "{alone:?}");
    assert_eq!((texts(), stage.at(FOLDER).exists()), (before, false));
}

/// In the default home no variable is set, so Claude Code makes no second `.claude.json` there.
#[test]
#[ignore = "tests/long.sh"]
fn the_default_home_and_settings_from_another_machine_are_covered() {
    let stage = Stage::new();
    let home = stage.home(".claude", "");
    stage.succeeds(&[], &["bridge", "install", "--agent", "claude-code", "--yes"]);
    assert!(!home.join(".claude.json").exists() && stage.at(".claude.json").exists());
    let installed = settings(&home);
    // Its settings came from another machine, so this Claude Code knows of no such plugin.
    fs::remove_dir_all(home.join("plugins")).unwrap();
    stage.succeeds(&[], &["bridge", "remove", "--agent", "claude-code", "--yes"]);
    assert_eq!(settings(&home), json!({"enabledPlugins": {}, "extraKnownMarketplaces": {}}));
    fs::write(home.join("settings.json"), installed.to_string()).unwrap();
    stage.succeeds(&[], &["bridge", "install", "--agent", "claude-code", "--yes"]);
    assert!(home.join("plugins/installed_plugins.json").exists());
    // Our folder is gone: Claude Code removes what it knows.
    fs::remove_dir_all(stage.at(FOLDER)).unwrap();
    stage.succeeds(&[], &["bridge", "remove", "--agent", "claude-code", "--yes"]);
    assert_eq!(settings(&home), json!({"enabledPlugins": {}, "extraKnownMarketplaces": {}}));
}

/// A policy that allows no such marketplace: nothing of ours stays.
#[test]
fn what_a_policy_forbids_leaves_nothing() {
    const MOUNT: &str = "mount -t overlay overlay -o \"lowerdir=$0:/etc\" /etc && exec \"$@\"";
    let stage = Stage::new();
    let home = stage.home("one", "{}");
    let policy = stage.at("etc/claude-code");
    fs::create_dir_all(&policy).unwrap();
    let under = |text: &str, arguments: &[&str]| {
        fs::write(policy.join("managed-settings.json"), text).unwrap();
        let command = stage.command(&[&home], arguments);
        let mut inside = Command::new("unshare");
        inside.arg(if rustix::process::geteuid().is_root() { "-m" } else { "-rm" }).args(["sh", "-c", MOUNT]);
        inside.arg(stage.at("etc")).arg(command.get_program()).args(command.get_args());
        inside.env_clear().envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        CommandOutput::of(inside)
    };
    let ran = under(r#"{"strictKnownMarketplaces": []}"#, &["bridge", "install", "--yes"]);
    assert!(ran.code == Some(1) && ran.err.contains("blocked by enterprise policy"), "{ran:?}");
    assert_eq!((settings(&home), stage.at(FOLDER).exists()), (json!({}), false));
    // Hooks that are forbidden are no trouble to install: they are not called.
    let ran = under(r#"{"allowManagedHooksOnly": true}"#, &["bridge", "install", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let status = under(r#"{"allowManagedHooksOnly": true}"#, &["bridge", "status"]).out;
    assert!(status.contains("not started: a policy of your organisation forbids it"), "{status}");
}
