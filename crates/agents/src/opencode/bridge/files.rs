//! The plugin's file in opencode's config folder. opencode has no command that installs a plugin which is a file: it loads those
//! in the folder `plugins` when it starts. So this one file is written here, and removed.

use crate::adapter::Adapter;
use crate::bridge::{Installed, Installer, UserHomes, ignore_missing};
use crate::home::Home;
use crate::opencode::OpenCode;
use anyhow::{Context, ensure};
use pilotlight_system::{paths, state_file};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The plugin, but for its first line.
const PLUGIN: &str = include_str!("plugin.js");
/// What stands there for the program that it starts, with its quotes.
const PLACE: &str = "\"@PROGRAM@\"";
/// How the line begins that names the program.
const NAMES_PROGRAM: &str = "const PROGRAM = ";
/// How the first line begins. The rest of it is the SHA-256 of all other lines.
const HEAD: &str = "// Pilotlight's bridge. `pilotlight bridge remove` removes this file. SHA-256 of what follows: ";
/// The file in opencode's config folder. Its recipe in docs/hooks.md has the same name, so that a session is reported once.
const FILE: &str = "plugins/pilotlight.js";

/// The paths of the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// opencode's config folder.
    home: PathBuf,
    /// The list of the config folders that it was installed in.
    homes: PathBuf,
    /// This program, which the plugin starts.
    program: Option<PathBuf>,
}

/// What the plugin's file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginFile {
    /// It starts this program, as this version has it.
    Current,
    /// It starts this program as another version had it.
    Outdated,
    /// It was changed since it was written.
    Changed,
    /// It starts another program.
    Other(PathBuf),
    /// It starts a program that is not there any more.
    Missing(PathBuf),
    /// It is the user's own.
    Users,
    /// There is none.
    None,
}

impl Files {
    /// The paths in the user's own folders.
    pub fn new(project: &paths::Folders) -> Self {
        let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let config = named.or_else(|| paths::user_home().map(|home| home.join(".config"))).unwrap_or_default();
        let homes = paths::state_folder(project).join("bridge-opencode.homes");
        Self { home: config.join("opencode"), homes, program: paths::own_program() }
    }

    /// These paths.
    pub const fn at(home: PathBuf, homes: PathBuf, program: Option<PathBuf>) -> Self {
        Self { home, homes, program }
    }

    /// What this version writes.
    fn text(&self) -> anyhow::Result<String> {
        let program = self.program.as_deref().context("the system does not tell where this program is")?;
        let path = program.to_str().with_context(|| {
            format!("opencode cannot start a program at {}: move it to a plain path", program.display())
        })?;
        let plugin = PLUGIN.replacen(PLACE, &serde_json::to_string(path)?, 1);
        Ok(format!("{HEAD}{}\n{plugin}", hash_of(&plugin)))
    }

    /// What the plugin's file in this config folder is.
    pub fn plugin_file(&self, home: &Path) -> PluginFile {
        let path = home.join(FILE);
        match std::fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return PluginFile::None,
            // What is no file, or cannot be seen, is not ours.
            Ok(_) | Err(_) => return PluginFile::Users,
        }
        let text = state_file::read(&path);
        let Some((hash, plugin)) = text.strip_prefix(HEAD).and_then(|text| text.split_once('\n')) else {
            return PluginFile::Users;
        };
        if hash != hash_of(plugin) {
            return PluginFile::Changed;
        }
        match program_in(plugin) {
            Some(named) if !named.is_file() => PluginFile::Missing(named),
            Some(named) if self.program.as_ref().is_some_and(|program| *program != named) => PluginFile::Other(named),
            _ if self.text().is_ok_and(|ours| ours == text) => PluginFile::Current,
            _ => PluginFile::Outdated,
        }
    }

    /// Whether the plugin's file in this config folder is ours, whatever it is like.
    fn is_ours(&self, home: &Path) -> bool {
        !matches!(self.plugin_file(home), PluginFile::None | PluginFile::Users)
    }

    /// opencode's config folder, and those that it was installed in.
    fn all_homes(&self) -> Vec<PathBuf> {
        let mut all = self.homes().all();
        if !all.iter().any(|home| paths::is_same(home, &self.home)) {
            all.insert(0, self.home.clone());
        }
        all
    }
}

/// The program that a plugin names.
fn program_in(plugin: &str) -> Option<PathBuf> {
    let named = plugin.lines().find_map(|line| line.strip_prefix(NAMES_PROGRAM))?;
    let named: Value = serde_json::from_str(named).ok()?;
    named.as_str().map(PathBuf::from)
}

fn hash_of(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}"); // a text can always be written to
        hash
    })
}

