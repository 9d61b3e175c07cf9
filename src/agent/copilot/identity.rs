//! What counts as Copilot: its program, and the processes that it started.
//!
//! An agent must not approve its own requests, so `approve` checks who calls it with [`copilot_ancestor`]. A tool of a
//! session is a descendant of Copilot, unless it was handed to init on the way, as by `setsid`, `nohup ... &` and every
//! double fork. But Copilot marks the environment of its tools ([`AGENT_MARKS`]), and environments are inherited. So
//! both are checked.
//!
//! This keeps a script from answering for the user by accident or by habit. It is not a security boundary: a program
//! that clears its environment *and* leaves its family shows neither sign. What answers for the user is therefore also
//! judged by where it comes from (`control/origin`).

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::system::process::{ancestors, arguments, executable, is_started_with};

/// The variables that Copilot sets for its tools and its MCP servers, and not for itself. The second holds the
/// session's id.
pub const AGENT_MARKS: [&str; 2] = ["COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"];

/// The nearest process, starting with `pid` itself, that is Copilot: it runs Copilot by the rules for owners, with the
/// same further `names`. Otherwise the nearest that has the marks of Copilot's tools: a process of Copilot's started it
/// and handed it to init, or has ended.
///
/// A process that cannot be read (another user's, like `sudo`) is skipped: it is not taken for Copilot.
pub fn copilot_ancestor(pid: u32, names: &[String]) -> Option<u32> {
    let mut line = vec![pid];
    line.extend(ancestors(pid));
    let runs = line.iter().find(|pid| is_copilot(**pid, names));
    runs.or_else(|| line.iter().find(|pid| is_started_with(**pid, &AGENT_MARKS))).copied()
}

/// Whether the process provably is Copilot now.
pub(super) fn is_copilot(pid: u32, names: &[String]) -> bool {
    executable(pid).and_then(|path| runs_copilot(&path, names, || arguments(pid))) == Some(true)
}

/// Whether a process that runs this executable is Copilot. `None` if it is a node whose arguments cannot be read.
///
/// `names` are file names of further executables that count as Copilot, from the config; on Windows with or without
/// `.exe`. `arguments` is called only for a node: its command line, followed by the real paths of its scripts.
pub(super) fn runs_copilot(
    executable: &Path,
    names: &[String],
    arguments: impl FnOnce() -> Option<Vec<OsString>>,
) -> Option<bool> {
    let name = executable.file_name()?;
    if is_named(name, "copilot") || names.iter().any(|other| is_named(name, other)) {
        Some(true)
    } else if is_node(executable) {
        Some(arguments()?.iter().any(|argument| names_the_package(argument)))
    } else {
        Some(false)
    }
}

/// Whether this executable is node, which runs Copilot as a script.
pub(super) fn is_node(executable: &Path) -> bool {
    executable.file_name().is_some_and(|name| is_named(name, "node") || is_named(name, "nodejs"))
}

/// Whether a command line seems to be Copilot's. For a process of which nothing else can be read.
#[cfg(target_os = "linux")]
pub(super) fn names_copilot(arguments: &[OsString]) -> bool {
    let program = arguments.first().map(Path::new);
    program.and_then(Path::file_name).is_some_and(|name| name == "copilot")
}

/// Whether an executable's file name is `wanted`: exactly on Linux, ignoring case elsewhere, and on Windows also
/// ignoring `.exe`.
fn is_named(name: &OsStr, wanted: &str) -> bool {
    #[cfg(target_os = "linux")]
    return name == wanted;
    #[cfg(not(target_os = "linux"))]
    {
        let bare = |name: &str| {
            let name = name.to_ascii_lowercase();
            let suffix = if cfg!(windows) { ".exe" } else { "" };
            name.strip_suffix(suffix).map_or(name.clone(), str::to_owned)
        };
        bare(&name.to_string_lossy()) == bare(wanted)
    }
}

/// Whether the components of an argument include `@github/copilot`, as in `.../node_modules/@github/copilot/index.js`,
/// but not `@github/copilot-language-server`.
fn names_the_package(argument: &OsStr) -> bool {
    let is_separator = |byte: &u8| *byte == b'/' || (cfg!(windows) && *byte == b'\\');
    let mut parts = argument.as_encoded_bytes().split(is_separator).filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        if part == b"@github" && parts.peek() == Some(&&b"copilot"[..]) {
            return true;
        }
    }
    false
}
