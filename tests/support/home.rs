//! A private Copilot home for one test, the CLI that runs in it, and the files that CLI wrote there.
//!
//! The CLI is the native program of the `@github/copilot` package. `PILOTLIGHT_TEST_COPILOT` names it; by default it is
//! the one that `tests/all.sh` installs. Its first start unpacks 235 MB into its cache, so all tests share one cache
//! (`PILOTLIGHT_TEST_CACHE`, else below cargo's target folder). Everything else (its home, the user's home, the project
//! it works in) is a scratch folder.

use super::executable::executable;
use super::model::Model;
use super::{COPILOT, target_dir, wait_until};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

/// The API key of the model's provider. The CLI redacts it wherever a tool prints it, so it must be a word that no tool
/// prints.
pub(crate) const KEY: &str = "no-key-needed";

/// The absolute path of the CLI, found and run once.
pub(crate) fn cli() -> &'static Path {
    static CLI: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        let cli = find_cli()?;
        // Unpacks the cache once, before several tests do so at the same time.
        let version = environment(Command::new(&cli), &target_dir().join("copilot-home")).arg("--version").output();
        match version {
            Ok(version) if version.status.success() => Ok(cli),
            other => Err(format!("{} does not start: {other:?}", cli.display())),
        }
    });
    match &*CLI {
        Ok(cli) => cli,
        Err(reason) => panic!("{reason}"),
    }
}

/// A release of the CLI that holds no lock file (`inuse.*.hold`). tests/long.sh installs it.
pub(crate) fn old_cli() -> PathBuf {
    old(from_environment("PILOTLIGHT_TEST_OLD_COPILOT").expect("PILOTLIGHT_TEST_OLD_COPILOT names the older CLI"))
}

/// All older releases that tests/long.sh installs.
pub(crate) fn old_clis() -> Vec<PathBuf> {
    let all =
        from_environment("PILOTLIGHT_TEST_OLD_COPILOTS").expect("PILOTLIGHT_TEST_OLD_COPILOTS names the older CLIs");
    std::env::split_paths(&all).map(old).collect()
}

/// Unpacks the cache of an older CLI, which takes longer than a later start.
fn old(cli: PathBuf) -> PathBuf {
    let home = target_dir().join("copilot-home");
    let version = environment(Command::new(&cli), &home).env("COPILOT_HOME", &home).arg("--version").output().unwrap();
    assert!(version.status.success(), "{version:?}");
    cli
}

fn find_cli() -> Result<PathBuf, String> {
    if let Some(path) = from_environment("PILOTLIGHT_TEST_COPILOT") {
        let missing = format!("PILOTLIGHT_TEST_COPILOT names {}, which does not exist", path.display());
        return if path.is_file() { Ok(path) } else { Err(missing) };
    }
    let platform = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("macos", "aarch64") => "darwin-arm64",
        ("macos", _) => "darwin-x64",
        (_, "aarch64") => "linux-arm64",
        _ => "linux-x64",
    };
    let inside = format!("copilot-cli/node_modules/@github/copilot-{platform}/copilot");
    let tried = [target_dir().join(&inside), Path::new(env!("CARGO_MANIFEST_DIR")).join("target").join(&inside)];
    tried.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        format!(
            "The Copilot CLI is missing: neither is PILOTLIGHT_TEST_COPILOT set, nor is there {}.\n\
             tests/all.sh installs it; or: npm install --prefix {} @github/copilot@1.0.102",
            tried[0].display(),
            target_dir().join("copilot-cli").display()
        )
    })
}

/// The cache that all tests share.
fn cache() -> PathBuf {
    from_environment("PILOTLIGHT_TEST_CACHE").unwrap_or_else(|| target_dir().join("copilot-cache"))
}

