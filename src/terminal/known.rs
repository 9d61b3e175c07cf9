//! The terminals that are known: how each is told where to open and what to run.
//!
//! Most take the words after their option as they are. Some join them to a line that a shell, or what resembles one, takes
//! apart again, and there `$(...)` would run: what each can be trusted with is part of the list. It was tried with words made
//! to break it, on the releases in Debian 12, but for those marked (read), which is what their documentation says.

use crate::config::{COMMAND, FOLDER};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A terminal that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Its program's file name.
    pub(super) name: &'static str,
    /// What must come right after the program.
    subcommand: Option<&'static str>,
    /// The words that say where to open, in which [`FOLDER`] stands for the folder; it is put behind a last `=`. Not needed
    /// where the window opens in the process that is started, in its working directory.
    folder: &'static [&'static str],
    /// What comes before the command.
    before: Option<&'static str>,
    /// Whether it hands a word of the command on as it is.
    takes: fn(&OsStr) -> bool,
    /// What it draws on.
    pub(super) on: On,
}

/// What a terminal draws on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    /// Any display.
    Any,
    /// X11 alone.
    X11,
    /// Wayland alone.
    Wayland,
    /// What it draws on is its own affair: it is only used where it is named.
    Own,
}

const HERE: &[&str] = &[];
const WORKING: &[&str] = &["--working-directory="];

const fn any(name: &'static str, folder: &'static [&'static str], before: Option<&'static str>) -> Known {
    Known { name, subcommand: None, folder, before, takes: |_| true, on: On::Any }
}

const fn x11(name: &'static str, folder: &'static [&'static str], before: &'static str) -> Known {
    Known { on: On::X11, ..any(name, folder, Some(before)) }
}

/// One that is not looked for: it needs another program to run, or another may have its name.
const fn named(known: Known) -> Known {
    Known { on: On::Own, ..known }
}

/// One that may take its command for a line of text.
const fn line(name: &'static str, folder: &'static [&'static str], before: Option<&'static str>) -> Known {
    Known { takes: plain, ..any(name, folder, before) }
}

/// All of them; where there is no other sign of the user's liking, the first that is there is taken.
pub(super) static KNOWN: &[Known] = &[
    any("ghostty", WORKING, Some("-e")).only(plain), // (read) before 1.2 it made a line of the words
    any("kitty", &["--directory="], None),
    Known { subcommand: Some("start"), ..any("wezterm", &["--cwd", FOLDER], Some("--")) }, // (read)
    any("alacritty", &["--working-directory", FOLDER], Some("-e")),
    Known { on: On::Wayland, ..any("foot", WORKING, None) }, // (read)
    named(any("footclient", WORKING, None)),                 // (read)
    any("ptyxis", WORKING, Some("--")),                      // (read)
    any("gnome-terminal", WORKING, Some("--")),
    any("kgx", WORKING, Some("--")),
    any("konsole", &["--workdir", FOLDER], Some("-e")).only(no_variable), // puts in values for `$NAME`
    any("xfce4-terminal", WORKING, Some("-x")),                           // its `-e` takes a line
    any("mate-terminal", WORKING, Some("-x")),                            // the same
    line("tilix", WORKING, Some("-e")),
    line("terminator", WORKING, Some("-x")),
    any("lxterminal", WORKING, Some("-e")),
    any("qterminal", &["-w", FOLDER], Some("-e")).only(no_variable), // the same as konsole
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
    // Choosers: what comes in the end may be any of the above.
    line("xdg-terminal-exec", HERE, None),
    line("x-terminal-emulator", HERE, Some("-e")),
    // `.` is the working directory. A `;` begins a new command even inside a word, and `%NAME%` is a variable (read).
    named(any("wt", &["-d", "."], None).only(no_sign_of_wt)),
];

/// What is not known is told as most are, and trusted with nothing that a shell could make something of.
static UNKNOWN: Known = Known { on: On::Own, ..line("", HERE, Some("-e")) };

impl Known {
    const fn only(self, takes: fn(&OsStr) -> bool) -> Self {
        Self { takes, ..self }
    }

    /// The terminal of this file name.
    pub(super) fn of(name: &OsStr) -> Option<&'static Self> {
        let name = name.to_str()?;
        let name = if cfg!(windows) { name.strip_suffix(".exe").unwrap_or(name) } else { name };
        KNOWN.iter().find(|known| known.name == name)
    }
}

/// The words that run `command` in the terminal that `words` start. These begin with its program; they may hold further words
/// of the user's, with the placeholders of the settings.
///
/// # Errors
/// The word of the command that this terminal would not hand on as it is.
pub(super) fn words<'c>(
    known: Option<&Known>,
    words: &[OsString],
    folder: &Path,
    command: &'c [OsString],
) -> Result<Vec<OsString>, &'c OsStr> {
    let Some((program, rest)) = words.split_first() else { return Ok(command.to_vec()) };
    let is_placed = rest.iter().any(|word| word == COMMAND);
    // Of a terminal that is not known, a user who says where the command comes is taken to know it.
    if !(known.is_none() && is_placed) {
        let takes = known.unwrap_or(&UNKNOWN).takes;
        command.iter().find(|word| !takes(word)).map_or(Ok(()), |word| Err(word.as_os_str()))?;
    }
    let with_folder = |word: &OsString| if word == FOLDER { folder.into() } else { word.clone() };
    let mut out = vec![program.clone()];
    if is_placed {
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
    match known.before {
        Some(_) if known.name.is_empty() && has(&["-e", "-x", "--"]) => {}
        Some(before) if !has(&[before]) => out.push(before.into()),
        _ => {}
    }
    out.extend_from_slice(command);
    Ok(out)
}

/// A word that means itself to every shell, and to all that takes lines apart as one does. One of hyphens alone may end a
/// terminal's own options.
pub(super) fn plain(word: &OsStr) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "_@+=:,./-".contains(c) || (cfg!(windows) && c == '\\');
    let is_word = |word: &str| word.chars().all(is_plain) && !word.starts_with('=') && word.chars().any(|c| c != '-');
    word.to_str().is_some_and(is_word)
}

/// A word without anything that could name a variable.
fn no_variable(word: &OsStr) -> bool {
    !word.as_encoded_bytes().contains(&b'$')
}

/// A word in which Windows Terminal sees no sign of its own.
fn no_sign_of_wt(word: &OsStr) -> bool {
    let bytes = word.as_encoded_bytes();
    !bytes.is_empty() && !bytes.iter().any(|byte| b";%\"\n\r".contains(byte)) && !bytes.ends_with(b"\\")
}
