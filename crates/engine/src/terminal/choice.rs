//! Chooses the terminal: by the settings, the environment, the desktop, and what is installed.

use super::environment::Environment;
use super::known::{Display, KNOWN, Known, words};
use super::quote::shown;
use crate::config::COMMAND;
use pilotlight_system::paths;
use pilotlight_system::plain_file::{self, Links};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a desktop's settings file, in bytes. A larger one is not read.
const SETTINGS_MAX: u64 = 256 * 1024;

/// The terminals that each desktop ships, by its name in `XDG_CURRENT_DESKTOP`.
const DESKTOPS: &[(&str, &[&str])] = &[
    ("gnome", &["ptyxis", "gnome-terminal", "kgx"]),
    ("kde", &["konsole"]),
    ("xfce", &["xfce4-terminal"]),
    ("mate", &["mate-terminal"]),
    ("x-cinnamon", &["gnome-terminal"]),
    ("budgie", &["gnome-terminal", "tilix"]),
    ("lxde", &["lxterminal"]),
    ("lxqt", &["qterminal"]),
    ("cosmic", &["cosmic-term"]),
    ("pantheon", &["io.elementary.terminal"]),
    ("deepin", &["deepin-terminal"]),
];

/// How to open a terminal for a command.
#[derive(Debug)]
pub(super) struct Launch {
    /// The terminal's name, for the user.
    pub(super) name: String,
    pub(super) method: Method,
}

/// How a terminal is started.
#[derive(Debug)]
pub(super) enum Method {
    /// Runs these words; the first is the path of a program.
    Run(Vec<OsString>),
    /// Opens a script with macOS's `open`, in the application of this name or in the default one.
    #[cfg(target_os = "macos")]
    Script(Option<String>),
    /// Gives the command a console window of its own.
    #[cfg(windows)]
    Console,
}

/// An installed terminal.
struct Candidate {
    /// Its program, and any further words of the user's.
    words: Vec<OsString>,
    known: Option<&'static Known>,
    pub name: String,
}

/// Uses the terminal in the settings to run `command`.
///
/// # Errors
/// If it is not installed, there is no display for it, or the command is not safe for it.
pub(super) fn from_setting(
    setting: &[String],
    environment: &Environment,
    command: &[OsString],
    folder: &Path,
) -> Result<Launch, String> {
    let subject = || format!("the terminal in the settings, {} (actions.terminal),", shown(&setting[0]));
    // On macOS, applications are not on PATH, but found by name.
    #[cfg(target_os = "macos")]
    if let [app] = setting
        && matches!(app.trim_end_matches(".app"), "Terminal" | "iTerm" | "iTerm2")
    {
        let app = app.trim_end_matches(".app").to_owned();
        return Ok(Launch { name: app.clone(), method: Method::Script(Some(app)) });
    }
    let program = paths::expand(Path::new(&setting[0]), environment.home.as_deref());
    let program = program.and_then(|program| paths::program(&program, environment.path.as_deref()));
    let program = program.ok_or_else(|| format!("{} was not found", subject()))?;
    let candidate = Candidate::new(program, setting[1..].iter().map(OsString::from).collect(), environment);
    candidate.check_display(environment)?;
    candidate.launch(folder, command).map_err(|word| {
        let (subject, word) = (subject(), shown(word));
        if candidate.known.is_some() {
            format!("{subject} takes its command as one line of text, in which {word} would not be safe")
        } else {
            format!(
                "{subject} is unknown, and may take its command as one line of text, in which {word} would not be safe; \
                     if it takes separate words, put {COMMAND} where they belong in that setting"
            )
        }
    })
}

/// The first installed terminal that can run `command`. `has_env`: whether variables are to be set for it.
///
/// # Errors
/// If there is none, or no display.
pub(super) fn search(
    environment: &Environment,
    command: &[OsString],
    folder: &Path,
    has_env: bool,
) -> Result<Launch, String> {
    if cfg!(target_os = "linux") && !environment.x11 && !environment.wayland {
        let why = "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)";
        return Err(format!("no terminal can be opened, because {why}"));
    }
    // On Windows, these only survive in a console that we open ourselves.
    let needs_console = cfg!(windows) && (has_env || is_batch(command));
    let mut unfit = None;
    for candidate in candidates(environment) {
        if needs_console || candidate.check_display(environment).is_err() {
            continue;
        }
        match candidate.launch(folder, command) {
            Ok(launch) => return Ok(launch),
            Err(word) => unfit = Some((candidate.name, word)),
        }
    }
    last_resort().ok_or_else(|| match unfit {
        Some((name, word)) => {
            let word = shown(word);
            format!("{name} takes its command as one line of text, in which {word} would not be safe, and no other terminal was found")
        }
        None => "no terminal was found: install one (xterm will do), or name yours in the setting actions.terminal".into(),
    })
}

/// The system's own way to open a terminal.
fn last_resort() -> Option<Launch> {
    #[cfg(target_os = "macos")]
    return Some(Launch { name: "the terminal of this Mac".into(), method: Method::Script(None) });
    #[cfg(windows)]
    return Some(Launch { name: "a console window".into(), method: Method::Console });
    #[cfg(not(any(target_os = "macos", windows)))]
    None
}

