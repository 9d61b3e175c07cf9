//! Live processes of agents: which home each has, where it works, and which sessions it runs, by what it shows.
//!
//! A home's own files say who runs its sessions. They do not know of a process of another home that shares the logs, and
//! they may be deleted while their process lives. Here the processes are asked instead, those of our user alone. Of their
//! environment, only [`DISCOVER`] and the variables that name the agent's home and the user's are looked for.
//!
//! The same pass finds the [homes](HomeInUse) that processes name in their environment, whether they are followed or not.

use super::adapter::Adapter;
use super::home::Home;
use pilotlight_core::time::Time;
use pilotlight_system::identity::Identity;
use pilotlight_system::process::SLACK;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that, set to `false`, keeps Pilotlight from following homes that nobody named: in its own environment, all of
/// them; in that of an agent, the home of that agent. The demo's players have it, so that no other Pilotlight shows them.
pub const DISCOVER: &str = "PILOTLIGHT_DISCOVER";

/// A live process of an agent that may run sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    pub adapter: &'static dyn Adapter,
    pub pid: u32,
    /// When it started, in the system's own unit: tells it from a later process with its id.
    pub born: u64,
    /// When it started, by the wall clock.
    pub started: Time,
    /// Its home, by a path that leads there from here. `None` if that cannot be read.
    pub home: Option<PathBuf>,
    /// The folder it works in.
    pub folder: Option<PathBuf>,
    /// The session that its command line names.
    pub named: Option<Box<str>>,
    /// By its command line, it goes on with a session that it does not name: the last one of its folder, or one of a list.
    pub continues: bool,
    /// The sessions that it claims in its own home.
    pub claims: Vec<Box<str>>,
    /// The logs that it has open, with their sessions.
    pub logs: Vec<(Box<str>, Identity)>,
    /// It runs no session of its own, or another process does that for it.
    pub is_helper: bool,
}

/// A home that a live process names in its environment, by the variable of its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeInUse {
    pub adapter: &'static dyn Adapter,
    /// Its real path.
    pub folder: PathBuf,
    pub pid: u32,
}

/// What a pass over all processes found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) runners: Vec<Runner>,
    /// At most [`IN_USE_MAX`] of them.
    pub(super) in_use: Vec<HomeInUse>,
}

/// The most homes in use that one scan tells of. A user runs a handful of agents, a test maybe hundreds.
const IN_USE_MAX: usize = 64;

/// What a process is by its program and its command line. `None`: it runs no session.
pub type RoleOf = fn(&Path, &[OsString]) -> Option<Role>;

/// What an agent knows of a process by its command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// The session that it names.
    pub named: Option<Box<str>>,
    /// It goes on with a session that it does not name.
    pub continues: bool,
    /// It runs no session of its own.
    pub is_helper: bool,
}

impl Runner {
    /// Whether it has something to do with this session, by what is known without looking at the session.
    pub(crate) fn mentions(&self, id: &str) -> bool {
        self.named.as_deref() == Some(id)
            || self.claims.iter().any(|other| **other == *id)
            || self.logs.iter().any(|(other, _)| **other == *id)
    }

    /// Whether it may have written a log at this time: it ran then, and works where the log's session does. `is_of`: whether
    /// that is this folder.
    pub(crate) fn may_have_written(&self, written: Time, is_of: impl FnOnce(&Path) -> bool) -> bool {
        !self.is_helper && self.started <= written + SLACK && self.folder.as_deref().is_none_or(is_of)
    }

    /// Whether its home has this log, too. One whose home cannot be read may have it.
    pub(crate) fn shares(&self, root: &Path, log: &Path) -> bool {
        let sessions = self.adapter.profile().sessions;
        self.home.as_deref().is_none_or(|home| shares(&home.join(sessions), root, log))
    }
}

