//! Where a process is in a terminal that holds several, and how that is selected.

use super::asked::ask;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// The process for which a place is searched.
pub(super) struct Wanted<'a> {
    /// The process and its ancestors, the nearest first.
    pub(super) chain: &'a [u32],
    /// Its terminal device.
    pub(super) tty: Option<&'a Path>,
}

/// Where a process is in a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// In words: "its tab in Konsole".
    pub(super) name: &'static str,
    /// Whether it is what its window shows. `None`: its terminal does not say.
    pub(super) is_shown: Option<bool>,
    /// Its window, as X11 numbers it, if its terminal says.
    pub(super) window: Option<u32>,
    /// The process whose own terminal shows it, if its terminal has no window itself.
    pub(super) client: Option<u32>,
    pub(super) how: Selector,
}

/// How it is selected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selector {
    /// By this command.
    Run(Program, Vec<String>),
    /// By a call.
    Konsole { service: String, window: String, session: i32 },
}

/// A program that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// A variable that it needs.
    pub(super) env: Option<(&'static str, OsString)>,
}

impl Program {
    /// What it prints. `None`: it failed. It is the one in this folder, or in the search path.
    ///
    /// # Errors
    /// It cannot be started, or does not answer: the reason, in words for the user.
    pub(super) fn ask<S: AsRef<str>>(&self, folder: Option<&Path>, words: &[S]) -> Result<Option<String>, String> {
        let mut command = Command::new(folder.map_or_else(|| self.name.into(), |folder| folder.join(self.name)));
        command.args(words.iter().map(AsRef::as_ref)).envs(self.env.clone());
        ask(self.name, command)
    }
}

/// What terminals told a process, in its environment.
pub(super) type TerminalVariables = HashMap<OsString, OsString>;

/// One of these variables, if it is text.
pub(super) fn text<'a>(told: &'a TerminalVariables, name: &str) -> Option<&'a str> {
    told.get(OsStr::new(name))?.to_str()
}
