//! What counts as Copilot: its program, and what it starts.

use crate::fingerprint::Fingerprint;
use crate::program_file::{is_named, is_node, is_script_of};
use pilotlight_system::process::{arguments, executable};
use std::ffi::OsString;
use std::path::Path;

/// What Copilot is recognised by. It sets the variables for its MCP servers, too; the second holds the session's id. There
/// is also a package `@github/copilot-language-server`.
pub(super) const FINGERPRINT: Fingerprint = Fingerprint {
    program: "copilot",
    releases: None,
    package: "@github/copilot",
    marks: &["COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"],
    content: None,
};

/// Whether the process provably is Copilot now.
pub(super) fn is_copilot(pid: u32, names: &[String]) -> bool {
    executable(pid).and_then(|path| runs_copilot(&path, names, || arguments(pid))) == Some(true)
}

/// Whether a process that runs this executable is Copilot. `None` if it is a node whose arguments cannot be read.
///
/// `names` are file names of further executables that count as Copilot, from the config; on Windows with or without
/// `.exe`. `arguments` is called only for a node: its command line, followed by the real paths of its scripts.
pub(crate) fn runs_copilot(
    executable: &Path,
    names: &[String],
    arguments: impl FnOnce() -> Option<Vec<OsString>>,
) -> Option<bool> {
    let name = executable.file_name()?;
    if is_named(name, FINGERPRINT.program) || names.iter().any(|other| is_named(name, other)) {
        Some(true)
    } else if is_node(executable) {
        Some(arguments()?.iter().any(|argument| is_script_of(argument, FINGERPRINT.package)))
    } else {
        Some(false)
    }
}

/// Whether a command line seems to be Copilot's. For a process of which nothing else can be read.
#[cfg(target_os = "linux")]
pub(super) fn names_copilot(arguments: &[OsString]) -> bool {
    let program = arguments.first().map(Path::new);
    program.and_then(Path::file_name).is_some_and(|name| name == "copilot")
}
