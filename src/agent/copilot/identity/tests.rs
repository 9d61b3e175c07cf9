//! Families of real processes, on Linux.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{ancestors, copilot_ancestor, is_copilot};
use crate::system::process::testing::{Running, copy};

/// A shell of the given file name that runs `script`, which prints a process id.
struct Shell {
    _folder: tempfile::TempDir,
    shell: Running,
    printed: u32,
}

impl Shell {
    fn start(name: &str, script: &str, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        copy("/bin/sh", &path);
        let mut command = Command::new(&path);
        command.args(["-c", script]).env_clear().envs(environment.iter().copied());
        command.env("PATH", std::env::var_os("PATH").unwrap());
        let mut shell = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(shell.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { _folder: folder, shell, printed: line.trim().parse().unwrap() }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // It may have left the shell's process group.
        let _ = kill_process(Pid::from_raw(self.printed as i32).unwrap(), Signal::KILL);
    }
}

/// A tool that waits, two shells down.
const TOOL: &str = "sh -c 'cat <&3 >/dev/null & echo $!; wait' 3<&0; exit 0";
/// A tool that is handed to init: its shell ends when its input does. It prints its own id and stops, because a process
/// shows no environment during exec.
const HANDED_OVER: &str = "setsid sh -c 'echo $$; kill -STOP $$' & read line";

/// The answer for this test itself, which Copilot may run.
fn here() -> Option<u32> {
    copilot_ancestor(std::process::id(), &[])
}

#[test]
fn case_107c_a_tool_of_a_session_has_copilot_above_it() {
    let tree = Shell::start("copilot", TOOL, &[]);
    assert_eq!(copilot_ancestor(tree.printed, &[]), Some(tree.shell.pid()));
    assert_eq!(copilot_ancestor(tree.shell.pid(), &[]), Some(tree.shell.pid()), "itself included");
    assert_eq!(ancestors(tree.printed).iter().position(|pid| *pid == tree.shell.pid()), Some(1));
}

#[test]
fn a_name_from_the_config_counts_and_others_do_not() {
    let tree = Shell::start("agency", TOOL, &[]);
    assert_eq!(copilot_ancestor(tree.printed, &[]), here());
    assert_eq!(copilot_ancestor(tree.printed, &["agency".to_owned()]), Some(tree.shell.pid()));
}

#[test]
fn case_107c_a_tool_that_left_its_family_is_recognized_by_its_marks() {
    for (environment, marked) in [
        (&[("COPILOT_CLI", "1")][..], true),
        (&[("A", "b"), ("COPILOT_AGENT_SESSION_ID", "0000")], true),
        (&[("COPILOT_CLI", ""), ("COPILOT_CLI_BINARY_VERSION", "1"), ("X_COPILOT_CLI", "1")], false),
        (&[], false),
    ] {
        let mut tree = Shell::start("sh", HANDED_OVER, environment);
        tree.shell.0.wait().unwrap();
        assert!(!ancestors(tree.printed).contains(&std::process::id()), "init has it");
        let expected = if marked { Some(tree.printed) } else { None };
        assert_eq!(copilot_ancestor(tree.printed, &[]), expected, "{environment:?}");
    }
}

#[test]
fn a_mark_on_an_ancestor_counts_if_a_tool_cleared_its_own() {
    let tree =
        Shell::start("sh", "env -i sh -c 'cat <&3 >/dev/null & echo $!; wait' 3<&0; exit 0", &[("COPILOT_CLI", "1")]);
    let found = copilot_ancestor(tree.printed, &[]);
    assert_eq!(found, here().filter(|pid| is_copilot(*pid, &[])).or(Some(tree.shell.pid())));
}

#[test]
fn a_missing_process_has_no_copilot_above_it() {
    for pid in [0, u32::MAX] {
        assert_eq!(copilot_ancestor(pid, &[]), None);
    }
}
