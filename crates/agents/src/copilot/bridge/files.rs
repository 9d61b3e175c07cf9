//! The bridge's files on disk: a marketplace for Copilot that holds the extension, and the key that authenticates the
//! extension and us to each other.
//!
//! Copilot loads the extension from this place without copying it, so an update applies to every session started
//! afterwards.

use super::wire::hex;
use super::{NAME, PROTOCOL};
use crate::bridge::{UserHomes, ignore_missing, pretty};
use anyhow::{Context, anyhow};
use pilotlight_system::log::{self, cause};
use pilotlight_system::plain_file::{self, Links};
use pilotlight_system::{paths, state_file};
use serde_json::json;
use std::io::Read;
use std::path::PathBuf;

/// The extension's source.
pub(crate) const EXTENSION: &str = include_str!("extension.mjs");
/// The length of the key, in bytes: the output length of SHA-256.
const KEY_LENGTH: usize = 32;

/// The name of the marketplace's folder.
pub(super) const FOLDER: &str = "bridge";

/// The paths of the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The marketplace's folder, which is given to Copilot.
    pub marketplace: PathBuf,
    pub key: PathBuf,
    /// The folders that may hold the socket, the preferred one first.
    pub folders: Vec<PathBuf>,
    /// This program. The extension accepts no other.
    pub program: Option<PathBuf>,
}

impl Files {
    /// The paths in the user's own folders.
    pub fn new(project: &paths::Folders) -> Self {
        Self {
            marketplace: paths::data_folder(project).join(FOLDER),
            key: paths::state_folder(project).join("bridge.key"),
            folders: paths::runtime_folders(project),
            program: paths::own_program(),
        }
    }

    /// The path of the extension's file.
    pub fn extension(&self) -> PathBuf {
        self.plugin().join("extensions").join(NAME).join("extension.mjs")
    }

    fn plugin(&self) -> PathBuf {
        self.marketplace.join("plugins").join(NAME)
    }

