//! Families of real processes, on Linux.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{CallingAgent, agent_above, ancestors};
use pilotlight_system::process::testing::{Running, copy};

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
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
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

/// The answer for this test itself, which an agent may run.
fn here() -> Option<CallingAgent> {
    agent_above(std::process::id(), &[])
}

fn behind(pid: u32, agent: &'static str) -> Option<CallingAgent> {
    Some(CallingAgent { pid, agent })
}

#[test]
fn case_107c_case_248_a_tool_of_a_session_has_its_agent_above_it() {
    for (program, agent) in [
        ("copilot", "Copilot"),
        ("claude", "Claude Code"),
        (".local/share/claude/versions/2.1.330", "Claude Code"),
        ("codex", "Codex"),
        ("opencode", "opencode"),
    ] {
        let tree = Shell::start(program, TOOL, &[]);
        assert_eq!(agent_above(tree.printed, &[]), behind(tree.shell.pid(), agent));
        assert_eq!(agent_above(tree.shell.pid(), &[]), behind(tree.shell.pid(), agent), "itself included");
        assert_eq!(ancestors(tree.printed).iter().position(|pid| *pid == tree.shell.pid()), Some(1));
    }
}

#[test]
fn a_name_from_the_config_counts_and_others_do_not() {
    let tree = Shell::start("agency", TOOL, &[]);
    assert_eq!(agent_above(tree.printed, &[]), here());
    assert_eq!(agent_above(tree.printed, &["agency".to_owned()]), behind(tree.shell.pid(), "Copilot"));
}

#[test]
fn case_107c_case_248_a_tool_that_left_its_family_is_recognized_by_its_marks() {
    for (environment, agent) in [
        (&[("COPILOT_CLI", "1")][..], Some("Copilot")),
        (&[("A", "b"), ("COPILOT_AGENT_SESSION_ID", "0000")], Some("Copilot")),
        (&[("CLAUDECODE", "1")], Some("Claude Code")),
        (&[("CODEX_THREAD_ID", "0000")], Some("Codex")),
        (&[("OPENCODE", "1")], Some("opencode")),
        (&[("OPENCODE", "1"), ("COPILOT_CLI", "1")], Some("Copilot")),
        (&[("GEMINI_CLI", "1")], Some("Gemini CLI")),
        (&[("COPILOT_CLI", ""), ("COPILOT_CLI_BINARY_VERSION", "1"), ("X_COPILOT_CLI", "1")], None),
        (&[("CODEX_HOME", "/a"), ("OPENCODE_CONFIG", "/b"), ("GEMINI_API_KEY", "c")], None),
        (&[], None),
    ] {
        let mut tree = Shell::start("sh", HANDED_OVER, environment);
        tree.shell.0.wait().unwrap();
        assert!(!ancestors(tree.printed).contains(&std::process::id()), "init has it");
        let expected = agent.and_then(|agent| behind(tree.printed, agent));
        assert_eq!(agent_above(tree.printed, &[]), expected, "{environment:?}");
    }
}

#[test]
fn a_mark_on_an_ancestor_counts_if_a_tool_cleared_its_own() {
    let tree =
        Shell::start("sh", "env -i sh -c 'cat <&3 >/dev/null & echo $!; wait' 3<&0; exit 0", &[("COPILOT_CLI", "1")]);
    let above = here().filter(|above| ancestors(std::process::id()).contains(&above.pid) && !is_marked(above.pid));
    assert_eq!(agent_above(tree.printed, &[]), above.or(behind(tree.shell.pid(), "Copilot")));
}

/// Whether only its marks show that a process is an agent's.
fn is_marked(pid: u32) -> bool {
    super::agent_of(pid, &[]).is_none()
}

#[test]
fn a_missing_process_has_no_agent_above_it() {
    for pid in [0, u32::MAX] {
        assert_eq!(agent_above(pid, &[]), None);
    }
}
