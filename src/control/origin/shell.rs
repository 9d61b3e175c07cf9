//! Shells: whether somebody types into one.

use crate::system::process::{arguments, executable};
use crate::system::state_file;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The file names of shells, beside those in `/etc/shells`.
const SHELLS: [&str; 21] = [
    "ash", "bash", "busybox", "csh", "dash", "elvish", "es", "fish", "ion", "ksh", "ksh93", "loksh", "mksh", "murex",
    "nu", "oksh", "pwsh", "sh", "tcsh", "yash", "zsh",
];
/// The options of shells whose next word is their value, and not a script.
const WITH_VALUE: [&str; 8] = ["--rcfile", "--init-file", "-o", "+o", "-O", "+O", "--config", "--env-config"];

/// Whether a process is a shell that was not started to run a given command or script.
pub(super) fn is_typed_into(pid: u32) -> bool {
    let (Some(program), Some(arguments)) = (executable(pid), arguments(pid)) else { return false };
    is_shell(&program) && !runs_script(&arguments)
}

fn is_shell(program: &Path) -> bool {
    let is_known = program.file_name().and_then(OsStr::to_str).is_some_and(|name| SHELLS.contains(&name));
    is_known || state_file::read(Path::new("/etc/shells")).lines().any(|line| program == Path::new(line))
}

/// Whether a shell with this command line was started to run a given command or script.
fn runs_script(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&&*word) {
            words.next();
        } else if !word.starts_with(['-', '+']) || word == "--command" || is_command_option(&word) {
            return true;
        }
    }
    false
}

/// `-c`, alone or among other options of one letter.
fn is_command_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_566_a_shell_that_runs_a_script_is_not_typed_into() {
        let runs = |line: &str| runs_script(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for typed in
            ["-bash", "bash", "bash -i", "bash --norc -i", "bash --init-file /x/vscode.sh", "zsh -o vi", "sh -s"]
        {
            assert!(!runs(typed), "{typed}");
        }
        for script in
            ["bash -c date", "sh -ec date", "bash -ic date", "bash /x/loop.sh", "bash -x loop.sh", "nu --command ls"]
        {
            assert!(runs(script), "{script}");
        }
        assert!(is_shell(Path::new("/opt/bin/fish")) && !is_shell(Path::new("/usr/bin/script")));
    }
}
