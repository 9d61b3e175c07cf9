//! The known terminals, with the command line that each takes for a folder and a command.
//!
//! Most take the words after their option as they are. Some join them into a line that a shell or a similar parser
//! splits again, in which `$(...)` would run. So the list also says which words are safe for each. It was tested with
//! hostile words on the releases in Debian 12, except for the entries marked (read), which follow the documentation.

use super::quote::is_literal;
use crate::config::{COMMAND, FOLDER};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A known terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Its program's file name.
    pub(super) name: &'static str,
    /// The word that must follow the program.
    subcommand: Option<&'static str>,
    /// The words that set the folder. [`FOLDER`] stands for the folder, which is also appended to a word that ends in
    /// `=`. Empty if the window opens in the started process, and so in its working directory.
    folder: &'static [&'static str],
    /// The option that precedes the command.
    command_option: Option<&'static str>,
    /// Whether it passes a word of the command on unchanged.
    is_safe: fn(&OsStr) -> bool,
    /// What it draws on.
    pub(super) display: Display,
}

/// What a terminal draws on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Display {
    /// X11 or Wayland.
    Any,
    /// X11 alone.
    X11,
    /// Wayland alone.
    Wayland,
    /// Unknown. Such a terminal is only used if the user names it.
    Unknown,
}

const HERE: &[&str] = &[];
const WORKING: &[&str] = &["--working-directory="];

