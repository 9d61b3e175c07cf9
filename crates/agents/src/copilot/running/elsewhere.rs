//! The search on macOS and Windows, through `sysinfo`, which lists every process to find some.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::{Program, home_of};
use crate::copilot::identity::runs_copilot;
use crate::program_file::is_node;
use pilotlight_core::time::{Span, Time};
use pilotlight_system::process::with_real_scripts;

/// The processes that are still to be checked: one listing by the system, which cannot be interrupted.
#[derive(Debug)]
pub(super) struct Rest;

impl Rest {
    pub(super) const fn all() -> Self {
        Self
    }

    /// Checks all processes, and so returns `true`: none are left.
    pub(super) fn check(&mut self, found: &mut Vec<Program>, names: &[String], _: Time, _: Option<Instant>) -> bool {
        if let Ok(mut system) = System::new() {
            let kind = ProcessRefreshKind::nothing()
                .with_exe(UpdateKind::Always)
                .with_cmd(UpdateKind::Always)
                .with_cwd(UpdateKind::Always)
                .with_environ(UpdateKind::Always);
            system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
            found.extend(system.processes().values().filter_map(|process| program(process, names)));
        }
        true
    }
}

fn program(process: &Process, names: &[String]) -> Option<Program> {
    let pid = process.pid().as_u32();
    let executable = process.exe().map_or_else(|| PathBuf::from(process.name()), Path::to_path_buf);
    let arguments = process.cmd().to_vec();
    let with_scripts = || (!arguments.is_empty()).then(|| with_real_scripts(arguments.clone(), process.cwd()));
    if pid == std::process::id() || runs_copilot(&executable, names, with_scripts) != Some(true) {
        return None;
    }
    let variable = |name: &str| -> Option<OsString> {
        let set = process.environ().iter().filter_map(|set| set.to_str()?.split_once('='));
        set.into_iter().find(|(set, _)| *set == name).map(|(_, value)| value.into())
    };
    let seconds = i64::try_from(process.start_time()).ok().filter(|seconds| *seconds > 0);
    Some(Program {
        pid,
        inside: None,
        born: process.start_time(),
        parent: process.parent().map_or(0, Pid::as_u32),
        started: seconds.and_then(|seconds| seconds.checked_mul(1000)).map(|at| Time(0) + Span(at)),
        // The environment of another user's process cannot be read.
        hidden: process.environ().is_empty(),
        homes: home_of(variable, process.cwd()).into_iter().collect(),
        folder: process.cwd().map(Into::into),
        arguments,
        log: None,
        is_script: is_node(&executable),
    })
}