const ABOUT: &str = "\
The bridge lets Pilotlight show what opencode's sessions do, and answer what they ask you.
- It is a plugin: a file in opencode's config folder. opencode loads it in sessions that are started from now on
- The plugin starts Pilotlight when a session begins to work, asks you something or is done, and passes on what it asks: the command, the change of a file
- The dialog in the terminal stays, and the first answer counts. Pilotlight answers nothing without your click
- `pilotlight bridge remove` deletes that file. Running sessions keep the plugin until they end, but it has no effect";

const WHAT_STAYS: &str = "\
What stays: the folder \"plugins\" in opencode's config folder, empty if nothing else is in it. Running sessions keep the plugin until they end, but it has no effect.";

impl Installer for Files {
    fn adapter(&self) -> &'static dyn Adapter {
        &OpenCode
    }

    fn about(&self) -> &'static str {
        ABOUT
    }

    /// A home that is named is another agent's.
    fn used(&self, _homes: &[Home], are_named: bool) -> Vec<PathBuf> {
        let is_used = !are_named && self.home.is_dir();
        is_used.then(|| self.home.clone()).into_iter().collect()
    }

    fn remarks(&self, home: &Path) -> Vec<String> {
        let is_changed = self.plugin_file(home) == PluginFile::Changed;
        let said = format!("{FILE} was changed since it was written: the changes will be lost");
        is_changed.then_some(said).into_iter().collect()
    }

    fn policy(&self) -> PathBuf {
        self.home.clone()
    }

    fn to_switch_on(&self) -> &'static str {
        "start it without `--pure`"
    }

    fn what_stays(&self) -> &'static str {
        WHAT_STAYS
    }

    fn installed(&self, home: &Path) -> Installed {
        if self.is_ours(home) { Installed::Yes } else { Installed::No }
    }

    fn to_install(&self, _home: &Path) -> Vec<Vec<String>> {
        Vec::new()
    }

    fn to_remove(&self, _home: &Path) -> Vec<Vec<String>> {
        Vec::new()
    }

    fn file(&self, home: &Path) -> Option<PathBuf> {
        Some(home.join(FILE))
    }

    fn put(&self, home: &Path) -> anyhow::Result<()> {
        let path = home.join(FILE);
        ensure!(
            self.plugin_file(home) != PluginFile::Users,
            "{} is not Pilotlight's, and was left as it is: move it away, and run this again. The bridge also reports all that the plugin in docs/hooks.md does",
            path.display()
        );
        state_file::replace(&path, self.text()?.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    }

    fn take(&self, home: &Path) -> anyhow::Result<()> {
        if !self.is_ours(home) {
            return Ok(());
        }
        let path = home.join(FILE);
        ignore_missing(std::fs::remove_file(&path), &path)
    }

    fn folder(&self) -> &Path {
        &self.home
    }

    fn main_file(&self) -> PathBuf {
        self.home.join(FILE)
    }

    /// Where it is installed.
    fn write(&self) -> anyhow::Result<()> {
        self.all_homes().iter().filter(|home| self.is_ours(home)).try_for_each(|home| self.put(home))
    }

    fn remove(&self) -> anyhow::Result<()> {
        ignore_missing(std::fs::remove_file(&self.homes), &self.homes)
    }

    fn is_installed(&self) -> bool {
        self.all_homes().iter().any(|home| self.is_ours(home))
    }

    fn is_current(&self) -> bool {
        self.plugin_file(&self.home) == PluginFile::Current
    }

    fn is_changed(&self) -> bool {
        self.plugin_file(&self.home) == PluginFile::Changed
    }

    fn homes(&self) -> UserHomes {
        UserHomes(self.homes.clone())
    }

    fn what_next(&self) -> &'static str {
        "the bridge is on: it covers opencode's sessions that are started from now on"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path, program: &str) -> Files {
        std::fs::write(folder.join(program), "").unwrap();
        Files::at(folder.join("opencode"), folder.join("homes"), Some(folder.join(program)))
    }

    #[test]
    fn case_785_the_plugin_is_one_file_that_comes_and_goes() {
        let scratch = tempfile::tempdir().unwrap();
        let files = files(scratch.path(), "pilot \"light\"");
        let home = files.home.clone();
        assert!(files.used(&[], false).is_empty(), "opencode is not used here");
        std::fs::create_dir(&home).unwrap();
        assert_eq!((files.used(&[], false), files.used(&[], true)), (vec![home.clone()], vec![]));
        assert_eq!((files.plugin_file(&home), files.is_installed()), (PluginFile::None, false));
        files.put(&home).unwrap();
        assert_eq!((files.plugin_file(&home), files.installed(&home)), (PluginFile::Current, Installed::Yes));
        assert!(files.is_installed() && files.is_current() && !files.is_changed());
        let text = std::fs::read_to_string(home.join(FILE)).unwrap();
        assert!(!text.contains('@') && text.contains("pilot \\\"light\\\"\"\n"), "{text}");
        files.take(&home).unwrap();
        files.take(&home).unwrap();
        assert_eq!((files.plugin_file(&home), files.is_installed()), (PluginFile::None, false));
        let left = std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!(left, ["plugins"]);
        assert!(files.what_stays().contains("the folder \"plugins\""));
        assert_eq!(std::fs::read_dir(home.join("plugins")).unwrap().count(), 0);
    }

    #[test]
    fn case_785_a_file_of_the_users_own_is_neither_replaced_nor_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let files = files(scratch.path(), "pilotlight");
        let (home, path) = (files.home.clone(), files.home.join(FILE));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let kept = |what: &str| {
            assert_eq!(
                (files.plugin_file(&home), files.installed(&home)),
                (PluginFile::Users, Installed::No),
                "{what}"
            );
            let why = files.put(&home).unwrap_err().to_string();
            assert!(why.contains("is not Pilotlight's, and was left as it is: move it away"), "{why}");
            files.take(&home).unwrap();
            assert!(!files.is_installed() && path.symlink_metadata().is_ok(), "{what}");
        };
        std::fs::write(&path, "export const Mine = async () => ({})\n").unwrap();
        kept("a file");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "export const Mine = async () => ({})\n");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        kept("a folder");
        std::fs::remove_dir(&path).unwrap();
        #[cfg(unix)]
        {
            std::fs::write(scratch.path().join("dotfile"), files.text().unwrap()).unwrap();
            std::os::unix::fs::symlink(scratch.path().join("dotfile"), &path).unwrap();
            kept("a link");
        }
    }

    #[test]
    fn case_786_a_plugin_that_was_changed_or_whose_program_has_moved_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let files = files(scratch.path(), "pilotlight");
        let home = files.home.clone();
        let path = home.join(FILE);
        files.put(&home).unwrap();
        let moved = Files { program: Some(scratch.path().join("moved")), ..files.clone() };
        assert_eq!(moved.plugin_file(&home), PluginFile::Other(scratch.path().join("pilotlight")));
        std::fs::remove_file(scratch.path().join("pilotlight")).unwrap();
        assert_eq!(moved.plugin_file(&home), PluginFile::Missing(scratch.path().join("pilotlight")));
        std::fs::write(scratch.path().join("pilotlight"), "").unwrap();
        let text = files.text().unwrap();
        std::fs::write(&path, text.replace("\"once\"", "\"always\"")).unwrap();
        assert_eq!(files.plugin_file(&home), PluginFile::Changed);
        assert!(files.is_changed() && !files.is_current() && files.is_installed());
        assert!(files.remarks(&home)[0].contains("was changed since it was written"));
        let (_, plugin) = text.split_once('\n').unwrap();
        let older = plugin.replace("60_000", "30_000");
        std::fs::write(&path, format!("{HEAD}{}\n{older}", hash_of(&older))).unwrap();
        assert_eq!((files.plugin_file(&home), files.remarks(&home)), (PluginFile::Outdated, vec![]));
        files.put(&home).unwrap();
        assert_eq!(files.plugin_file(&home), PluginFile::Current);
        std::fs::write(&path, format!("{text}\n")).unwrap();
        files.take(&home).unwrap();
        assert_eq!(files.plugin_file(&home), PluginFile::None, "it goes, as was said");
    }

    /// What it does to opencode is in one place: it replies to a request or a question.
    #[test]
    fn case_787_the_plugin_calls_nothing_of_opencode_but_the_two_replies() {
        let known = [
            "{ client, directory }",
            "opencode's client that is used.",
            "typeof client?._client?.post === \"function\"",
            "client._client.post({ url: `/${kind}/{requestID}/reply`, path: { requestID }, body, headers })",
        ];
        let rest = known.iter().fold(PLUGIN.to_owned(), |rest, known| {
            assert_eq!(rest.matches(known).count(), 1, "{known}");
            rest.replacen(known, "", 1)
        });
        assert!(!rest.contains("client"), "{rest}");
        assert_eq!(PLUGIN.matches("ask(type.split(\".\")[0], properties)").count(), 1, "where its kind comes from");
        assert_eq!(PLUGIN.matches("spawn(PROGRAM, ").count(), PLUGIN.matches("spawn(").count());
        for other in ["always", "fetch", "eval", "import(", "serverUrl", "writeFile", "process.env"] {
            assert!(!PLUGIN.contains(other), "{other}");
        }
    }
}
