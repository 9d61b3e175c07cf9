//! The same by `/proc`: a link for each process tells its executable, and only of a Copilot more is read.

use super::super::hold::linux::{home_of as kept_in, without_deleted};
use super::super::platform::{Birth, arguments, births, executable, variables};
use super::super::{is_named, runs_copilot};
use super::{Program, home_of};
use crate::agent::copilot::opened::names_copilot;
use crate::core::time::Time;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The processes that are still to be looked at.
#[derive(Debug)]
pub(super) struct Rest(Option<fs::ReadDir>);

impl Rest {
    pub(super) fn all() -> Self {
        Self(fs::read_dir("/proc").ok())
    }

    /// Looks at the next ones, at one at least. Whether those were all.
    pub(super) fn look(
        &mut self,
        found: &mut Vec<Program>,
        names: &[String],
        now: Time,
        until: Option<Instant>,
    ) -> bool {
        let birth = births(now);
        while let Some(entry) = self.0.as_mut().and_then(Iterator::next) {
            let pid = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse().ok());
            let Some(pid) = pid.filter(|pid| *pid != std::process::id()) else { continue };
            found.extend(program(pid, names, &birth));
            if until.is_some_and(|until| until <= Instant::now()) {
                return false;
            }
        }
        true
    }
}

fn program(pid: u32, names: &[String], birth: impl Fn(u32) -> Option<Birth>) -> Option<Program> {
    let (executable, hidden) = match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(_) => (executable(pid)?, false),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => (PathBuf::new(), true),
        Err(_) => return None, // a thread of the kernel, or it has just ended
    };
    let is_copilot = if hidden {
        arguments(pid).is_some_and(|arguments| names_copilot(&arguments))
    } else {
        runs_copilot(&executable, names, || arguments(pid)) == Some(true)
    };
    if !is_copilot {
        return None;
    }
    let birth = birth(pid)?;
    let is_node = executable.file_name().is_some_and(|name| is_named(name, "node") || is_named(name, "nodejs"));
    let (kept, log) = open_files(pid);
    Some(Program {
        pid,
        born: birth.ticks,
        parent: birth.parent,
        started: Some(birth.at),
        arguments: arguments(pid).unwrap_or_default(),
        homes: by_environment(pid).into_iter().chain(kept).collect(),
        log,
        is_script: is_node,
        hidden,
    })
}

fn by_environment(pid: u32) -> Option<PathBuf> {
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok();
    let set: Vec<(OsString, OsString)> = variables(pid, &["COPILOT_HOME", "HOME"])?;
    let variable = |name: &str| set.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone());
    home_of(variable, folder.as_deref())
}

/// The homes of the files that a Copilot keeps open, and its log.
fn open_files(pid: u32) -> (Vec<PathBuf>, Option<PathBuf>) {
    let (mut homes, mut log) = (Vec::new(), None);
    let ending = format!("-{pid}.log");
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let Ok(link) = fs::read_link(entry.path()) else { continue };
        let (link, _) = without_deleted(&link);
        let Some(name) = link.file_name().and_then(|name| name.to_str()) else { continue };
        if name.starts_with("process-") && name.ends_with(&ending) {
            // By way of the process: it may have been removed.
            log = Some(entry.path());
        } else if let Some(home) = kept_in(&link).map(Path::to_owned).filter(|home| !homes.contains(home)) {
            homes.push(home);
        }
    }
    (homes, log)
}
