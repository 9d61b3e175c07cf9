//! The user's terminal: a program is opened in it, and the one that a session runs in is brought to the front.
//!
//! Which terminal: the one of the settings; else `$TERMINAL`, the desktop's default, a well-known one (`choice.rs`). How it
//! is told what to run differs from one to the next, and some hand their command to a shell after all: `known.rs` is the
//! list, and says which words each can be trusted with. No shell is in between; each argument is handed over as one. The
//! folder is handed over as the working directory, and to terminals that open their windows in another process as a word
//! that cannot be taken for an option.
//!
//! What was opened lives on when we end, and is looked at for a second: a terminal that ends at once with an error has shown
//! the user nothing. Where no terminal can be opened, the command to type is told.
//!
//! - [`Terminals::open`] opens one, with [`resume_command`] and [`resume_env`] for what it runs.
//! - [`show()`] brings one to the front.
//!
//! May import: core, system, agent, config.

mod choice;
mod known;
#[cfg(any(target_os = "macos", all(test, unix)))]
mod macos;
mod show;
mod start;
#[cfg(test)]
#[cfg(unix)]
mod tests;
#[cfg(any(windows, test))]
mod windows;

use crate::core::text::{is_uuid, plain};
use crate::system::paths;
use crate::system::paths::is_local_folder;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use show::show;

/// A terminal that has not ended with an error after this has opened. Those that fail, for want of a display or of a bus, do
/// so within a few hundred milliseconds.
const WATCHED: Duration = Duration::from_secs(1);
/// How much of a path is shown, in characters.
const SHOWN: usize = 200;

/// Opens terminals.
#[derive(Clone, Debug)]
pub(crate) struct Terminals {
    /// The words of the settings; empty where there are none.
    setting: Vec<String>,
    around: Around,
    /// How long what was opened is watched.
    watched: Duration,
}

/// What our environment says of terminals.
#[derive(Clone, Debug, Default)]
struct Around {
    /// `PATH`.
    path: Option<OsString>,
    /// `TERMINAL`.
    terminal: Option<OsString>,
    /// `XDG_CURRENT_DESKTOP`: names with colons in between.
    desktop: Option<OsString>,
    /// Whether there is an X server, by `DISPLAY`.
    x11: bool,
    /// Whether there is a Wayland compositor, by `WAYLAND_DISPLAY`.
    wayland: bool,
    /// The user's home.
    home: Option<PathBuf>,
    /// The folder that the desktop's settings are in.
    settings: Option<PathBuf>,
}

impl Around {
    fn read() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = paths::user_home();
        let settings = var("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        Self {
            path: var("PATH"),
            terminal: var("TERMINAL"),
            desktop: var("XDG_CURRENT_DESKTOP"),
            x11: var("DISPLAY").is_some(),
            wayland: var("WAYLAND_DISPLAY").is_some(),
            settings: settings.or_else(|| Some(home.as_ref()?.join(".config"))),
            home,
        }
    }
}

/// A terminal that was opened. Shown, it is what to tell the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The terminal's name.
    pub terminal: String,
    /// Where it did not open in the folder that was asked for: why, and where it did.
    pub elsewhere: Option<String>,
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opened in {}", self.terminal)?;
        self.elsewhere.as_ref().map_or(Ok(()), |elsewhere| write!(f, ", {elsewhere}"))
    }
}

/// A way to open a terminal.
#[derive(Debug)]
struct Start {
    /// The terminal's name, for the user.
    name: String,
    way: Way,
}

/// How a terminal is opened.
#[derive(Debug)]
enum Way {
    /// These words are run; the first is the path of a program.
    Run(Vec<OsString>),
    /// The Mac's `open` is given a script, and the application's name if it is not the one for scripts.
    #[cfg(target_os = "macos")]
    Script(Option<String>),
    /// The command gets a console window of its own.
    #[cfg(windows)]
    Console,
}

impl Terminals {
    /// Terminals as the settings (`actions.terminal`, nothing or no word to look for one) and the environment say.
    pub(crate) fn new(setting: Option<Vec<String>>) -> Self {
        Self { setting: setting.unwrap_or_default(), around: Around::read(), watched: WATCHED }
    }

    /// Opens a terminal that runs `command` in `folder`, or in the user's home where that is no folder of this machine, which
    /// [`Opened::elsewhere`] then says. The first word of the command is a program's name or whole path; `env` is set for it.
    ///
    /// Blocks for up to a second, in which the terminal is watched.
    ///
    /// # Errors
    /// In words for the user, with the command to type instead: no display, no terminal, none that can be trusted with these
    /// words, one that cannot be started or that ends at once with an error, no such program.
    pub(crate) fn open(
        &self,
        command: &[OsString],
        folder: Option<&Path>,
        env: &[(OsString, OsString)],
    ) -> Result<Opened, String> {
        let (place, elsewhere) = self.place(folder);
        let instead = |why: String| {
            let folder = elsewhere.is_none().then_some(&*place);
            format!("{why}. In a terminal, type: {}", typed(command, folder, env))
        };
        let Start { name, way } = self.start(command, &place, env).map_err(instead)?;
        let started = match way {
            // Elsewhere the words themselves set them.
            Way::Run(words) => start::run(&name, &words, &place, if cfg!(windows) { env } else { &[] }, self.watched),
            #[cfg(target_os = "macos")]
            Way::Script(app) => self.whole(command, env).and_then(|it| macos::open(app.as_deref(), &it, &place)),
            #[cfg(windows)]
            Way::Console => self.found(command).and_then(|it| windows::open(&it, &place, env)),
        };
        started.map_err(instead)?;
        Ok(Opened { terminal: name, elsewhere })
    }

