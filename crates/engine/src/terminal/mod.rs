//! The user's terminal: opens a program in a new one, and brings a session's terminal to the front.
//!
//! The terminal is the one in the settings, else `$TERMINAL`, the desktop's default, or a well-known one (`choice.rs`).
//! Each takes its command line differently, and some pass the command to a shell after all: `known.rs` lists them, with
//! the words that are safe for each. We use no shell ourselves; each argument is passed as one. The folder is passed as
//! the working directory and, to terminals that open their windows in another process, as an argument that cannot be
//! read as an option.
//!
//! An opened terminal outlives us. It is watched for a second, because one that fails at once has shown the user
//! nothing. If no terminal can be opened, the error names the command to type.
//!
//! - [`Terminals::open`] opens a terminal for a command.
//! - [`show()`] brings a terminal to the front; [`has_focus`] tells whether the user looks at it.

mod choice;
mod environment;
mod known;
#[cfg(any(target_os = "macos", all(test, unix)))]
mod macos;
mod quote;
#[cfg(target_os = "linux")]
mod show;
#[cfg(not(target_os = "linux"))]
#[path = "show/elsewhere.rs"]
mod show;
mod start;
#[cfg(test)]
#[cfg(unix)]
mod tests;
#[cfg(any(windows, test))]
mod windows;

use choice::{Launch, Method};
use environment::Environment;
use pilotlight_system::paths::{self, is_local_folder};
use quote::{shell_line, shown};
use start::WATCH_TIME;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(target_os = "linux")]
pub use show::{OpenMenu, open_menu};
pub use show::{has_focus, show, why_not};

/// Opens terminals.
#[derive(Clone, Debug)]
pub struct Terminals {
    /// The words of the setting `actions.terminal`; empty if it is not set.
    setting: Vec<String>,
    environment: Environment,
    /// How long a new terminal is watched.
    watch_time: Duration,
}

/// A terminal that was opened. Its `Display` form is the message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The terminal's name.
    pub terminal: String,
    /// If it opened in another folder than the requested one: where, and why.
    pub elsewhere: Option<String>,
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opened in {}", self.terminal)?;
        self.elsewhere.as_ref().map_or(Ok(()), |elsewhere| write!(f, ", {elsewhere}"))
    }
}

impl Terminals {
    /// `setting` is `actions.terminal`; if it is missing or empty, a terminal is searched for.
    pub fn new(setting: Option<Vec<String>>) -> Self {
        Self { setting: setting.unwrap_or_default(), environment: Environment::read(), watch_time: WATCH_TIME }
    }

    /// Opens a terminal that runs `command` in `folder`, or in the user's home if there is no such folder on this
    /// machine (see [`Opened::elsewhere`]). The first word of the command is a program's name or full path; `env` is
    /// set for it.
    ///
    /// Blocks for up to a second, while the terminal is watched.
    ///
    /// # Errors
    /// In words for the user, with the command to type instead: no display, no such program, no terminal, none that
    /// these words are safe for, or one that cannot be started or fails at once.
    pub fn open(
        &self,
        command: &[OsString],
        folder: Option<&Path>,
        env: &[(OsString, OsString)],
    ) -> Result<Opened, String> {
        let (place, elsewhere) = self.place(folder);
        let instead = |why: String| {
            let folder = elsewhere.is_none().then_some(&*place);
            format!("{why}. In a terminal, type: {}", shell_line(command, folder, env))
        };
        let Launch { name, method } = self.launch(command, &place, env).map_err(instead)?;
        let started = match method {
            Method::Run(words) => {
                // Except on Windows, the command itself sets the variables.
                let env = if cfg!(windows) { env } else { &[] };
                start::run(&name, &words, &place, env, self.watch_time)
            }
            #[cfg(target_os = "macos")]
            Method::Script(app) => self.with_env(command, env).and_then(|it| macos::open(app.as_deref(), &it, &place)),
            #[cfg(windows)]
            Method::Console => self.with_program_path(command).and_then(|it| windows::open(&it, &place, env)),
        };
        started.map_err(instead)?;
        Ok(Opened { terminal: name, elsewhere })
    }

    /// Chooses a terminal for the command.
    fn launch(&self, command: &[OsString], place: &Path, env: &[(OsString, OsString)]) -> Result<Launch, String> {
        let command = self.with_env(command, env)?;
        if !self.setting.is_empty() {
            return choice::from_setting(&self.setting, &self.environment, &command, place);
        }
        choice::search(&self.environment, &command, place, !env.is_empty())
    }

    /// The command with the full path of its program.
    fn with_program_path(&self, command: &[OsString]) -> Result<Vec<OsString>, String> {
        let Some((program, arguments)) = command.split_first() else { return Err("there is nothing to run".into()) };
        let name = shown(program);
        let found = paths::program(Path::new(program), self.environment.path.as_deref());
        let found = found.ok_or_else(|| format!("there is no program {name} here (actions.copilot can name it)"))?;
        Ok(std::iter::once(found.into_os_string()).chain(arguments.iter().cloned()).collect())
    }

    /// The command with the full path of its program and, through `env`, with its variables: many terminals open their
    /// windows in a process that is already running, with another environment.
    fn with_env(&self, command: &[OsString], env: &[(OsString, OsString)]) -> Result<Vec<OsString>, String> {
        let command = self.with_program_path(command)?;
        if env.is_empty() || cfg!(windows) {
            return Ok(command);
        }
        // `env` reads every word as a variable up to the first without a `=`.
        if command[0].as_encoded_bytes().contains(&b'=') {
            return Err(format!("the path of {} has a = in it", shown(&command[0])));
        }
        let set = env.iter().map(|(name, value)| {
            let mut word = name.clone();
            word.push("=");
            word.push(value);
            word
        });
        Ok(std::iter::once(OsString::from("/usr/bin/env")).chain(set).chain(command).collect())
    }

    /// The folder to open in and, if that is not the requested one, a phrase that says why.
    /// The folder to run a command in, and, if that is not the requested one, where it is and why.
    pub fn place(&self, folder: Option<&Path>) -> (PathBuf, Option<String>) {
        let why = match folder {
            Some(folder) if is_local_folder(folder) => return (folder.to_owned(), None),
            Some(folder) => format!("because there is no folder {} here", shown(folder)),
            None => "because its folder is unknown".to_owned(),
        };
        match self.environment.home.clone().filter(|home| is_local_folder(home)) {
            Some(home) => (home, Some(format!("in your home, {why}"))),
            None => (std::env::temp_dir(), Some(format!("in the temporary folder, {why}"))),
        }
    }
}
