//! How the bridges into terminals are installed: as plugins, with the agents' own commands, or as one file where an agent has
//! no such command. Each agent that has one gives an [`Installer`]. What a bridge then reports and does is in
//! [`crate::control::Bridges`] and [`crate::channel::Bridge`].

use crate::adapter::{ADAPTERS, Adapter};
use crate::home::{Home, homes_of};
use crate::opencode::OpenCode;
use anyhow::Context;
use pilotlight_core::time::Time;
use pilotlight_system::state_file::{self, Unusable};
use pilotlight_system::{descriptors, paths};
use serde::Serialize;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// How long one command of an agent may take. It takes a second, and many times that on a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);
/// The version of the format of the list of homes. Version 0 was the list alone.
const HOMES_VERSION: u32 = 1;

/// Whether the bridge is installed in a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Installed {
    /// It is not installed.
    No,
    /// New sessions start it.
    Yes,
    /// It was switched off in the agent: this plugin, or all of its kind.
    SwitchedOff,
    /// An organisation's policy forbids it.
    Forbidden,
    /// It is installed from another folder: another user's data folder, or one that was moved.
    Elsewhere,
    /// It cannot be: the home has something else of the same name.
    Foreign,
    /// Unknown: the agent's settings cannot be read.
    Unreadable,
}

/// Installs and removes the bridge of an agent.
pub trait Installer: fmt::Debug + Send + Sync {
    /// The agent.
    fn adapter(&self) -> &'static dyn Adapter;

    /// What the bridge is and what it costs, for the user's consent.
    fn about(&self) -> &'static str;

    /// The homes of the agent that are used, of these or beside them. `are_named`: the user has named these.
    fn used(&self, homes: &[Home], _are_named: bool) -> Vec<PathBuf> {
        homes_of(self.adapter(), homes)
    }

    /// What is to be known of a home before anything is changed there.
    fn remarks(&self, home: &Path) -> Vec<String> {
        let losses =
            self.losses(home).into_iter().map(|loss| format!("settings.json will lose something there: {loss}"));
        let others = self.others(home).into_iter().map(|other| format!("another program also answers there: {other}"));
        losses.chain(others).collect()
    }

    /// What a home's settings lose when the agent writes them anew.
    fn losses(&self, _home: &Path) -> Vec<String> {
        Vec::new()
    }

    /// What a home's settings have besides the bridge, as far as the agent is to keep that when it writes them anew.
    fn kept(&self, _home: &Path) -> Map<String, Value> {
        Map::new()
    }

    /// The other programs that a home has answer what the agent asks.
    fn others(&self, _home: &Path) -> Vec<String> {
        Vec::new()
    }

    /// The file in which an organisation may forbid it.
    fn policy(&self) -> PathBuf;

    /// How it is switched on again.
    fn to_switch_on(&self) -> &'static str;

    /// What stays when it is removed.
    fn what_stays(&self) -> &'static str;

    /// Whether a home's settings enable the bridge.
    fn installed(&self, home: &Path) -> Installed;

    /// Where a marketplace of a home comes from that has the name of ours and is not ours: it is left alone.
    fn foreign(&self, _home: &Path) -> Option<String> {
        None
    }

    /// When it was installed in a home, of an agent whose sessions show their bridge only while they ask: older ones may not
    /// have it.
    fn installed_at(&self, _home: &Path) -> Option<Time> {
        None
    }

    /// The agent's commands that install or reinstall it in a home, as argument lists.
    fn to_install(&self, home: &Path) -> Vec<Vec<String>>;

    /// The agent's commands that remove it from a home; none where it is not installed.
    fn to_remove(&self, home: &Path) -> Vec<Vec<String>>;

    /// The one file of ours that is put into a home, for an agent without commands that install it.
    fn file(&self, _home: &Path) -> Option<PathBuf> {
        None
    }

    /// Puts that file there.
    ///
    /// # Errors
    /// It cannot be written, or another file has its name.
    fn put(&self, _home: &Path) -> anyhow::Result<()> {
        Ok(())
    }

    /// Removes that file, if it is ours.
    ///
    /// # Errors
    /// It cannot be removed.
    fn take(&self, _home: &Path) -> anyhow::Result<()> {
        Ok(())
    }