/// Whether a folder of logs and another one with this log in it are one, or have this log in common: by a link, a mount, or
/// a link to one of the folders in between.
pub(super) fn shares(other: &Path, root: &Path, log: &Path) -> bool {
    let is_one = |one: &Path, other: &Path| identity(one).is_some_and(|one| identity(other) == Some(one));
    is_one(other, root) || log.strip_prefix(root).is_ok_and(|rest| is_one(&other.join(rest), log))
}

/// The file or folder that a path leads to.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|meta| Identity::of(&meta))
}

/// The processes that may run sessions of these sources' agents, and the homes in use of the `sought` agents. `now` is the wall
/// clock.
#[cfg(target_os = "linux")]
pub(super) fn scan(homes: &[&Home], sought: &[&'static dyn Adapter], now: Time) -> Scan {
    use super::adapter::ADAPTERS;
    use super::fingerprint::scripts;
    use super::program_file::is_node;
    use pilotlight_system::mounts::Mounts;
    use pilotlight_system::process::{arguments, births, executable, folder_of, is_of_our_user};
    use std::cell::OnceCell;
    use std::collections::HashSet;
    let is_followed = |adapter: &'static dyn Adapter| homes.iter().any(|home| home.adapter() == adapter);
    let role_of = |adapter: &'static dyn Adapter| adapter.role().filter(|_| is_followed(adapter));
    let adapters: Vec<_> =
        ADAPTERS.iter().copied().filter(|it| role_of(*it).is_some() || sought.contains(it)).collect();
    if adapters.is_empty() {
        return Scan::default();
    }
    let (birth, mounts) = (births(now), OnceCell::new());
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut in_use: Vec<HomeInUse> = Vec::new();
    let runner = |pid: u32| {
        let program = executable(pid)?;
        let scripts = scripts(&program, || arguments(pid));
        let is_its = |adapter: &&'static dyn Adapter| {
            adapter.profile().fingerprint.as_ref().is_some_and(|its| its.is_of(&program, scripts.as_deref()))
        };
        let is_local = || mounts.get_or_init(Mounts::read).of(&program).is_none();
        let is_in = |adapter: &&'static dyn Adapter| {
            // Where it is not used, no program is opened to see whether it is this one by another name.
            let fingerprint = adapter.profile().fingerprint.as_ref().filter(|_| is_followed(*adapter));
            fingerprint.is_some_and(|its| its.is_in_file_of(pid, is_local))
        };
        let adapter = *adapters.iter().find(|it| is_its(it)).or_else(|| adapters.iter().find(|it| is_in(it)))?;
        if pid == std::process::id() || !is_of_our_user(pid) {
            return None;
        }
        if sought.contains(&adapter)
            && in_use.len() < IN_USE_MAX
            && let Some(folder) = named_home(pid, adapter, mounts.get_or_init(Mounts::read))
            && !in_use.iter().any(|known| known.adapter == adapter && known.folder == folder)
        {
            in_use.push(HomeInUse { adapter, folder, pid });
        }
        let Role { named, continues, is_helper } = role_of(adapter)?(&program, &arguments(pid)?)?;
        let (birth, folder) = (birth(pid)?, folder_of(pid));
        // Nothing may wait for a file system that does not answer.
        let is_local = |home: &PathBuf| mounts.get_or_init(Mounts::read).of(&home.join("any")).is_none();
        let home = home_of(pid, adapter, folder.as_deref()).filter(is_local);
        let mut runner = Runner {
            adapter,
            pid,
            born: birth.ticks,
            started: birth.at,
            home,
            folder,
            named,
            continues,
            claims: Vec::new(),
            logs: Vec::new(),
            is_helper,
        };
        adapter.complete(&mut runner);
        Some((runner, is_node(&program), birth.parent))
    };
    let found: Vec<_> = pids.filter_map(runner).collect();
    // A package manager's launcher has the command line of the program that it started, and ends with it.
    let parents: HashSet<u32> = found.iter().filter(|(_, is_node, _)| !is_node).map(|(.., parent)| *parent).collect();
    let is_kept = |(runner, is_node, _): &(Runner, bool, u32)| !is_node || !parents.contains(&runner.pid);
    let runners = found.into_iter().filter(is_kept).map(|(runner, ..)| runner).collect();
    Scan { runners, in_use }
}

