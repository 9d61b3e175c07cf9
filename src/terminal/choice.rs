//! Which terminal is opened: what the settings, the environment and the desktop say, and what is there.

use super::known::{KNOWN, Known, On, words};
use super::{Around, Start, Way, shown};
use crate::config::COMMAND;
use crate::system::paths;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// No larger file of a desktop's settings is read, in bytes.
const LARGEST: u64 = 256 * 1024;

/// What each desktop comes with, by its name in `XDG_CURRENT_DESKTOP`.
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

/// A terminal that is there.
struct Candidate {
    /// Its program, and further words of the user's.
    words: Vec<OsString>,
    known: Option<&'static Known>,
    name: String,
}

/// The terminal of the settings, told to run `command`.
///
/// # Errors
/// Where it is not there, there is no display for it, or it would make something else of the command.
pub(super) fn of_setting(
    setting: &[String],
    around: &Around,
    command: &[OsString],
    folder: &Path,
) -> Result<Start, String> {
    let said = || format!("the terminal of the settings, {} (actions.terminal),", shown(&setting[0]));
    // On a Mac, applications are not on PATH, but known by name.
    #[cfg(target_os = "macos")]
    if let [app] = setting
        && matches!(app.trim_end_matches(".app"), "Terminal" | "iTerm" | "iTerm2")
    {
        let app = app.trim_end_matches(".app").to_owned();
        return Ok(Start { name: app.clone(), way: Way::Script(Some(app)) });
    }
    let program = paths::expand(Path::new(&setting[0]), around.home.as_deref());
    let program = program.and_then(|program| paths::program(&program, around.path.as_deref()));
    let program = program.ok_or_else(|| format!("{} is not here", said()))?;
    let candidate = Candidate::new(program, setting[1..].iter().map(OsString::from).collect(), around);
    candidate.displayed(around)?;
    candidate.told(folder, command).map_err(|word| {
        let (said, word) = (said(), shown(word));
        if candidate.known.is_some() {
            format!("{said} takes its command as a line of text, which {word} must not be put into")
        } else {
            format!(
                "{said} is not known, and may take its command as a line of text, which {word} must not be put into; \
                     if it takes words, {COMMAND} among those of the settings says where"
            )
        }
    })
}

/// The first terminal that is there and can be told to run `command`. `has_env`: variables are to be set for it.
///
/// # Errors
/// Where there is none, or no display.
pub(super) fn found(around: &Around, command: &[OsString], folder: &Path, has_env: bool) -> Result<Start, String> {
    if cfg!(target_os = "linux") && !around.x11 && !around.wayland {
        let why = "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)";
        return Err(format!("no terminal can be opened, because {why}"));
    }
    // On Windows these come through unharmed only to a console of our own.
    let by_ourselves = cfg!(windows) && (has_env || is_batch(command));
    let mut unfit = None;
    for candidate in candidates(around) {
        if by_ourselves || candidate.displayed(around).is_err() {
            continue;
        }
        match candidate.told(folder, command) {
            Ok(start) => return Ok(start),
            Err(word) => unfit = Some((candidate.name, word)),
        }
    }
    last_resort().ok_or_else(|| match unfit {
        Some((name, word)) => {
            let word = shown(word);
            format!("{name} takes its command as a line of text, which {word} must not be put into, and no other terminal is here")
        }
        None => "no terminal was found: install one (xterm will do), or name yours in the setting actions.terminal".into(),
    })
}

/// What opens a terminal where no other was found.
fn last_resort() -> Option<Start> {
    #[cfg(target_os = "macos")]
    return Some(Start { name: "the terminal of this Mac".into(), way: Way::Script(None) });
    #[cfg(windows)]
    return Some(Start { name: "a console window".into(), way: Way::Console });
    #[cfg(not(any(target_os = "macos", windows)))]
    None
}

/// Whether the command runs a file that Windows gives to its shell.
pub(super) fn is_batch(command: &[OsString]) -> bool {
    let ending = command.first().and_then(|program| Path::new(program).extension());
    ending.is_some_and(|ending| ["cmd", "bat"].iter().any(|batch| ending.eq_ignore_ascii_case(batch)))
}

