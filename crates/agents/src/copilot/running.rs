//! Every Copilot that runs on this machine, with the homes that it works in.

#[cfg(not(target_os = "linux"))]
#[path = "running/elsewhere.rs"]
mod platform;
#[cfg(target_os = "linux")]
#[path = "running/linux.rs"]
mod platform;

use super::PROFILE;
use pilotlight_core::time::Time;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A running Copilot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its process id.
    pub pid: u32,
    /// The id by which it is known inside of the container that it runs in, if it does.
    pub inside: Option<u32>,
    /// When it started, in the system's own unit: distinguishes it from an earlier process with the same id.
    pub born: u64,
    /// The process that started it.
    pub parent: u32,
    /// When it started, by the wall clock.
    pub started: Option<Time>,
    /// Its command line, including the program.
    pub arguments: Vec<OsString>,
    /// Its working folder, if that can be read.
    pub folder: Option<PathBuf>,
    /// The homes that it works in, as far as they are known: the one in its environment, and those of its open files.
    pub homes: Vec<PathBuf>,
    /// Its own log, if that is open.
    pub log: Option<PathBuf>,
    /// Whether it is a script, run by node.
    pub is_script: bool,
    /// Whether it is another user's, so that only its command line can be read.
    pub hidden: bool,
}

/// A search for every Copilot that runs.
///
/// Checks every process of the machine: some 10 us each on Linux, and 200 us for each Copilot. Processes that cannot be
/// read are left out.
#[derive(Debug)]
pub struct Search {
    rest: platform::Rest,
    found: Vec<Program>,
}

impl Search {
    /// A search that has checked no process yet.
    pub(crate) fn begin() -> Self {
        Self { rest: platform::Rest::all(), found: Vec::new() }
    }

    /// Continues until `until`, or to the end. Returns the programs at the end, `None` before. `names` are file names
    /// of further executables that count as Copilot; `now` is the wall clock.
    pub(crate) fn go_on(&mut self, names: &[String], now: Time, until: Option<Instant>) -> Option<Vec<Program>> {
        self.rest.check(&mut self.found, names, now, until).then(|| std::mem::take(&mut self.found))
    }
}

/// Every Copilot that runs, found in one pass.
#[cfg(test)]
pub(crate) fn programs(names: &[String], now: Time) -> Vec<Program> {
    Search::begin().go_on(names, now, None).unwrap_or_default()
}

/// Copilot's home according to an environment and a working folder: `COPILOT_HOME`, or else `.copilot` in the user's
/// home.
fn home_of(variable: impl Fn(&str) -> Option<OsString>, folder: Option<&Path>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let home = match set(PROFILE.home_variable) {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(set("HOME").or_else(|| set("USERPROFILE"))?).join(PROFILE.home),
    };
    Some(folder.map_or_else(|| home.clone(), |folder| folder.join(&home))).filter(|home| home.is_absolute())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::copilot::owner::testing::World;
    use pilotlight_system::process::testing::{after, now};
    use std::fs;

    #[test]
    fn every_copilot_is_found_with_its_home_and_its_log() {
        let world = World::new();
        let log =
            format!(r#"open(L, ">", "{}/logs/process-1700000000000-$$.log") or die;"#, world.home("home").display());
        let opens = format!(r#"open(D, ">", "{}/session-store.db") or die;"#, world.home("home").display());
        let process = after(&(log + &opens), &world.program(), &["-".as_ref()]);
        let found = programs(&[], now());
        let program = found.iter().find(|program| program.pid == process.pid()).unwrap();
        assert_eq!(program.parent, std::process::id());
        assert!(program.homes.contains(&world.home("home")) && !program.hidden && !program.is_script, "{program:?}");
        assert!(
            program.log.as_ref().is_some_and(|log| log.starts_with("/proc") && fs::read(log).is_ok()),
            "{program:?}"
        );
        assert_eq!(program.arguments[1], "-");
        assert!((program.started.unwrap() - now()).0.abs() < 20_000);
        assert!(!found.iter().any(|program| program.pid == std::process::id()));
    }
}