/// The processes that may run sessions, and the homes in use: this system does not show enough of them.
#[cfg(not(target_os = "linux"))]
pub(super) fn scan(_: &[&Home], _: &[&'static dyn Adapter], _: Time) -> Scan {
    Scan::default()
}

/// The home that a process names by its agent's variable, by its real path, if that is a folder of our user's here. A relative
/// one means another folder to whoever starts it elsewhere. What runs in a container or a sandbox does not tell us what to
/// follow: a tool that may write only to `/tmp` could make up a home there, which is started from outside of the sandbox when
/// one of its sessions is resumed.
#[cfg(target_os = "linux")]
fn named_home(pid: u32, adapter: &'static dyn Adapter, mounts: &pilotlight_system::mounts::Mounts) -> Option<PathBuf> {
    use pilotlight_system::process::{is_as_free, variables};
    let variable = adapter.profile().home_variable;
    let variables = variables(pid, &[variable, DISCOVER])?;
    let value = |name: &str| variables.iter().find(|(is, _)| is == name).map(|(_, value)| value);
    let named = PathBuf::from(value(variable)?);
    if !named.is_absolute() || value(DISCOVER).is_some_and(|value| value == "false") || !is_as_free(pid) {
        return None;
    }
    // Nothing may wait for a file system that does not answer.
    let folder = mounts.resolve(&named).ok().filter(|folder| mounts.of(&folder.join("any")).is_none())?;
    // `/proc/self` is another folder for each process, and none of them is a home.
    if folder.starts_with("/proc") {
        return None;
    }
    is_own_folder(&folder).then_some(folder)
}

/// Whether this is a folder of our user's, itself and not by a link.
#[cfg(unix)]
pub(super) fn is_own_folder(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir() && meta.uid() == own)
}

/// Whether this is a folder of our user's: the system does not tell.
#[cfg(not(unix))]
pub(super) fn is_own_folder(_: &Path) -> bool {
    false
}

/// The home of a process, by its environment. In another mount namespace, a path may mean another folder.
#[cfg(target_os = "linux")]
fn home_of(pid: u32, adapter: &'static dyn Adapter, folder: Option<&Path>) -> Option<PathBuf> {
    use pilotlight_system::process::{sees_same, variables};
    let profile = adapter.profile();
    let variables = variables(pid, &[profile.home_variable, "HOME"])?;
    let home = home_in(&variables, profile.home_variable, profile.home)?;
    let home = folder.map_or_else(|| home.clone(), |folder| folder.join(&home));
    let home = home.is_absolute().then_some(home)?;
    match sees_same(pid, &home.join(profile.sessions)) {
        Some(false) => Some(Path::new(&format!("/proc/{pid}/root")).join(home.strip_prefix("/").ok()?)),
        _ => Some(home),
    }
}

/// The home that these variables name: by `variable`, or else where it usually is.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux shows environments"))]
pub(super) fn home_in(variables: &[(OsString, OsString)], variable: &str, usual: &str) -> Option<PathBuf> {
    let set = |name: &str| variables.iter().find(|(is, value)| is == name && !value.is_empty()).map(|(_, value)| value);
    set(variable).map(PathBuf::from).or_else(|| Some(Path::new(set("HOME")?).join(usual)))
}

/// Whether a process was not started as one of the tools that are the same file as its program, by whatever name else: a link
/// may have any.
pub(super) fn is_itself(arguments: &[OsString], tools: &[&str]) -> bool {
    let called = arguments.first().map(Path::new).and_then(Path::file_name);
    called.is_none_or(|called| tools.iter().all(|tool| called != *tool))
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