/// The terminals that are here, the likeliest to be the user's first.
fn candidates(around: &Around) -> impl Iterator<Item = Candidate> {
    let named: Vec<&str> = if cfg!(target_os = "linux") {
        let choosers = ["xdg-terminal-exec", "x-terminal-emulator"];
        let others = KNOWN.iter().filter(|known| known.on != On::Own && !choosers.contains(&known.name));
        let desktop = of_desktop(around);
        [choosers[0]].into_iter().chain(desktop).chain([choosers[1]]).chain(others.map(|known| known.name)).collect()
    } else if cfg!(windows) {
        vec!["wt"]
    } else {
        Vec::new()
    };
    let of_name = |name: &str| {
        let program = paths::program(Path::new(name), around.path.as_deref())?;
        Some(Candidate::new(program, Vec::new(), around))
    };
    of_variable(around).into_iter().chain(named.into_iter().filter_map(of_name))
}

/// `$TERMINAL`: a program, or several words of which the first is one.
fn of_variable(around: &Around) -> Option<Candidate> {
    let value = around.terminal.as_deref()?;
    if let Some(program) = paths::program(Path::new(value), around.path.as_deref()) {
        return Some(Candidate::new(program, Vec::new(), around));
    }
    let mut words = value.to_str()?.split_whitespace();
    let program = paths::program(Path::new(words.next()?), around.path.as_deref())?;
    Some(Candidate::new(program, words.map(OsString::from).collect(), around))
}

/// What the desktop's own settings name, and what it comes with.
fn of_desktop(around: &Around) -> Vec<&'static str> {
    let desktops = around.desktop.as_deref().unwrap_or_default().to_string_lossy().to_lowercase();
    let mut names = Vec::new();
    for desktop in desktops.split(':') {
        let set = match desktop {
            "kde" => setting(around, "kdeglobals", "TerminalApplication"),
            "xfce" => setting(around, "xfce4/helpers.rc", "TerminalEmulator"),
            _ => None,
        };
        names.extend(set.and_then(|name| Known::of(OsStr::new(&name))).map(|known| known.name));
        names.extend(DESKTOPS.iter().filter(|(name, _)| *name == desktop).flat_map(|(_, names)| *names));
    }
    names
}

/// The value of a key in a file of the desktop's settings.
fn setting(around: &Around, file: &str, key: &str) -> Option<String> {
    let file = around.settings.as_ref()?.join(file);
    let is_small = std::fs::metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
    let text = is_small.then(|| std::fs::read_to_string(&file).ok()).flatten()?;
    let value = text.lines().find_map(|line| line.trim().strip_prefix(key)?.trim_start().strip_prefix('='))?;
    Some(value.trim().to_owned())
}

impl Candidate {
    fn new(program: PathBuf, rest: Vec<OsString>, around: &Around) -> Self {
        let (program, known) = behind(program, around);
        let file_name = program.file_name().unwrap_or_default();
        let name = known.map_or_else(|| shown(file_name).into(), |known| known.name.to_owned());
        Self { words: std::iter::once(program.into_os_string()).chain(rest).collect(), known, name }
    }

    /// Told to run `command` in `folder`; otherwise the word that it would not hand on as it is.
    fn told<'c>(&self, folder: &Path, command: &'c [OsString]) -> Result<Start, &'c OsStr> {
        let words = words(self.known, &self.words, folder, command)?;
        Ok(Start { name: self.name.clone(), way: Way::Run(words) })
    }

    /// Whether there is a display for it; otherwise what is missing.
    fn displayed(&self, around: &Around) -> Result<(), String> {
        let missing = match self.known.map_or(On::Own, |known| known.on) {
            On::X11 if !around.x11 => "DISPLAY is not set",
            On::Wayland if !around.wayland => "WAYLAND_DISPLAY is not set",
            On::Any if !around.x11 && !around.wayland => "neither DISPLAY nor WAYLAND_DISPLAY is set",
            _ => return Ok(()),
        };
        if cfg!(target_os = "linux") {
            return Err(format!("{} cannot be opened, because there is no display ({missing})", self.name));
        }
        Ok(())
    }
}

/// The terminal that a program is, and the program to start: behind Debian's `x-terminal-emulator` is another, perhaps in a
/// wrapper that only translates what it is told.
fn behind(program: PathBuf, around: &Around) -> (PathBuf, Option<&'static Known>) {
    let known = Known::of(program.file_name().unwrap_or_default());
    if known.is_some_and(|known| known.name == "x-terminal-emulator")
        && let Ok(real) = program.canonicalize()
        && let Some(name) = real.file_name().and_then(OsStr::to_str)
    {
        let bare = name.strip_suffix(".wrapper").unwrap_or(name);
        let start =
            if bare == name { Some(real.clone()) } else { paths::program(Path::new(bare), around.path.as_deref()) };
        if let (Some(known), Some(start)) = (Known::of(OsStr::new(bare)), start) {
            return (start, Some(known));
        }
    }
    (program, known)
}
