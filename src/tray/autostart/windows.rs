//! Start at login on Windows: a value in the registry, and another one by which the user may disable it in the task
//! manager.

use super::arguments;
use super::state::State;
use crate::tray::start_menu::for_the_tray;
use anyhow::Context;
use std::path::{Path, PathBuf};
use windows_registry::CURRENT_USER;

const RUN: &str = r"Software\Microsoft\Windows\CurrentVersion\Run";
/// Where the task manager and the settings record what the user disabled: binary values whose first byte is then odd.
const APPROVED: &str = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run";
const NAME: &str = "Pilotlight";

/// The registry value for this program.
#[derive(Debug)]
pub(super) struct Backend {
    program: PathBuf,
    /// The homes to pass on, if any were named.
    homes: Vec<PathBuf>,
}

impl Backend {
    /// For this program, or the one without a console if it is in the same folder.
    pub(super) fn find(program: PathBuf, homes: Vec<PathBuf>) -> Option<Self> {
        Some(Self { program: for_the_tray(program), homes })
    }

    /// What the system would do at the next login.
    pub(super) fn read(&self) -> State {
        let Ok(command) = CURRENT_USER.open(RUN).and_then(|key| key.get_string(NAME)) else { return State::off() };
        let approved = CURRENT_USER.open(APPROVED).and_then(|key| key.get_value(NAME));
        if approved.is_ok_and(|value| value.first().is_some_and(|first| first % 2 == 1)) {
            return State::off().because("switched off in the task manager");
        }
        let program = match command.trim_start().strip_prefix('"') {
            Some(rest) => rest.split('"').next(),
            None => command.split_whitespace().next(),
        };
        let program = Path::new(program.unwrap_or_default());
        let same = program.as_os_str().eq_ignore_ascii_case(self.program.as_os_str());
        match same {
            true if program.is_file() => State::on(),
            true => State::off().because("its program is gone"),
            false => State::off().because(format!("its value starts {}", program.display())),
        }
    }

    /// Turns the start at login on or off.
    pub(super) fn write(&self, on: bool) -> anyhow::Result<()> {
        let key =
            CURRENT_USER.create(RUN).context("cannot open the registry's list of programs that start at login")?;
        if on {
            // A backslash before the closing quote would escape it.
            let quoted = |word: &str| match word.contains(' ') {
                true => format!(" \"{}\"", word.trim_end_matches('\\')),
                false => format!(" {word}"),
            };
            let words: String = arguments(&self.homes)?.into_iter().map(quoted).collect();
            let command = format!("\"{}\"{words}", self.program.display());
            key.set_string(NAME, command)
                .context("cannot add Pilotlight to the registry's list of programs that start at login")?;
        } else if key.get_value(NAME).is_ok() {
            key.remove_value(NAME)
                .context("cannot remove Pilotlight from the registry's list of programs that start at login")?;
        }
        // Clears the setting that the user made for an earlier value.
        if let Ok(key) = CURRENT_USER.create(APPROVED)
            && key.get_value(NAME).is_ok()
        {
            key.remove_value(NAME).context("cannot take back what the task manager noted")?;
        }
        Ok(())
    }
}
