//! The bridge's files on disk: a marketplace for Claude Code that holds the hook.
//!
//! Claude Code reads a marketplace that is a folder in place, so an update applies to every session started afterwards.

use super::{AGENT, EVENT, NAME, TIMEOUT};
use crate::bridge::{UserHomes, ignore_missing, pretty};
use crate::hooks::COMMAND;
use anyhow::{Context, anyhow};
use pilotlight_system::{paths, state_file};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The name of the marketplace's folder.
pub(super) const FOLDER: &str = "bridge-claude-code";

/// The paths of the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The marketplace's folder, which is given to Claude Code.
    pub marketplace: PathBuf,
    /// The list of the homes that it was installed in.
    homes: PathBuf,
    /// This program, which the hook runs.
    pub program: Option<PathBuf>,
}

/// What the hook's file says of the program that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookProgram {
    /// It runs this program, as this version has it.
    Current,
    /// It runs this program as another version had it, or the file was changed.
    Outdated,
    /// It runs another program.
    Other(PathBuf),
    /// It runs a program that is not there any more.
    Missing(PathBuf),
    /// There is no such file, or it names no program.
    None,
}

impl Files {
    /// The paths in the user's own folders.
    pub fn new(project: &paths::Folders) -> Self {
        Self {
            marketplace: paths::data_folder(project).join(FOLDER),
            homes: paths::state_folder(project).join("bridge-claude-code.homes"),
            program: paths::own_program(),
        }
    }

    /// These paths.
    pub const fn at(marketplace: PathBuf, homes: PathBuf, program: Option<PathBuf>) -> Self {
        Self { marketplace, homes, program }
    }

    /// The paths in one folder, with a program that is there.
    #[cfg(test)]
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self::at(folder.join("bridge"), folder.join("homes"), std::env::current_exe().ok())
    }

    /// Whether the user has installed it, in whatever state it is now.
    pub fn is_installed(&self) -> bool {
        !matches!(self.marketplace.try_exists(), Ok(false))
    }

    /// The list of the homes that it was installed in.
    pub(super) fn homes(&self) -> UserHomes {
        UserHomes(self.homes.clone())
    }

    /// The path of the hook's file.
    pub fn hook(&self) -> PathBuf {
        self.plugin().join("hooks/hooks.json")
    }

    fn plugin(&self) -> PathBuf {
        self.marketplace.join("plugins").join(NAME)
    }

    /// Writes whatever is missing or differs from this version.
    ///
    /// # Errors
    /// What cannot be written, and why.
    pub fn write(&self) -> anyhow::Result<()> {
        let about = "Lets Pilotlight answer what Claude Code asks in this terminal";
        let version = env!("CARGO_PKG_VERSION");
        let plugin = json!({"name": NAME, "description": about, "version": version, "author": {"name": "Pilotlight"}});
        let marketplace = json!({
            "name": NAME,
            "description": about,
            "owner": {"name": "Pilotlight"},
            "plugins": [{"name": NAME, "source": format!("./plugins/{NAME}"), "description": about, "version": version}],
        });
        for (path, text) in [
            (self.marketplace.join(".claude-plugin/marketplace.json"), pretty(&marketplace)?),
            (self.plugin().join(".claude-plugin/plugin.json"), pretty(&plugin)?),
            (self.hook(), self.hook_text()?),
        ] {
            if state_file::read(&path) != text {
                state_file::replace(&path, text.as_bytes())
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// What this version writes into the hook's file.
    fn hook_text(&self) -> anyhow::Result<String> {
        let program = self.program.as_deref().context("the system does not tell where this program is")?;
        let path = program.to_str().filter(|path| !path.contains("${")); // Claude Code replaces what it takes for variables
        let path = path.ok_or_else(|| {
            anyhow!("Claude Code cannot start a program at {}: move it to a plain path", program.display())
        })?;
        pretty(&json!({"hooks": {EVENT: [{"hooks": [
            {"type": "command", "command": path, "args": [COMMAND, AGENT], "timeout": TIMEOUT},
        ]}]}}))
    }

    /// What the hook's file says of the program that it runs.
    pub fn hook_program(&self) -> HookProgram {
        let text = state_file::read(&self.hook());
        let Some(named) = named_in(&text) else { return HookProgram::None };
        match &self.program {
            _ if !named.is_file() => HookProgram::Missing(named),
            Some(program) if *program != named => HookProgram::Other(named),
            _ if self.hook_text().is_ok_and(|ours| ours == text) => HookProgram::Current,
            _ => HookProgram::Outdated,
        }
    }

    /// Removes all files. Missing ones are no error.
    ///
    /// # Errors
    /// What cannot be removed, and why.
    pub fn remove(&self) -> anyhow::Result<()> {
        ignore_missing(std::fs::remove_dir_all(&self.marketplace), &self.marketplace)?;
        ignore_missing(std::fs::remove_file(&self.homes), &self.homes)
    }
}

/// The program that a hook's file names.
fn named_in(text: &str) -> Option<PathBuf> {
    let value: Value = serde_json::from_str(text).ok()?;
    value["hooks"][EVENT][0]["hooks"][0]["command"].as_str().map(|program| Path::new(program).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hook_runs_this_program_until_that_is_moved_or_updated() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let program = |name: &str| Some(at(name));
        std::fs::write(at("pilotlight"), "").unwrap();
        std::fs::write(at("moved"), "").unwrap();
        let files = Files { program: program("pilotlight"), ..Files::in_folder(scratch.path()) };
        assert_eq!((files.is_installed(), files.hook_program()), (false, HookProgram::None));
        files.write().unwrap();
        assert_eq!((files.is_installed(), files.hook_program()), (true, HookProgram::Current));
        let moved = Files { program: program("moved"), ..files.clone() };
        assert_eq!(moved.hook_program(), HookProgram::Other(at("pilotlight")));
        std::fs::remove_file(at("pilotlight")).unwrap();
        assert_eq!(moved.hook_program(), HookProgram::Missing(at("pilotlight")));
        moved.write().unwrap();
        assert_eq!(moved.hook_program(), HookProgram::Current);
        let text = std::fs::read_to_string(files.hook()).unwrap();
        std::fs::write(files.hook(), text.replace("86400", "600")).unwrap();
        assert_eq!(moved.hook_program(), HookProgram::Outdated);
        files.remove().unwrap();
        assert!(!files.is_installed());
        files.remove().unwrap();
    }

    #[test]
    fn the_hook_has_no_shell_and_a_day_of_time() {
        let scratch = tempfile::tempdir().unwrap();
        let files = |program| Files { program, ..Files::in_folder(scratch.path()) };
        let ours = files(Some("/opt/pilot light/pilotlight".into()));
        ours.write().unwrap();
        let hook: Value = serde_json::from_str(&std::fs::read_to_string(ours.hook()).unwrap()).unwrap();
        let expected = json!({"type": "command", "command": "/opt/pilot light/pilotlight", "args": ["hook", "claude-code"],
            "timeout": 86400});
        assert_eq!(hook, json!({"hooks": {"PermissionRequest": [{"hooks": [expected]}]}}));
        for program in [None, Some("/opt/${HOME}/pilotlight".into())] {
            assert!(files(program).write().is_err());
        }
    }
}
