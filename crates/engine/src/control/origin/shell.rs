//! Shells: whether somebody types into one.

use pilotlight_system::process::{command_line, executable};
use pilotlight_system::state_file;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The file names of shells, beside those in `/etc/shells`.
const SHELLS: [&str; 21] = [
    "ash", "bash", "busybox", "csh", "dash", "elvish", "es", "fish", "ion", "ksh", "ksh93", "loksh", "mksh", "murex",
    "nu", "oksh", "pwsh", "sh", "tcsh", "yash", "zsh",
];
/// Whether a process is a shell that was not started to run a given command or script.
pub(super) fn is_typed_into(pid: u32) -> bool {
    let (Some(program), Some(words)) = (executable(pid), command_line(pid)) else { return false };
    is_shell(&program) && !runs_script(&name_of(&program), &words)
}

fn is_shell(program: &Path) -> bool {
    let is_known = program.file_name().and_then(OsStr::to_str).is_some_and(|name| SHELLS.contains(&name));
    is_known || state_file::read(Path::new("/etc/shells")).lines().any(|line| program == Path::new(line))
}

fn name_of(program: &Path) -> String {
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether the next word of a shell's command line is the value of this option, and not a script.
fn takes_value(shell: &str, option: &str) -> bool {
    match option {
        "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O" => true,
        "--init-command" | "-C" => shell == "fish",
        "--config" | "--env-config" | "--execute" | "-e" => shell == "nu",
        _ => false,
    }
}

/// Whether a shell of this name with this command line was started to run a given command or script, and nothing more.
fn runs_script(shell: &str, arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    if shell == "pwsh" && words.clone().any(|word| word.eq_ignore_ascii_case("-noexit")) {
        return false;
    }
    while let Some(word) = words.next() {
        if takes_value(shell, &word) {
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
        let runs = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            runs_script(words[0].to_str().unwrap().trim_start_matches('-'), &words)
        };
        for typed in [
            "-bash",
            "bash",
            "bash -i",
            "bash --norc -i",
            "bash --init-file /x/vscode.sh",
            "zsh -o vi",
            "sh -s",
            "fish --init-command source",
            "fish -C source",
            "nu -e source",
            "pwsh -noexit -command source",
        ] {
            assert!(!runs(typed), "{typed}");
        }
        for script in [
            "bash -c date",
            "sh -ec date",
            "bash -ic date",
            "bash /x/loop.sh",
            "bash -x loop.sh",
            "bash -e loop.sh",
            "bash -C loop.sh",
            "nu --command ls",
            "pwsh -command ls",
        ] {
            assert!(runs(script), "{script}");
        }
        assert!(is_shell(Path::new("/opt/bin/fish")) && !is_shell(Path::new("/usr/bin/script")));
    }

    /// As editors start it, with a file that exists.
    #[test]
    fn case_566_a_shell_with_a_file_of_its_settings_is_typed_into() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("integration.sh");
        std::fs::write(&file, "").unwrap();
        let mut shell = std::process::Command::new("bash");
        shell.arg("--init-file").arg(&file).arg("-i").stdin(std::process::Stdio::piped());
        let mut shell = shell.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let is_typed = || is_typed_into(shell.id());
        // Until it has become the shell, it is still this test.
        while command_line(shell.id()).is_none_or(|words| words.last().is_none_or(|word| word != "-i")) {
            std::thread::yield_now();
        }
        assert!(is_typed());
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