    /// What stays if this command fails, where that is nothing but a setting without effect.
    fn tidies(&self, _command: &[String]) -> Option<&'static str> {
        None
    }

    /// The entries to take out of the settings by hand, if the home still names the bridge after these commands.
    fn by_hand(&self, _home: &Path) -> Option<&'static str> {
        None
    }

    /// The folder of our own files that is given to the agent.
    fn folder(&self) -> &Path;

    /// The file of ours that changes with its version.
    fn main_file(&self) -> PathBuf;

    /// Writes our own files where they are missing or of another version.
    ///
    /// # Errors
    /// What cannot be written, and why.
    fn write(&self) -> anyhow::Result<()>;

    /// Removes our own files. Missing ones are no error.
    ///
    /// # Errors
    /// What cannot be removed, and why.
    fn remove(&self) -> anyhow::Result<()>;

    /// Whether the user has installed it, in whatever state it is now.
    fn is_installed(&self) -> bool;

    /// Whether our own files are those of this version.
    fn is_current(&self) -> bool;

    /// Whether our own files were changed since they were written, by whatever version.
    fn is_changed(&self) -> bool {
        false
    }

    /// The list of the homes that it was installed in.
    fn homes(&self) -> UserHomes;

    /// Says after an installation what the user has to do.
    fn what_next(&self) -> &'static str;
}

/// The bridges that can be installed.
pub fn installers(project: &paths::Folders) -> Vec<Box<dyn Installer>> {
    let all = ADAPTERS.iter().copied().chain([&OpenCode as &dyn Adapter]);
    all.filter_map(|adapter| adapter.installer(project)).collect()
}

/// What installs the bridge of the agent with this name.
pub fn installer_of(agent: &str, project: &paths::Folders) -> Option<Box<dyn Installer>> {
    installers(project).into_iter().find(|installer| installer.adapter().name() == agent)
}

/// The file that lists the homes in which a bridge was installed, as far as is known: they may still refer to our files.
#[derive(Clone, Debug)]
pub struct UserHomes(pub(crate) PathBuf);

impl UserHomes {
    /// Returns the homes.
    pub fn all(&self) -> Vec<PathBuf> {
        self.read().unwrap_or_default()
    }

    /// Remembers that it is being installed in these homes.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn add(&self, homes: &[PathBuf]) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", self.0.display());
        let mut all = match self.read() {
            Err(later @ Unusable::Later(_)) => return Err(later).with_context(cannot),
            homes => homes.unwrap_or_default(),
        };
        all.extend(homes.iter().filter(|home| !all.contains(home)).cloned().collect::<Vec<_>>());
        state_file::replace(&self.0, &state_file::text_of(HOMES_VERSION, &all)?).with_context(cannot)
    }

    fn read(&self) -> Result<Vec<PathBuf>, Unusable> {
        state_file::parse(&state_file::read(&self.0), HOMES_VERSION)
    }
}

/// The variables for a command of an agent in a home: none if the agent uses that home by default.
pub fn environment(adapter: &dyn Adapter, home: &Path) -> Vec<(OsString, OsString)> {
    let profile = adapter.profile();
    let inherited = std::env::var_os(profile.home_variable);
    crate::starting::env(profile, home, paths::user_home().as_deref(), inherited.as_deref())
}

/// Runs a command of an agent for a home. Returns its warnings.
///
/// # Errors
/// The output of a failed command, or why it did not run to its end.
pub async fn run(
    adapter: &dyn Adapter,
    program: &Path,
    home: &Path,
    arguments: &[String],
) -> Result<Vec<String>, String> {
    let mut command = Command::new(program);
    command.args(arguments).envs(environment(adapter, home));
    // The agents read the settings of the project that they are started in, too.
    if home.is_dir() {
        command.current_dir(home);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    descriptors::restore(command.as_std_mut());
    let failed = |why: String| format!("`{} {}` {why}", adapter.profile().program, arguments.join(" "));
    match timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) => {
            let outputs = [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).trim().to_owned());
            if output.status.success() {
                let lines = outputs.iter().flat_map(|text| text.lines());
                return Ok(lines.filter_map(|line| line.strip_prefix('⚠')).map(|line| line.trim().into()).collect());
            }
            let reason = outputs.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| output.status.to_string());
            Err(failed(format!("failed: {reason}")))
        }
        Ok(Err(error)) => Err(failed(format!("does not start: {error}"))),
        Err(_) => Err(failed(format!("did not end within {} s", PATIENCE.as_secs()))),
    }
}

/// Treats the removal of a missing file as a success.
pub(crate) fn ignore_missing(removed: std::io::Result<()>, path: &Path) -> anyhow::Result<()> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Where a home's marketplace of our name comes from, if it is not ours, that is: neither our folder, nor one with the name of
/// ours, which was moved or is another user's.
pub(crate) fn foreign(marketplace: &Value, folder: &Path, name: &str) -> Option<String> {
    let source = &marketplace["source"];
    let path = source["path"].as_str().map(Path::new);
    let is_ours = path.is_some_and(|path| path == folder || path.has_root() && path.ends_with(name));
    let is_foreign = !marketplace.is_null() && !is_ours;
    let place = ["repo", "url", "path"].iter().find_map(|key| source[*key].as_str());
    is_foreign.then(|| place.map_or_else(|| source.to_string(), str::to_owned))
}

/// A command's words.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.into()).collect()
}

/// JSON as people read it.
pub(crate) fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
