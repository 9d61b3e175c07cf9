//! What shows that a process is an agent's.

use super::program_file::{is_named, is_node, is_script_of};
use pilotlight_system::process::{arguments, executable};
use std::ffi::OsString;
use std::path::Path;

/// What an agent, and what it starts for a session, is recognised by.
pub(crate) struct Fingerprint {
    /// The file name of its program.
    pub(crate) program: &'static str,
    /// The folder of its programs, where these are named after their releases.
    pub(crate) releases: Option<&'static str>,
    /// The package in which npm has it, for those that node runs.
    pub(crate) package: &'static str,
    /// Variables that it sets for its tools, and not for itself.
    pub(crate) marks: &'static [&'static str],
}

impl Fingerprint {
    /// Whether a process runs the agent.
    pub(crate) fn is_run_by(&self, pid: u32) -> bool {
        executable(pid).is_some_and(|path| self.is_of(&path, scripts(&path, || arguments(pid)).as_deref()))
    }

    /// Whether this program is the agent's, by its path or by the arguments of the node that it is.
    pub(crate) fn is_of(&self, path: &Path, scripts: Option<&[OsString]>) -> bool {
        path.file_name().is_some_and(|name| is_named(name, self.program))
            // A package of npm may have it by this name on every system. Observed: Claude Code 2.1.332.
            || path.ends_with(Path::new(self.package).join("bin").join(format!("{}.exe", self.program)))
            || path.parent().zip(self.releases).is_some_and(|(folder, releases)| folder.ends_with(releases))
            || scripts.iter().copied().flatten().any(|argument| is_script_of(argument, self.package))
    }
}

/// The arguments of a program, if it is node.
pub(crate) fn scripts(path: &Path, arguments: impl FnOnce() -> Option<Vec<OsString>>) -> Option<Vec<OsString>> {
    if is_node(path) { arguments() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITS: Fingerprint = Fingerprint {
        program: "claude",
        releases: Some("claude/versions"),
        package: "@anthropic-ai/claude-code",
        marks: &[],
    };

    #[test]
    fn case_526_a_program_is_known_by_each_name_that_its_packages_give_it() {
        for (path, is_its) in [
            ("/opt/claude", true),
            ("/home/me/.local/share/claude/versions/2.1.332", true),
            ("/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", true),
            ("/usr/lib/node_modules/@anthropic-ai/claude-code/bin/other.exe", false),
            ("/usr/lib/node_modules/other/bin/claude.exe", cfg!(windows)),
            ("/opt/claude-desktop", false),
        ] {
            assert_eq!(ITS.is_of(Path::new(path), None), is_its, "{path}");
        }
    }
}
