//! Live processes of agents: which home each has, where it works, and which sessions it runs, by what it shows.
//!
//! A home's own files say who runs its sessions. They do not know of a process of another home that shares the logs, and
//! they may be deleted while their process lives. Here the processes are asked instead, those of our user alone. Of their
//! environment, only the variables that name the agent's home and the user's are looked for.

use super::adapter::Adapter;
use super::home::Home;
use pilotlight_core::time::Time;
use pilotlight_system::identity::Identity;
use pilotlight_system::process::SLACK;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

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

/// The processes that may run sessions of these sources' agents. `now` is the wall clock.
#[cfg(target_os = "linux")]
pub(super) fn scan(homes: &[&Home], now: Time) -> Vec<Runner> {
    use super::adapter::ADAPTERS;
    use super::fingerprint::scripts;
    use super::program_file::is_node;
    use pilotlight_system::mounts::Mounts;
    use pilotlight_system::process::{arguments, births, executable, folder_of, is_of_our_user};
    use std::cell::OnceCell;
    use std::collections::HashSet;
    let adapters: Vec<_> =
        ADAPTERS.iter().filter(|adapter| homes.iter().any(|home| home.adapter() == **adapter)).collect();
    let adapters: Vec<_> = adapters.into_iter().filter_map(|adapter| Some((*adapter, adapter.role()?))).collect();
    if adapters.is_empty() {
        return Vec::new();
    }
    let (birth, mounts) = (births(now), OnceCell::new());
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let runner = |pid: u32| {
        let program = executable(pid)?;
        let scripts = scripts(&program, || arguments(pid));
        let fingerprint = |adapter: &&'static dyn Adapter| adapter.profile().fingerprint.as_ref();
        let is_its = |adapter: &&'static dyn Adapter| {
            fingerprint(adapter).is_some_and(|its| its.is_of(&program, scripts.as_deref()))
        };
        let is_local = || mounts.get_or_init(Mounts::read).of(&program).is_none();
        let is_in =
            |adapter: &&'static dyn Adapter| fingerprint(adapter).is_some_and(|its| its.is_in_file_of(pid, is_local));
        let by_name = adapters.iter().find(|(adapter, _)| is_its(adapter));
        let (adapter, role) = by_name.or_else(|| adapters.iter().find(|(adapter, _)| is_in(adapter)))?;
        if pid == std::process::id() || !is_of_our_user(pid) {
            return None;
        }
        let Role { named, continues, is_helper } = role(&program, &arguments(pid)?)?;
        let (birth, folder) = (birth(pid)?, folder_of(pid));
        // Nothing may wait for a file system that does not answer.
        let is_local = |home: &PathBuf| mounts.get_or_init(Mounts::read).of(&home.join("any")).is_none();
        let home = home_of(pid, *adapter, folder.as_deref()).filter(is_local);
        let mut runner = Runner {
            adapter: *adapter,
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
    found.into_iter().filter(is_kept).map(|(runner, ..)| runner).collect()
}

/// The processes that may run sessions: this system does not show enough of them.
#[cfg(not(target_os = "linux"))]
pub(super) fn scan(_: &[&Home], _: Time) -> Vec<Runner> {
    Vec::new()
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
