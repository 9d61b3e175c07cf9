//! The search on Linux. A link in `/proc` shows each process's executable; the rest is read only of a Copilot.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{Program, home_of};
use crate::copilot::identity::{names_copilot, runs_copilot};
use crate::copilot::owner::hold::home_with_open_file;
use crate::program_file::is_node;
use pilotlight_core::time::Time;
use pilotlight_system::process::{
    Birth, arguments, births, executable_link, inner_id, open_files, sees_same, variables,
};

/// The processes that are still to be checked.
#[derive(Debug)]
pub(super) struct Rest(Option<fs::ReadDir>);

impl Rest {
    pub(super) fn all() -> Self {
        Self(fs::read_dir("/proc").ok())
    }

    /// Checks the next processes, at least one. Returns whether none are left.
    pub(super) fn check(
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
    let (executable, hidden) = match executable_link(pid) {
        Ok(executable) => (executable, false),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => (PathBuf::new(), true),
        Err(_) => return None, // a kernel thread, or it has just ended
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
    let inside = Some(inner_id(pid)).filter(|inside| *inside != pid);
    let (homes_of_files, log) = open_homes_and_log(pid, inside.unwrap_or(pid));
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).ok();
    let homes: Vec<_> = home_in_environment(pid, folder.as_deref()).into_iter().chain(homes_of_files).collect();
    // In a container or a sandbox, the same path may be another home.
    let (homes, others): (Vec<_>, Vec<_>) = homes.into_iter().partition(|home| sees_same(pid, home) != Some(false));
    if homes.is_empty() && !others.is_empty() {
        return None;
    }
    Some(Program {
        pid,
        inside,
        born: birth.ticks,
        parent: birth.parent,
        started: Some(birth.at),
        arguments: arguments(pid).unwrap_or_default(),
        homes,
        folder,
        log,
        is_script: is_node(&executable),
        hidden,
    })
}

fn home_in_environment(pid: u32, folder: Option<&Path>) -> Option<PathBuf> {
    let set: Vec<(OsString, OsString)> = variables(pid, &["COPILOT_HOME", "HOME"])?;
    let variable = |name: &str| set.iter().find(|(set, _)| set == name).map(|(_, value)| value.clone());
    home_of(variable, folder)
}

/// The homes of the files that a Copilot keeps open, and its log, which has the id in its name by which it is `called` where
/// it runs.
fn open_homes_and_log(pid: u32, called: u32) -> (Vec<PathBuf>, Option<PathBuf>) {
    let (mut homes, mut log) = (Vec::new(), None);
    let ending = format!("-{called}.log");
    for file in open_files(pid).into_iter().flatten() {
        let Some(name) = file.path.file_name().and_then(|name| name.to_str()) else { continue };
        if name.starts_with("process-") && name.ends_with(&ending) {
            log = Some(file.entry()); // which works even if the log was removed
        } else if let Some(home) = home_with_open_file(&file.path).filter(|home| !homes.iter().any(|it| it == home)) {
            homes.push(home.to_owned());
        }
    }
    (homes, log)
}
