//! A running Copilot.

use crate::copilot::home;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pilotlight_core::time::Time;

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

/// Copilot's home according to an environment and a working folder: `COPILOT_HOME`, or else `.copilot` in the user's
/// home.
pub(super) fn home_of(variable: impl Fn(&str) -> Option<OsString>, folder: Option<&Path>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let home = match set("COPILOT_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(set("HOME").or_else(|| set("USERPROFILE"))?).join(home::NAME),
    };
    Some(folder.map_or_else(|| home.clone(), |folder| folder.join(&home))).filter(|home| home.is_absolute())
}
