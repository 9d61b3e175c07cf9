//! The programs of the demo's other processes: all are this one.

#![allow(clippy::disallowed_methods, reason = "a scratch folder of its own")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of those that have an agent's name, in the stage's folder.
const NAMED: &str = "players";
/// The folder of those that stand for an agent's program, in the stage's folder.
const STAND_INS: &str = "bin";

/// How the demo's other processes are started.
pub trait Programs {
    /// The command that starts the player of such a session, which must end when its standard input closes.
    fn player(&self, has_server: bool) -> io::Result<Command>;

    /// The command that starts the player of a guest with this id, which must end likewise, and says so with a line when it
    /// holds the session. `program` is this one, maybe by another name.
    fn guest(&self, program: &Path, folder: &Path, id: &str) -> Command;

    /// Writes a program that stands for an agent's, at this path. A guest's runs `guest`.
    ///
    /// # Errors
    /// It cannot be written.
    fn write_stand_in(&self, path: &Path, folder: &Path, guest: Option<&Path>) -> io::Result<()>;
}

/// The program that stands for that of this name in a terminal.
pub fn stand_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(STAND_INS).join(if cfg!(windows) { format!("{name}.cmd") } else { name.to_owned() })
}

/// This program by another name, in the stage's folder: only a process of a program of its name is taken for an agent's.
/// Where there can be none, this program as it is: its sessions are played, and nothing is signalled.
///
/// # Errors
/// It is not known where this program is.
pub(crate) fn named(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = folder.join(NAMED).join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let made = std::fs::create_dir_all(folder.join(NAMED)).and_then(|()| link(&own, &path));
    Ok(if made.is_ok() { path } else { own })
}

/// Links the file, or copies it: to another file system, or where links to others' files are forbidden.
#[cfg(unix)]
fn link(own: &Path, path: &Path) -> io::Result<()> {
    std::fs::hard_link(own, path).or_else(|_| std::fs::copy(own, path).map(drop))
}

/// Copies the file: a link to a program that runs could not be removed.
#[cfg(not(unix))]
fn link(own: &Path, path: &Path) -> io::Result<()> {
    std::fs::copy(own, path).map(drop)
}