    /// Which terminal, and how it is told what to run.
    fn start(&self, command: &[OsString], place: &Path, env: &[(OsString, OsString)]) -> Result<Start, String> {
        let command = self.whole(command, env)?;
        if !self.setting.is_empty() {
            return choice::of_setting(&self.setting, &self.around, &command, place);
        }
        choice::found(&self.around, &command, place, !env.is_empty())
    }

    /// The command with the whole path of its program.
    fn found(&self, command: &[OsString]) -> Result<Vec<OsString>, String> {
        let Some((program, arguments)) = command.split_first() else { return Err("there is nothing to run".into()) };
        let name = shown(program);
        let found = paths::program(Path::new(program), self.around.path.as_deref());
        let found = found.ok_or_else(|| format!("there is no program {name} here (actions.copilot can name it)"))?;
        Ok(std::iter::once(found.into_os_string()).chain(arguments.iter().cloned()).collect())
    }

    /// The command with the whole path of its program and, by `env`, with the variables that are set for it: many terminals
    /// open their windows in a process that runs already, and has an environment of its own.
    fn whole(&self, command: &[OsString], env: &[(OsString, OsString)]) -> Result<Vec<OsString>, String> {
        let command = self.found(command)?;
        if env.is_empty() || cfg!(windows) {
            return Ok(command);
        }
        // `env` takes each word with such a sign for a variable, up to the first without.
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

    /// Where the terminal opens, and, if that is not the folder that was asked for, why.
    fn place(&self, folder: Option<&Path>) -> (PathBuf, Option<String>) {
        let why = match folder {
            Some(folder) if is_local_folder(folder) => return (folder.to_owned(), None),
            Some(folder) => format!("because there is no folder {} here", shown(folder)),
            None => "because its folder is not known".to_owned(),
        };
        match self.around.home.clone().filter(|home| is_local_folder(home)) {
            Some(home) => (home, Some(format!("in your home, {why}"))),
            None => (std::env::temp_dir(), Some(format!("in the temporary folder, {why}"))),
        }
    }
}

/// The command that resumes a session in a terminal. `None` where the id has not the form of Copilot's: nothing else reaches a
/// command line.
pub(crate) fn resume_command(program: &Path, id: &str) -> Option<Vec<OsString>> {
    is_uuid(id).then(|| vec![program.into(), format!("--resume={id}").into()])
}

/// What is set for the command that resumes a session of this home of Copilot: nothing where Copilot takes that home by
/// itself. `inherited` is our own `COPILOT_HOME`, which a terminal may hand on.
pub(crate) fn resume_env(
    home: &Path,
    user_home: Option<&Path>,
    inherited: Option<&OsStr>,
) -> Vec<(OsString, OsString)> {
    let is_it = |other: &Path| {
        other == home || other.canonicalize().is_ok_and(|it| home.canonicalize().is_ok_and(|home| it == home))
    };
    let usual = user_home.is_some_and(|user_home| is_it(&user_home.join(".copilot")));
    if usual && inherited.is_none_or(OsStr::is_empty) {
        return Vec::new();
    }
    vec![("COPILOT_HOME".into(), home.into())]
}

/// The command as the user would type it into a shell. Of what cannot be shown as it is, a folder or a variable, the place is
/// held.
fn typed(command: &[OsString], folder: Option<&Path>, env: &[(OsString, OsString)]) -> String {
    let quoted = |word: &OsStr| {
        let text = word.to_string_lossy();
        if word.to_str().is_none() || *text != *plain(&text, usize::MAX / 8) {
            "…".to_owned()
        } else if known::plain(word) {
            text.into_owned()
        } else if cfg!(windows) {
            format!("\"{text}\"")
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    let (then, set) = if cfg!(windows) { ("; ", "set ") } else { (" && ", "") };
    let mut out = folder.map(|folder| format!("cd {}{then}", quoted(folder.as_os_str()))).unwrap_or_default();
    for (name, value) in env {
        out += &format!("{set}{}={}{}", name.to_string_lossy(), quoted(value), if cfg!(windows) { then } else { " " });
    }
    out + &command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A path or a word in a message: one line, bounded.
fn shown(text: impl AsRef<OsStr>) -> Box<str> {
    plain(&text.as_ref().to_string_lossy(), SHOWN)
}
