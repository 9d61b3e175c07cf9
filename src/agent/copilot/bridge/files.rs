//! What of the bridge lies on our disk: a marketplace for Copilot, with the extension in it, and the key by which the extension
//! and we know each other.
//!
//! Copilot loads the extension from where it lies here and copies nothing, so a new version of ours counts for every session
//! that is started from then on.

use super::wire::hex;
use super::{NAME, PROTOCOL};
use crate::system::{paths, state_file};
use anyhow::{Context, anyhow};
use directories::ProjectDirs;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The extension.
pub(crate) const EXTENSION: &str = include_str!("../../../../assets/bridge/extension.mjs");
/// The length of the key, in bytes: that of the hash it is for.
const KEY_LENGTH: usize = 32;

/// Where the bridge lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// The marketplace: what Copilot is told.
    pub marketplace: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// The folders in which its socket may be, the best first.
    pub folders: Vec<PathBuf>,
    /// This program: the extension takes no other for us.
    pub program: Option<PathBuf>,
}

impl Files {
    /// In the user's own folders.
    pub(crate) fn new(project: &ProjectDirs) -> Self {
        Self {
            marketplace: project.data_local_dir().join("bridge"),
            key: paths::state_folder(project).join("bridge.key"),
            folders: paths::runtime_folders(project),
            program: paths::own_program(),
        }
    }

    /// The extension's file.
    pub(crate) fn extension(&self) -> PathBuf {
        self.plugin().join("extensions").join(NAME).join("extension.mjs")
    }

    fn plugin(&self) -> PathBuf {
        self.marketplace.join("plugins").join(NAME)
    }

