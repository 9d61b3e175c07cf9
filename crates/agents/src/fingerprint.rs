//! What shows that a process is an agent's.

use super::program_file::{contains_near_end, is_named, is_node, is_script_of};
use pilotlight_system::mounts::Mounts;
use pilotlight_system::process::{arguments, executable};
use std::ffi::{OsStr, OsString};
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
    /// What the file of its program has near its end, whatever it is called.
    pub(crate) content: Option<&'static [u8]>,
}

impl Fingerprint {
    /// Whether a process runs the agent.
    pub(crate) fn is_run_by(&self, pid: u32) -> bool {
        executable(pid).is_some_and(|path| {
            self.is_of(&path, scripts(&path, || arguments(pid)).as_deref())
                || self.is_in_file_of(pid, || Mounts::read().of(&path).is_none())
        })
    }

    /// Whether a process runs the agent by what is in the file of its program, which may have any name. `is_local`: whether
    /// that can be read without waiting.
    pub(crate) fn is_in_file_of(&self, pid: u32, is_local: impl Fn() -> bool) -> bool {
        self.content.is_some_and(|content| contains_near_end(pid, content, is_local))
    }

    /// Whether this program is the agent's, by its path or by the arguments of the node that it is.
    pub(crate) fn is_of(&self, path: &Path, scripts: Option<&[OsString]>) -> bool {
        path.file_name().is_some_and(|name| is_named(name, self.program) || self.is_wrapped(name))
            // A package of npm may have it by this name on every system. Observed: Claude Code 2.1.332.
            || path.ends_with(Path::new(self.package).join("bin").join(format!("{}.exe", self.program)))
            || path.parent().zip(self.releases).is_some_and(|(folder, releases)| folder.ends_with(releases))
            || scripts.iter().copied().flatten().any(|argument| is_script_of(argument, self.package))
    }

    /// Whether this is the name that Nix gives the program where a script of its own name starts it.
    fn is_wrapped(&self, name: &OsStr) -> bool {
        let name = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix("-wrapped"));
        name == Some(self.program)
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
        content: None,
    };

    /// A copy of another name, as of whoever keeps several of them.
    #[test]
    #[cfg(target_os = "linux")]
    fn case_713_a_program_of_any_name_is_known_by_what_is_in_its_file() {
        use pilotlight_system::process::testing::{Running, copy};
        use std::process::{Command, Stdio};
        const WITH: Fingerprint = Fingerprint { content: Some(b"/claude-code.d.ts"), ..ITS };
        let folder = tempfile::tempdir().unwrap();
        // As long as such programs are, the most of it a hole; and the same without its content.
        let program = |name: &str, more: &str| {
            let path = folder.path().join(name);
            copy("/bin/cat", &path);
            let script = format!("truncate -s 64M \"$0\" && printf '{more}' >>\"$0\"");
            assert!(Command::new("sh").args(["-c", &script]).arg(&path).status().unwrap().success());
            Running::start(Command::new(&path).stdin(Stdio::piped()).stdout(Stdio::null()))
        };
        let (its, other) = (program("cc", "x/claude-code.d.ts-138c"), program("dd", "x/other.d.ts"));
        for is_local in [true, false] {
            let is_in = |process: &Running| WITH.is_in_file_of(process.pid(), || is_local);
            assert_eq!((is_in(&its), is_in(&other)), (is_local, false));
        }
        assert!(WITH.is_run_by(its.pid()) && !WITH.is_run_by(other.pid()) && !ITS.is_run_by(its.pid()));
    }

    #[test]
    fn case_526_a_program_is_known_by_each_name_that_its_packages_give_it() {
        for (path, is_its) in [
            ("/opt/claude", true),
            ("/home/me/.local/share/claude/versions/2.1.332", true),
            ("/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", true),
            ("/usr/lib/node_modules/@anthropic-ai/claude-code/bin/other.exe", false),
            ("/usr/lib/node_modules/other/bin/claude.exe", cfg!(windows)),
            ("/opt/claude-desktop", false),
            ("/nix/store/0123456789-claude-code-2.1.332/bin/.claude-wrapped", true),
            ("/nix/store/0123456789-other-1.0/bin/.other-wrapped", false),
        ] {
            assert_eq!(ITS.is_of(Path::new(path), None), is_its, "{path}");
        }
    }
}