    /// Writes whatever is missing or differs from this version. A valid key is kept, because running sessions use it.
    ///
    /// # Errors
    /// What cannot be written, and why.
    pub fn write(&self) -> anyhow::Result<()> {
        let about = "Lets Pilotlight stop, answer and approve in sessions of this terminal interface";
        let version = env!("CARGO_PKG_VERSION");
        let plugin = json!({"name": NAME, "description": about, "version": version});
        let marketplace = json!({
            "name": NAME,
            "owner": {"name": "Pilotlight"},
            "plugins": [{"name": NAME, "source": format!("./plugins/{NAME}"), "description": about, "version": version}],
        });
        // An update may have moved our program. Extensions that already run do not accept the new path.
        let settings = json!({"v": PROTOCOL, "folders": self.folders, "key": self.key, "program": self.program.as_deref(), "hash": hash()});
        self.write_key()?;
        ignore_missing(std::fs::remove_file(self.misread()), &self.misread())?;
        for (path, text) in [
            (self.marketplace.join(".github/plugin/marketplace.json"), &*pretty(&marketplace)?),
            (self.plugin().join("plugin.json"), &pretty(&plugin)?),
            (self.settings(), &pretty(&settings)?),
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
        // Its folder is closed to others already; so is the file.
        #[cfg(unix)]
        std::fs::set_permissions(&self.key, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .with_context(|| format!("cannot keep {} to you alone", self.key.display()))?;
        Ok(())
    }

    /// Returns the key, if there is a valid one.
    pub fn key(&self) -> Option<[u8; KEY_LENGTH]> {
        let mut key = [0; KEY_LENGTH];
        let (mut file, _) = plain_file::open(&self.key, Links::Followed).ok()?;
        file.read_exact(&mut key).ok()?;
        (file.read(&mut [0]).ok()? == 0).then_some(key)
    }

    /// Whether the bridge is installed: its key exists, be it readable and valid or not.
    pub fn is_installed(&self) -> bool {
        !matches!(self.key.try_exists(), Ok(false))
    }

    /// Whether extensions may make use of remembered consents. No longer once Copilot has shown a dialog where none was
    /// expected: its record of consents was misread, and is not used again until the bridge is reinstalled.
    pub(crate) fn may_elevate(&self) -> bool {
        !self.misread().exists()
    }

    /// Remembers that Copilot's record of consents was misread.
    pub(crate) fn mark_misread(&self) {
        if let Err(error) = state_file::replace(&self.misread(), b"") {
            log::warn!("cannot save that Copilot asked unexpectedly: {}", cause(&*error));
        }
    }

    fn misread(&self) -> PathBuf {
        self.key.with_extension("misread")
    }

    /// Whether the extension's file is the one of this version.
    pub fn is_current(&self) -> bool {
        state_file::read(&self.extension()) == EXTENSION
    }

    /// Whether the extension's file was changed since it was installed, by whatever version. Such a file does not run.
    pub fn is_changed(&self) -> bool {
        let installed = self.installed().and_then(|settings| settings["hash"].as_str().map(str::to_owned));
        installed.is_some_and(|installed| installed != hash_of(&state_file::read(&self.extension())))
    }

    /// The program that the installed extension accepts, if it is not this one.
    pub fn other_program(&self) -> Option<PathBuf> {
        let named = self.installed()?["program"].as_str().map(PathBuf::from)?;
        (Some(&named) != self.program.as_ref()).then_some(named)
    }

    /// What the extension was installed with.
    fn installed(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&state_file::read(&self.settings())).ok()
    }

    fn settings(&self) -> PathBuf {
        self.extension().with_file_name("bridge.json")
    }

    /// The list of the homes that it was installed in.
    pub(super) fn homes(&self) -> UserHomes {
        UserHomes(self.key.with_extension("homes"))
    }

    /// Removes all files. Missing ones are no error.
    ///
    /// # Errors
    /// What cannot be removed, and why.
    pub fn remove(&self) -> anyhow::Result<()> {
        ignore_missing(std::fs::remove_dir_all(&self.marketplace), &self.marketplace)?;
        for path in [self.misread(), self.homes().0, self.key.clone()] {
            ignore_missing(std::fs::remove_file(&path), &path)?;
        }
        Ok(())
    }
}

/// The hash of this version's extension, as the extension reports its own.
pub fn hash() -> String {
    hash_of(EXTENSION)
}

fn hash_of(text: &str) -> String {
    use sha2::{Digest, Sha256};
    hex(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn files(folder: &Path) -> Files {
        let (marketplace, key) = (folder.join("data/bridge"), folder.join("state/bridge.key"));
        Files { marketplace, key, folders: vec![folder.join("run")], program: None }
    }

    #[test]
    fn writing_keeps_the_key_and_updates_the_extension_and_removing_leaves_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let files = files(scratch.path());
        files.write().unwrap();
        let key = files.key().unwrap();
        assert!(files.is_current() && key != [0; KEY_LENGTH]);
        assert!(!files.is_changed());
        std::fs::write(files.extension(), "older").unwrap();
        assert!(!files.is_current() && files.is_changed());
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

    /// `CALLS` in the extension is the complete list of its requests to Copilot.
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
            ".rpc.permissions.getMode",
            ".rpc.eventLog.tail",
            ".rpc.eventLog.read",
            ".rpc.ui.handlePendingElicitation",
            ".rpc.ui.handlePendingExitPlanMode",
            ".rpc.permissions.handlePendingPermissionRequest",
            ".connection.sendRequest",
            ".resume",
            ".", // of `session.sessionId`
        ];
        assert!(uses(list).iter().all(|one| allowed.contains(&&**one)), "{:?}", uses(list));
        assert_eq!(list.matches("sendRequest(\"session.resume\"").count(), list.matches("sendRequest(").count());
        // Elsewhere it only subscribes to events, reads the session's id, and checks that there is a connection.
        let events = [".context", ".error", ".idle", ".permissions", ".shutdown"]; // the names of some begin with "session"
        let elsewhere = [&[".on", ".", ".connection?.sendRequest"], &events[..]].concat();
        for code in [before, after] {
            assert!(uses(code).iter().all(|one| elsewhere.contains(&&**one)), "{:?}", uses(code));
        }
        assert!(
            !EXTENSION.contains("eval(") && !EXTENSION.contains("child_process") && !EXTENSION.contains("writeFile")
        );
    }
}
