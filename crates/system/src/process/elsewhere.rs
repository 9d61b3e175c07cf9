//! Reading processes on macOS and Windows, through `sysinfo`.
//!
//! What is missing differs. macOS lists another user's process with its path but without its start; Windows lists only
//! its name, which is enough to prove that it is another program. A process that `sysinfo` does not list may still
//! exist, so its existence is checked by the means that [`exits`](super::exits) waits with. Starts are in whole seconds
//! and by the wall clock of that time; CPU time excludes that of children that ended.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

use super::cpu::{CpuSample, Key, Usage};
use super::exits::has_ended;
use super::reading::{Family, PidStatus, SLACK};
use super::scripts::with_real_scripts;
use pilotlight_core::time::{Span, Time};

/// How long the threads of a process have run or waited to run: not known here.
pub const fn thread_times(_: u32, _: bool) -> Option<HashMap<u32, Duration>> {
    None
}

/// What the system shows of `pid`; `now` is the wall clock.
pub fn read(pid: u32, now: Time) -> PidStatus {
    // First, because it is cheap and settles most stale ids; `sysinfo` lists every process to find one.
    if has_ended(pid) {
        return PidStatus::Absent;
    }
    let system = listed(pid, ProcessRefreshKind::nothing().with_exe(UpdateKind::Always));
    let Some(process) = system.as_ref().and_then(|system| system.process(Pid::from_u32(pid))) else {
        return PidStatus::Hidden;
    };
    if matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead) {
        return PidStatus::Absent;
    }
    // A start in the future means that the clock was set back, and proves nothing.
    let started = started(process).filter(|started| *started <= now + SLACK);
    PidStatus::Process { started, executable: executable_of(process) }
}

/// The folder that the process works in: not known here.
pub const fn folder_of(_: u32) -> Option<PathBuf> {
    None
}

/// The path of the executable of `pid`, or only its file name. `None` if neither can be read.
pub fn executable(pid: u32) -> Option<PathBuf> {
    let system = listed(pid, ProcessRefreshKind::nothing().with_exe(UpdateKind::Always))?;
    executable_of(system.process(Pid::from_u32(pid))?)
}

fn executable_of(process: &Process) -> Option<PathBuf> {
    let name = || Some(PathBuf::from(process.name())).filter(|name| !name.as_os_str().is_empty());
    process.exe().map(PathBuf::from).filter(|path| path.file_name().is_some()).or_else(name)
}

/// The command line of `pid`, followed by the real paths of its scripts. `None` if it cannot be read.
pub fn arguments(pid: u32) -> Option<Vec<OsString>> {
    let kind = ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always).with_cwd(UpdateKind::Always);
    let system = listed(pid, kind)?;
    let process = system.process(Pid::from_u32(pid))?;
    let arguments = process.cmd().to_vec();
    if arguments.is_empty() { None } else { Some(with_real_scripts(arguments, process.cwd())) }
}

/// Always `false`: these systems do not show that a process is exiting.
pub const fn is_ending(_: u32) -> bool {
    false
}

/// Always `false`: on these systems, it is not checked whether a process is stopped.
pub const fn is_stopped(_: u32) -> bool {
    false
}

/// Whether the process runs as our user. `false` if that cannot be read or there is no such process.
pub fn is_of_our_user(pid: u32) -> bool {
    let user = |pid| {
        let system = listed(pid, ProcessRefreshKind::nothing().with_user(UpdateKind::Always))?;
        system.process(Pid::from_u32(pid))?.user_id().cloned()
    };
    user(pid).is_some_and(|theirs| user(std::process::id()) == Some(theirs))
}

/// Looks up the parent and the start of a process, in one listing of all processes.
pub(super) fn families() -> impl Fn(u32) -> Option<Family> {
    let mut system = System::new().ok();
    if let Some(system) = &mut system {
        system.refresh_processes_specifics(ProcessesToUpdate::All, true, ProcessRefreshKind::nothing());
    }
    move |pid| {
        let process = system.as_ref()?.process(Pid::from_u32(pid))?;
        Some(Family { parent: process.parent().map_or(0, Pid::as_u32), started: process.start_time() })
    }
}

/// Whether one of these variables is set, and not empty, in the environment that `pid` was started with. `false` if
/// that cannot be read.
pub fn is_started_with(pid: u32, names: &[&str]) -> bool {
    let system = listed(pid, ProcessRefreshKind::nothing().with_environ(UpdateKind::Always));
    let Some(process) = system.as_ref().and_then(|system| system.process(Pid::from_u32(pid))) else { return false };
    process.environ().iter().any(|variable| {
        let value = |name: &&str| variable.as_encoded_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=");
        names.iter().filter_map(value).any(|value| !value.is_empty())
    })
}

/// CPU time used so far by each descendant of `pid`: its children, their children and so on, not the process itself.
/// `None` if the process does not exist or cannot be read.
///
/// Lists all processes: take a sample when a deadline needs one, not for every event. A process that was handed to init
/// when its parent ended is no longer a descendant.
pub fn cpu_of_descendants(pid: u32) -> Option<CpuSample> {
    let mut system = System::new().ok()?;
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, ProcessRefreshKind::nothing().with_cpu());
    let key = |process: &Process| -> Key { (process.pid().as_u32(), process.start_time()) };
    let root = key(system.process(Pid::from_u32(pid))?);
    let mut children: HashMap<u32, Vec<&Process>> = HashMap::new();
    for process in system.processes().values() {
        if let Some(parent) = process.parent() {
            children.entry(parent.as_u32()).or_default().push(process);
        }
    }
    let mut found = HashMap::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent.0).unwrap_or_default() {
            let key = key(child);
            // Windows keeps the id of a dead parent and may reuse it: a child older than its parent is not its child.
            if key.1 < parent.1 {
                continue;
            }
            let own = i64::try_from(child.accumulated_cpu_time()).unwrap_or(i64::MAX);
            if found.insert(key, Usage { parent, own, waited_for: 0 }).is_none() {
                parents.push(key);
            }
        }
    }
    Some(CpuSample::new(root, found))
}

/// Always `false`: these systems do not show the ids inside containers.
pub const fn is_inside_container(_: u32) -> bool {
    false
}

fn listed(pid: u32, kind: ProcessRefreshKind) -> Option<System> {
    let mut system = System::new().ok()?;
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[Pid::from_u32(pid)]), true, kind);
    Some(system)
}

/// `None` if unknown: `sysinfo` reports 0 without access, and an absurdly large number if Windows gives none.
fn started(process: &Process) -> Option<Time> {
    let seconds = i64::try_from(process.start_time()).ok().filter(|seconds| *seconds > 0)?;
    seconds.checked_mul(1000).map(|milliseconds| Time(0) + Span(milliseconds))
}
