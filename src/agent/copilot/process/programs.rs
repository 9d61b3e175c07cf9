//! Every Copilot that runs on this machine, with what tells which home it works in and which sessions it has open.

#[cfg(not(target_os = "linux"))]
#[path = "programs/elsewhere.rs"]
mod platform;
#[cfg(target_os = "linux")]
#[path = "programs/linux.rs"]
mod platform;

use crate::core::time::Time;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A Copilot that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its process id.
    pub pid: u32,
    /// What tells it from an earlier process of the same id: when it started, in the system's own count.
    pub born: u64,
    /// The process that started it.
    pub parent: u32,
    /// When it started, by the wall clock.
    pub started: Option<Time>,
    /// Its command line, the program included.
    pub arguments: Vec<OsString>,
    /// The homes that it works in, as far as they are known: that of its environment, and those of the files that it has open.
    pub homes: Vec<PathBuf>,
    /// Its own log, where that is open.
    pub log: Option<PathBuf>,
    /// It is a script, run by node.
    pub is_script: bool,
    /// It is another user's: nothing but its command line can be read.
    pub hidden: bool,
}

/// A search for every Copilot that runs.
///
/// Looks at every process of the machine: some 10 us each on Linux, and 200 us for each Copilot. What cannot be read is not
/// there.
#[derive(Debug)]
pub struct Search {
    rest: platform::Rest,
    found: Vec<Program>,
}

impl Search {
    /// A search that has looked at nothing.
    pub(crate) fn begin() -> Self {
        Self { rest: platform::Rest::all(), found: Vec::new() }
    }

    /// Goes on until then, or to the end: then what was found. `names` are file names of further executables that count as a
    /// Copilot; `now` is the wall clock.
    pub(crate) fn go_on(&mut self, names: &[String], now: Time, until: Option<Instant>) -> Option<Vec<Program>> {
        self.rest.look(&mut self.found, names, now, until).then(|| std::mem::take(&mut self.found))
    }
}

/// Every Copilot that runs, looked for at one go.
#[cfg(test)]
pub(crate) fn programs(names: &[String], now: Time) -> Vec<Program> {
    Search::begin().go_on(names, now, None).unwrap_or_default()
}

/// The home that an environment and a working folder make: `COPILOT_HOME`, or else `.copilot` in the user's home.
fn home_of(variable: impl Fn(&str) -> Option<OsString>, folder: Option<&Path>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let home = match set("COPILOT_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(set("HOME").or_else(|| set("USERPROFILE"))?).join(".copilot"),
    };
    Some(folder.map_or_else(|| home.clone(), |folder| folder.join(&home))).filter(|home| home.is_absolute())
}