const fn any(name: &'static str, folder: &'static [&'static str], command_option: Option<&'static str>) -> Known {
    Known { name, subcommand: None, folder, command_option, is_safe: |_| true, display: Display::Any }
}

const fn x11(name: &'static str, folder: &'static [&'static str], command_option: &'static str) -> Known {
    Known { display: Display::X11, ..any(name, folder, Some(command_option)) }
}

/// A terminal that is not searched for: it depends on another running program, or other programs have its name.
const fn named(known: Known) -> Known {
    Known { display: Display::Unknown, ..known }
}

/// A terminal that may parse its command as one line of text.
const fn line(name: &'static str, folder: &'static [&'static str], command_option: Option<&'static str>) -> Known {
    Known { is_safe: is_literal, ..any(name, folder, command_option) }
}

/// All known terminals, in order of preference.
pub(super) static KNOWN: &[Known] = &[
    any("ghostty", WORKING, Some("-e")).only(is_literal), // (read) joined the words into a line before 1.2
    any("kitty", &["--directory="], None),
    Known { subcommand: Some("start"), ..any("wezterm", &["--cwd", FOLDER], Some("--")) }, // (read)
    any("alacritty", &["--working-directory", FOLDER], Some("-e")),
    Known { display: Display::Wayland, ..any("foot", WORKING, None) }, // (read)
    named(any("footclient", WORKING, None)),                           // (read)
    any("ptyxis", WORKING, Some("--")),                                // (read)
    any("gnome-terminal", WORKING, Some("--")),
    any("kgx", WORKING, Some("--")),
    any("konsole", &["--workdir", FOLDER], Some("-e")).only(no_variable), // expands `$NAME`
    any("xfce4-terminal", WORKING, Some("-x")),                           // its `-e` takes a line
    any("mate-terminal", WORKING, Some("-x")),                            // the same
    line("tilix", WORKING, Some("-e")),
    line("terminator", WORKING, Some("-x")),
    any("lxterminal", WORKING, Some("-e")),
    any("qterminal", &["-w", FOLDER], Some("-e")).only(no_variable), // as konsole
    line("cosmic-term", HERE, Some("-e")),                           // (read)
    line("io.elementary.terminal", WORKING, Some("-x")),             // (read)
    line("deepin-terminal", &["-w", FOLDER], Some("-e")),            // (read)
    line("terminology", &["--current-directory="], Some("-e")),      // runs its line in a shell
    line("sakura", &["-d", FOLDER], Some("-e")),
    line("rio", &["-w", FOLDER], Some("-e")),           // (read)
    named(any("urxvtc", &["-cd", FOLDER], Some("-e"))), // (read)
    x11("urxvt", &["-cd", FOLDER], "-e"),
    x11("rxvt", HERE, "-e"),
    named(any("st", HERE, Some("-e"))),
    x11("stterm", HERE, "-e"),
    x11("uxterm", HERE, "-e"),
    x11("lxterm", HERE, "-e"),
    x11("xterm", HERE, "-e"),
    // These start another terminal, which may be any of the above.
    line("xdg-terminal-exec", HERE, None),
    line("x-terminal-emulator", HERE, Some("-e")),
    // `.` is the working directory. A `;` starts a new command even inside a word, and `%NAME%` is a variable (read).
    named(any("wt", &["-d", "."], None).only(safe_for_wt)),
];

/// The assumptions for an unknown terminal: the most common option, and only words that no shell interprets.
static UNKNOWN: Known = Known { display: Display::Unknown, ..line("", HERE, Some("-e")) };

impl Known {
    const fn only(self, is_safe: fn(&OsStr) -> bool) -> Self {
        Self { is_safe, ..self }
    }

    /// The terminal of this file name.
    pub(super) fn of(name: &OsStr) -> Option<&'static Self> {
        let name = name.to_str()?;
        let name = if cfg!(windows) { name.strip_suffix(".exe").unwrap_or(name) } else { name };
        KNOWN.iter().find(|known| known.name == name)
    }
}

/// The command line that runs `command` in a terminal. `words` are the terminal's program and further words of the
/// user's, which may contain the placeholders of the settings.
///
/// # Errors
/// The word of the command that is not safe for this terminal.
pub(super) fn words<'c>(
    known: Option<&Known>,
    words: &[OsString],
    folder: &Path,
    command: &'c [OsString],
) -> Result<Vec<OsString>, &'c OsStr> {
    let Some((program, rest)) = words.split_first() else { return Ok(command.to_vec()) };
    let has_placeholder = rest.iter().any(|word| word == COMMAND);
    // A user who places the command on an unknown terminal's command line is trusted to know that terminal.
    if !(known.is_none() && has_placeholder) {
        let is_safe = known.unwrap_or(&UNKNOWN).is_safe;
        command.iter().find(|word| !is_safe(word)).map_or(Ok(()), |word| Err(word.as_os_str()))?;
    }
    let with_folder = |word: &OsString| if word == FOLDER { folder.into() } else { word.clone() };
    let mut out = vec![program.clone()];
    if has_placeholder {
        for word in rest {
            if word == COMMAND { out.extend_from_slice(command) } else { out.push(with_folder(word)) }
        }
        return Ok(out);
    }
    let known = known.unwrap_or(&UNKNOWN);
    let mut rest = rest;
    if let Some(subcommand) = known.subcommand {
        rest = rest.strip_prefix(&[OsString::from(subcommand)]).unwrap_or(rest);
        out.push(subcommand.into());
    }
    if !rest.iter().any(|word| word == FOLDER) {
        out.extend(known.folder.iter().map(|&word| {
            let mut out = OsString::from(if word == FOLDER { "" } else { word });
            if word == FOLDER || word.ends_with('=') {
                out.push(folder);
            }
            out
        }));
    }
    out.extend(rest.iter().map(with_folder));
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.iter().any(|wanted| word == wanted));
    match known.command_option {
        Some(_) if known.name.is_empty() && has(&["-e", "-x", "--"]) => {}
        Some(option) if !has(&[option]) => out.push(option.into()),
        _ => {}
    }
    out.extend_from_slice(command);
    Ok(out)
}

/// Whether a word has no `$`, which could start a variable.
fn no_variable(word: &OsStr) -> bool {
    !word.as_encoded_bytes().contains(&b'$')
}

/// Whether a word has nothing that Windows Terminal interprets.
fn safe_for_wt(word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    !bytes.is_empty() && !bytes.iter().any(|byte| b";%\"\n\r".contains(byte)) && !bytes.ends_with(b"\\")
}
