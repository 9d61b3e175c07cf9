//! Terminals that hold several programs, in tabs or panes, and select one when they are asked to. What they tell the
//! programs in them, in the environment, says whom to ask. Environments are inherited, so that each is asked first
//! whether it really holds the process; zellij alone does not say, and has to be one of its ancestors.
//!
//! Observed: kitty 0.26.5 (`kitty @`, where `allow_remote_control` and `listen_on` are set) and Konsole 22.12 (its
//! interface on the session bus). Of WezTerm (`wezterm cli`) and zellij (`zellij action`, from 0.44 on) the manuals were
//! read.

mod kitty;
mod konsole;
mod wezterm;
mod zellij;

use super::asked::ask;
use pilotlight_system::process::variables;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// The variables by which terminals are found.
const VARIABLES: [&str; 6] =
    [kitty::TO, wezterm::SOCKET, konsole::SERVICE, konsole::SESSION, zellij::SESSION, zellij::PANE];

/// The process for which a place is searched.
pub(super) struct ProcessInTerminal<'a> {
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
    how: Selector,
}

/// How it is selected.
#[derive(Debug, PartialEq, Eq)]
enum Selector {
    /// By this command.
    Run(Program, Vec<String>),
    /// By a call.
    Konsole { service: String, window: String, session: i32 },
}

/// A program that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
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
type TerminalVariables = HashMap<OsString, OsString>;

/// One of these variables, if it is text.
fn text<'a>(told: &'a TerminalVariables, name: &str) -> Option<&'a str> {
    told.get(OsStr::new(name))?.to_str()
}

fn told(pid: u32) -> TerminalVariables {
    variables(pid, &VARIABLES).unwrap_or_default().into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// Whether some terminal told a process how to be asked.
pub(super) fn is_told(pid: u32) -> bool {
    let told = told(pid);
    [kitty::TO, wezterm::SOCKET, konsole::SERVICE, zellij::PANE].iter().any(|name| text(&told, name).is_some())
}

/// The place of a process. `programs` is the folder of the terminals' programs; `None` for those in the search path. `None`
/// if no terminal has it that can be asked.
///
/// # Errors
/// The terminal that may have it does not answer.
pub(super) fn find(programs: Option<&Path>, process: &ProcessInTerminal<'_>) -> Result<Option<Place>, String> {
    let told = told(process.chain.first().copied().unwrap_or_default());
    if told.is_empty() {
        return Ok(None);
    }
    let mut failed = None;
    // zellij runs in one of the others, and of it the least is certain.
    for find in [kitty::find, wezterm::find, konsole::find, zellij::find] {
        match find(&told, programs, process) {
            Ok(Some(place)) => return Ok(Some(place)),
            Ok(None) => {}
            Err(why) => failed = failed.or(Some(why)),
        }
    }
    failed.map_or(Ok(None), Err)
}

/// Has its terminal show a place.
///
/// # Errors
/// In words for the user.
pub(super) fn select(programs: Option<&Path>, place: &Place) -> Result<(), String> {
    match &place.how {
        Selector::Run(program, words) => {
            let done = program.ask(programs, words)?.map(drop);
            done.ok_or_else(|| format!("{} will not select it: it may have closed", program.name))
        }
        Selector::Konsole { service, window, session } => konsole::select(service, window, *session),
    }
}