    /// Writes whatever is missing or of another version. The key stays as long as it is whole: running sessions have it.
    ///
    /// # Errors
    /// What cannot be written, and why.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        let about = "Lets Pilotlight stop, answer and approve in sessions of this terminal interface";
        let version = env!("CARGO_PKG_VERSION");
        let plugin = json!({"name": NAME, "description": about, "version": version});
        let marketplace = json!({
            "name": NAME,
            "owner": {"name": "Pilotlight"},
            "plugins": [{"name": NAME, "source": format!("./plugins/{NAME}"), "description": about, "version": version}],
        });
        // An update may have put another in our place, which the extensions that run do not take for us.
        let settings =
            json!({"v": PROTOCOL, "folders": self.folders, "key": self.key, "program": self.program.as_deref()});
        self.write_key()?;
        gone(std::fs::remove_file(self.misread()), &self.misread())?;
        let beside = self.extension().with_file_name("bridge.json");
        for (path, text) in [
            (self.marketplace.join(".github/plugin/marketplace.json"), &*pretty(&marketplace)?),
            (self.plugin().join("plugin.json"), &pretty(&plugin)?),
            (beside, &pretty(&settings)?),
            (self.extension(), EXTENSION),
        ] {
            if state_file::read(&path) != text {
                state_file::replace(&path, text.as_bytes())
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }

    fn write_key(&self) -> anyhow::Result<()> {
        if self.key().is_some() {
            return Ok(());
        }
        let mut key = [0; KEY_LENGTH];
        getrandom::fill(&mut key).map_err(|error| anyhow!("the system gives no random key: {error}"))?;
        state_file::replace(&self.key, &key).with_context(|| format!("cannot write {}", self.key.display()))?;
        // Nobody else may look into its folder; the file says so as well.
        #[cfg(unix)]
        std::fs::set_permissions(&self.key, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .with_context(|| format!("cannot keep {} to you alone", self.key.display()))?;
        Ok(())
    }

    /// The key, where there is one.
    pub(crate) fn key(&self) -> Option<[u8; KEY_LENGTH]> {
        let mut key = [0; KEY_LENGTH];
        let mut file = File::open(&self.key).ok().filter(|_| self.key.is_file())?;
        file.read_exact(&mut key).ok()?;
        (file.read(&mut [0]).ok()? == 0).then_some(key)
    }

    /// Whether Copilot asked its user in a dialog where none was expected: its record of consents was misread, and nothing is made of
    /// such a record again until the bridge is installed anew.
    pub(crate) fn may_elevate(&self) -> bool {
        !self.misread().exists()
    }

    /// Keeps that for whatever comes.
    pub(crate) fn was_misread(&self) {
        if let Err(error) = state_file::replace(&self.misread(), b"") {
            tracing::warn!("that Copilot asked unexpectedly cannot be kept: {error:#}");
        }
    }

    fn misread(&self) -> PathBuf {
        self.key.with_extension("misread")
    }

    /// Whether the extension's file is the one of this version.
    pub(crate) fn is_current(&self) -> bool {
        state_file::read(&self.extension()) == EXTENSION
    }

    /// The program that the extension takes for us, where that is another one than this.
    pub(crate) fn other_program(&self) -> Option<PathBuf> {
        let settings: serde_json::Value = serde_json::from_str(&state_file::read(&self.settings())).ok()?;
        let named = settings["program"].as_str().map(PathBuf::from)?;
        (Some(&named) != self.program.as_ref()).then_some(named)
    }

    fn settings(&self) -> PathBuf {
        self.extension().with_file_name("bridge.json")
    }

    /// Takes everything away. What is not there is no error.
    ///
    /// # Errors
    /// What cannot be taken away, and why.
    pub(crate) fn remove(&self) -> anyhow::Result<()> {
        gone(std::fs::remove_dir_all(&self.marketplace), &self.marketplace)?;
        gone(std::fs::remove_file(self.misread()), &self.misread())?;
        gone(std::fs::remove_file(&self.key), &self.key)
    }
}

/// What is gone already is as it should be.
fn gone(removed: std::io::Result<()>, path: &Path) -> anyhow::Result<()> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// What tells our extension from another version of it, as it says of itself.
pub(crate) fn hash() -> String {
    use sha2::{Digest, Sha256};
    hex(&Sha256::digest(EXTENSION))
}

fn pretty(value: &serde_json::Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Files {
        let (marketplace, key) = (folder.join("data/bridge"), folder.join("state/bridge.key"));
        Files { marketplace, key, folders: vec![folder.join("run")], program: None }
    }

    #[test]
    fn the_key_stays_what_is_older_is_renewed_and_nothing_is_left() {
        let scratch = tempfile::tempdir().unwrap();
        let files = files(scratch.path());
        files.write().unwrap();
        let key = files.key().unwrap();
        assert!(files.is_current() && key != [0; KEY_LENGTH]);
        std::fs::write(files.extension(), "older").unwrap();
        assert!(!files.is_current());
        files.write().unwrap();
        assert_eq!((files.is_current(), files.key()), (true, Some(key)));
        for broken in [&key[1..], &[&key[..], b"x"].concat(), b""] {
            std::fs::write(&files.key, broken).unwrap();
            assert_eq!(files.key(), None);
        }
        files.remove().unwrap();
        assert!(!files.marketplace.exists() && !files.key.exists());
        files.remove().unwrap();
    }

    /// The extension asks Copilot for what stands in its one list, and for nothing else.
    #[test]
    fn the_extension_calls_nothing_but_what_its_list_names() {
        let code: Vec<_> = EXTENSION.lines().filter_map(|line| line.split("//").next()).collect();
        let code = code.join("\n");
        let (before, rest) = code.split_once("const CALLS = {").unwrap();
        let (list, after) = rest.split_once("\n};\n").unwrap();
        let uses = |code: &str| -> Vec<String> {
            let rest = code.split("session").skip(1);
            let of = |rest: &str| rest.chars().take_while(|c| c.is_alphanumeric() || ".?[".contains(*c)).collect();
            rest.map(of).filter(|of: &String| of.starts_with(['.', '?', '['])).collect()
        };
        let allowed = [
            ".abort",
            ".send",
            ".rpc.metadata.activity",
            ".rpc.permissions.pendingRequests",
            ".rpc.ui.handlePendingElicitation",
            ".rpc.ui.handlePendingExitPlanMode",
            ".rpc.permissions.handlePendingPermissionRequest",
            ".connection.sendRequest",
            ".resume",
            ".", // of `session.sessionId`
        ];
        assert!(uses(list).iter().all(|one| allowed.contains(&&**one)), "{:?}", uses(list));
        assert_eq!(list.matches("sendRequest(\"session.resume\"").count(), list.matches("sendRequest(").count());
        // Beside the list: events are heard, the id is read, and it is looked whether there is a connection.
        let elsewhere = [".on", ".", ".connection?.sendRequest", ".context", ".error", ".idle", ".shutdown"];
        for code in [before, after] {
            assert!(uses(code).iter().all(|one| elsewhere.contains(&&**one)), "{:?}", uses(code));
        }
        assert!(
            !EXTENSION.contains("eval(") && !EXTENSION.contains("child_process") && !EXTENSION.contains("writeFile")
        );
    }
}