/// A path that `tests/all.sh` passes in the environment; an empty value counts as unset.
fn from_environment(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Clears the environment of a test's process: only the search path of the developer's remains.
fn environment(mut command: Command, user: &Path) -> Command {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", user)
        .env("XDG_CACHE_HOME", cache())
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color");
    command
}

/// A scratch folder with a Copilot home, a user's home, and a project to work in.
pub(crate) struct Home {
    root: TempDir,
    /// Whether an organisation's policy is installed, in a scratch folder that replaces the system's.
    has_policy: bool,
    project: String,
    cli: PathBuf,
}

impl Home {
    /// A home without a session. `project` names the folder that its sessions work in.
    pub(crate) fn new(project: &str) -> Self {
        Self::with_cli(project, cli().to_owned())
    }

    /// As [`Home::new`], with another release of the CLI.
    pub(crate) fn with_cli(project: &str, cli: PathBuf) -> Self {
        let root = tempfile::Builder::new().prefix("pilotlight-").tempdir().unwrap();
        let home = Self { root, has_policy: false, project: project.to_owned(), cli };
        for dir in [home.dir(), home.user(), home.project()] {
            std::fs::create_dir_all(dir).unwrap();
        }
        std::fs::write(home.project().join("seed.txt"), "seed\n").unwrap();
        home.trust(&[&home.project()]);
        home
    }

    /// Sets the folders that the terminal interface trusts. In any other folder it asks before it starts.
    pub(crate) fn trust(&self, folders: &[&Path]) {
        let config = serde_json::json!({"trustedFolders": folders, "banner": "never"});
        std::fs::write(self.dir().join("config.json"), config.to_string()).unwrap();
    }

    /// The value of `COPILOT_HOME`.
    pub(crate) fn dir(&self) -> PathBuf {
        self.root.path().join("copilot")
    }

    /// The folder that the sessions of this home work in.
    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join(&self.project)
    }

    /// The scratch folder that contains everything of this test.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    fn user(&self) -> PathBuf {
        self.root.path().join("user")
    }

    /// A command that starts the CLI in this home's project. Its model is `model`, unless a session configures its own.
    pub(crate) fn copilot(&self, model: &Model) -> Command {
        let mut command = environment(self.with_policy(Command::new(&self.cli)), &self.user());
        command
            .current_dir(self.project())
            .env("COPILOT_HOME", self.dir())
            .env("COPILOT_OFFLINE", "true")
            .env("COPILOT_PROVIDER_BASE_URL", model.url())
            .env("COPILOT_PROVIDER_API_KEY", KEY)
            .env("COPILOT_MODEL", "fake-model")
            .arg("--no-auto-update");
        command
    }

    /// Installs an organisation's policy for all programs that [`with_policy`](Self::with_policy) starts from now on.
    pub(crate) fn set_policy(&mut self, policy: &Value) {
        let folder = self.root.path().join("etc/github-copilot");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("managed-settings.json"), policy.to_string()).unwrap();
        self.has_policy = true;
    }

    /// Runs this program with the policy at the system's path, in a mount namespace of its own, so that the real system
    /// is not touched.
    pub(crate) fn with_policy(&self, command: Command) -> Command {
        const MOUNT: &str = "mount -t overlay overlay -o \"lowerdir=$0:/etc\" /etc && exec \"$@\"";
        if !self.has_policy {
            return command;
        }
        let mut inside = Command::new("unshare");
        inside.arg(if rustix::process::geteuid().is_root() { "-m" } else { "-rm" }).args(["sh", "-c", MOUNT]);
        inside.arg(self.root.path().join("etc")).arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        inside
    }

    /// Writes Copilot's own record of permanent approvals: the bridge may answer in this folder.
    pub(crate) fn remember_consent(&self, folder: &Path) {
        let approval =
            serde_json::json!({"kind": "extension-permission-access", "extensionName": "plugin:pilotlight:pilotlight"});
        let record = serde_json::json!({"locations": {folder.to_str().unwrap(): {"tool_approvals": [approval]}}});
        std::fs::write(self.dir().join("permissions-config.json"), record.to_string()).unwrap();
    }

    /// A script that runs the CLI with the environment of this home, for callers that do not set it.
    pub(crate) fn program(&self, model: &Model) -> PathBuf {
        let command = self.copilot(model);
        let mut script = "#!/bin/sh\n".to_owned();
        for (key, value) in command.get_envs() {
            let value = value.unwrap_or_default().to_str().unwrap();
            assert!(!value.contains('\''), "{value}");
            script += &format!("export {}='{value}'\n", key.to_str().unwrap());
        }
        script += &format!("exec '{}' \"$@\"\n", self.cli.display());
        let path = self.root.path().join("copilot.sh");
        executable(&path, &script);
        path
    }

    /// The folders of all sessions in this home.
    pub(crate) fn sessions(&self) -> Vec<Folder> {
        let Ok(entries) = std::fs::read_dir(self.dir().join("session-state")) else { return Vec::new() };
        let mut found: Vec<Folder> = entries
            .filter_map(Result::ok)
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| Folder { path: entry.path() })
            .collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    /// The folder of one session.
    pub(crate) fn session(&self, id: &str) -> Folder {
        Folder { path: self.dir().join("session-state").join(id) }
    }

    /// Lets the tools finish that wait for the file [`GO`](super::script::GO).
    pub(crate) fn release_tools(&self) {
        std::fs::write(self.project().join(super::script::GO), "").unwrap();
    }
}