/// Whether the command is a batch file, which Windows runs with its shell.
pub(super) fn is_batch(command: &[OsString]) -> bool {
    let extension = command.first().and_then(|program| Path::new(program).extension());
    extension.is_some_and(|extension| ["cmd", "bat"].iter().any(|batch| extension.eq_ignore_ascii_case(batch)))
}

/// The installed terminals, the most likely to be the user's first.
fn candidates(environment: &Environment) -> impl Iterator<Item = Candidate> {
    let names: Vec<&str> = if cfg!(target_os = "linux") {
        let choosers = ["xdg-terminal-exec", "x-terminal-emulator"];
        let others = KNOWN.iter().filter(|known| known.display != Display::Unknown && !choosers.contains(&known.name));
        let desktop = from_desktop(environment);
        [choosers[0]].into_iter().chain(desktop).chain([choosers[1]]).chain(others.map(|known| known.name)).collect()
    } else if cfg!(windows) {
        vec!["wt"]
    } else {
        Vec::new()
    };
    let from_name = |name: &str| {
        let program = paths::program(Path::new(name), environment.path.as_deref())?;
        Some(Candidate::new(program, Vec::new(), environment))
    };
    from_variable(environment).into_iter().chain(names.into_iter().filter_map(from_name))
}

/// The terminal in `$TERMINAL`: a program, or a program and further words.
fn from_variable(environment: &Environment) -> Option<Candidate> {
    let value = environment.terminal.as_deref()?;
    if let Some(program) = paths::program(Path::new(value), environment.path.as_deref()) {
        return Some(Candidate::new(program, Vec::new(), environment));
    }
    let mut words = value.to_str()?.split_whitespace();
    let program = paths::program(Path::new(words.next()?), environment.path.as_deref())?;
    Some(Candidate::new(program, words.map(OsString::from).collect(), environment))
}

/// The names of the terminal in the desktop's settings, and of those that the desktop ships.
fn from_desktop(environment: &Environment) -> Vec<&'static str> {
    let desktops = environment.desktop.as_deref().unwrap_or_default().to_string_lossy().to_lowercase();
    let mut names = Vec::new();
    for desktop in desktops.split(':') {
        let configured = match desktop {
            "kde" => setting(environment, "kdeglobals", "TerminalApplication"),
            "xfce" => setting(environment, "xfce4/helpers.rc", "TerminalEmulator"),
            _ => None,
        };
        names.extend(configured.and_then(|name| Known::of(OsStr::new(&name))).map(|known| known.name));
        names.extend(DESKTOPS.iter().filter(|(name, _)| *name == desktop).flat_map(|(_, names)| *names));
    }
    names
}

/// The value of a key in one of the desktop's settings files.
fn setting(environment: &Environment, file: &str, key: &str) -> Option<String> {
    let file = environment.settings.as_ref()?.join(file);
    let (file, meta) = plain_file::open(&file, Links::Followed).ok().filter(|(_, meta)| meta.len() <= SETTINGS_MAX)?;
    let mut text = String::new();
    file.take(meta.len()).read_to_string(&mut text).ok()?;
    let value = text.lines().find_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='))?;
    Some(value.trim().to_owned())
}

impl Candidate {
    fn new(program: PathBuf, rest: Vec<OsString>, environment: &Environment) -> Self {
        let (program, known) = resolve(program, environment);
        let file_name = program.file_name().unwrap_or_default();
        let name = known.map_or_else(|| shown(file_name).into(), |known| known.name.to_owned());
        Self { words: std::iter::once(program.into_os_string()).chain(rest).collect(), known, name }
    }

    /// How to run `command` in `folder`; the error is the word that is not safe for it.
    fn launch<'c>(&self, folder: &Path, command: &'c [OsString]) -> Result<Launch, &'c OsStr> {
        let words = words(self.known, &self.words, folder, command)?;
        Ok(Launch { name: self.name.clone(), method: Method::Run(words) })
    }

    /// Fails if there is no display for it.
    fn check_display(&self, environment: &Environment) -> Result<(), String> {
        let missing = match self.known.map_or(Display::Unknown, |known| known.display) {
            Display::X11 if !environment.x11 => "DISPLAY is not set",
            Display::Wayland if !environment.wayland => "WAYLAND_DISPLAY is not set",
            Display::Any if !environment.x11 && !environment.wayland => "neither DISPLAY nor WAYLAND_DISPLAY is set",
            _ => return Ok(()),
        };
        if cfg!(target_os = "linux") {
            return Err(format!("{} cannot be opened, because there is no display ({missing})", self.name));
        }
        Ok(())
    }
}

/// The program to start, and the known terminal that it is. Debian's `x-terminal-emulator` is a link to another
/// terminal, or to a wrapper that translates options for one.
fn resolve(program: PathBuf, environment: &Environment) -> (PathBuf, Option<&'static Known>) {
    let known = Known::of(program.file_name().unwrap_or_default());
    if known.is_some_and(|known| known.name == "x-terminal-emulator")
        && let Ok(real) = program.canonicalize()
        && let Some(name) = real.file_name().and_then(OsStr::to_str)
    {
        let bare = name.strip_suffix(".wrapper").unwrap_or(name);
        let start = if bare == name {
            Some(real.clone())
        } else {
            paths::program(Path::new(bare), environment.path.as_deref())
        };
        if let (Some(known), Some(start)) = (Known::of(OsStr::new(bare)), start) {
            return (start, Some(known));
        }
    }
    (program, known)
}
