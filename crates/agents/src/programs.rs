//! The files of agents' programs. Whoever starts an agent opens one of them, long before the new process writes anything.

use super::adapter::Adapter;
use super::fingerprint::scripts;
use super::home::Home;
use super::program_file::is_script_of;
use super::starting;
use pilotlight_system::mounts::Mounts;
use pilotlight_system::paths::user_home;
#[cfg(target_os = "linux")]
use pilotlight_system::process::sees_same;
use pilotlight_system::process::{arguments, executable};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The programs of these agents that are installed here, by the names that a shell finds them by. One on a file system that may
/// not answer is left out.
pub fn installed(adapters: impl Iterator<Item = &'static dyn Adapter>) -> Vec<PathBuf> {
    let (path, home, mounts) = (std::env::var_os("PATH"), user_home(), Mounts::read());
    let profiles = adapters.map(Adapter::profile).filter(|profile| !profile.program.is_empty());
    let named = profiles.flat_map(|profile| starting::candidates(profile, path.as_deref(), home.as_deref()));
    let local: BTreeSet<_> = named.filter(|program| mounts.of(program).is_none()).collect();
    local.into_iter().filter(|program| starting::is_program(program)).collect()
}

/// The programs that these processes of these sources' agents run.
pub(super) fn running(homes: &[&Home], pids: impl Iterator<Item = u32>) -> Vec<PathBuf> {
    let mounts = Mounts::read();
    let packages: Vec<_> = homes.iter().filter_map(|home| home.adapter().profile().fingerprint.as_ref()).collect();
    let is_script = |argument: &Path| packages.iter().any(|its| is_script_of(argument.as_os_str(), its.package));
    let program = |pid: u32| {
        let program = executable(pid)?;
        let Some(arguments) = scripts(&program, || arguments(pid)) else { return Some((pid, program)) };
        let script = arguments.into_iter().map(PathBuf::from).find(|argument| is_script(argument));
        script.map(|script| (pid, script))
    };
    let pids: BTreeSet<u32> = pids.collect();
    let programs = pids.into_iter().filter_map(program).filter(|(_, program)| program.is_absolute());
    let local = programs.filter(|(_, program)| mounts.of(program).is_none());
    let here = local.filter(|(pid, program)| is_here(*pid, program));
    here.map(|(_, program)| program).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a process and we see the same file there: in a container, the same path may be another one.
#[cfg(target_os = "linux")]
fn is_here(pid: u32, program: &Path) -> bool {
    sees_same(pid, program) == Some(true)
}

/// Elsewhere, containers run in a machine of their own.
#[cfg(not(target_os = "linux"))]
const fn is_here(_pid: u32, _program: &Path) -> bool {
    true
}