/// One session's folder on disk.
#[derive(Clone)]
pub(crate) struct Folder {
    /// `<COPILOT_HOME>/session-state/<id>`.
    pub(crate) path: PathBuf,
}

impl Folder {
    /// The session's id.
    pub(crate) fn id(&self) -> String {
        self.path.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// The log as it is now, one value per line. Empty before the first prompt.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The path of the log.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// The types of all events, in order.
    pub(crate) fn types(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until the log holds `count` events of this type, and returns the last of them.
    pub(crate) fn wait_nth(&self, kind: &str, count: usize) -> Value {
        let what = format!("the log of {} has {count} {kind}", self.id());
        wait_until(
            COPILOT,
            &what,
            || self.dump(),
            || {
                let mut found: Vec<Value> = self.events().into_iter().filter(|event| event["type"] == kind).collect();
                if found.len() >= count { found.pop() } else { None }
            },
        )
    }

    /// Waits until the log holds an event of this type, and returns it.
    pub(crate) fn wait(&self, kind: &str) -> Value {
        self.wait_nth(kind, 1)
    }

    /// Asserts that the log is one chain: no event was lost, duplicated, or written by a second owner.
    pub(crate) fn assert_one_chain(&self) {
        if let Some(fault) = self.fault() {
            panic!("{fault}\n{}", self.dump());
        }
        assert!(self.locks().len() <= 1, "two owners\n{}", self.dump());
    }

    /// Why the log is not one chain, or not of one owner at a time, if it is not.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let in_use = |event: &Value| event["data"]["alreadyInUse"] == true;
        self.broken_chain().or_else(|| self.events().iter().any(in_use).then_some("two owners"))
    }

    /// Why the log is not one chain, if it is not.
    pub(crate) fn broken_chain(&self) -> Option<&'static str> {
        let events = self.events();
        let key = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let kinds: HashMap<_, _> = events.iter().map(|event| (key(event, "id"), key(event, "type"))).collect();
        if kinds.len() != events.len() {
            return Some("an event is duplicated");
        }
        let mut parents = HashSet::new();
        for parent in events.iter().skip(1).map(|event| key(event, "parentId")) {
            let Some(kind) = kinds.get(&parent) else { return Some("an event is lost") };
            // An abort may be written after the end of the round that follows it. A resuming process then continues
            // from it.
            if !parents.insert(parent) && kind != "abort" {
                return Some("the log is forked");
            }
        }
        None
    }

    /// The pids in the names of the locks.
    pub(crate) fn locks(&self) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return Vec::new() };
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries
            .filter_map(Result::ok)
            .filter_map(|entry| name(entry).strip_prefix("inuse.")?.strip_suffix(".lock")?.parse().ok())
            .collect()
    }

    /// The log in brief, for a failed test: the type of each event and the start of its data.
    pub(crate) fn dump(&self) -> String {
        let mut out = format!("{}, locks {:?}\n", self.path.display(), self.locks());
        for event in self.events() {
            let data: String = event["data"].to_string().chars().take(160).collect();
            let agent = if event["agentId"].is_null() { "" } else { "[agent] " };
            out += &format!("  {} {agent}{} {data}\n", event["timestamp"], event["type"]);
        }
        out
    }
}
