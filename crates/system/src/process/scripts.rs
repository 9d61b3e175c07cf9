//! The scripts on a command line, by their real paths.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The script is the first argument that is no option, but an option's value (`--require x`) may precede it.
const CANDIDATES: usize = 3;

/// `arguments`, followed by the real paths of the first few that may be the script: npm installs a command as a symlink
/// (`/usr/bin/copilot`), and an interpreter shows the path of the link. `folder` is the process's working directory, if
/// known.
#[cfg_attr(
    target_os = "linux",
    expect(unreachable_pub, reason = "other systems have it read the command lines of agents")
)]
pub fn with_real_scripts(mut arguments: Vec<OsString>, folder: Option<&Path>) -> Vec<OsString> {
    let resolved: Vec<OsString> = arguments
        .iter()
        .skip(1)
        .filter(|argument| !argument.as_encoded_bytes().starts_with(b"-"))
        .take(CANDIDATES)
        .filter_map(|argument| {
            let path = folder.map_or_else(|| PathBuf::from(argument), |folder| folder.join(argument));
            path.is_absolute().then(|| path.canonicalize().ok()).flatten().map(PathBuf::into_os_string)
        })
        .collect();
    arguments.extend(resolved);
    arguments
}
