//! Refused resources: threads and output.

use crate::support::executable::copy_program;
use crate::support::synthetic::User;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The commands without side effects.
const COMMANDS: [&[&str]; 12] = [
    &["--help"],
    &["--version"],
    &["help", "status"],
    &["status"],
    &["status", "--json"],
    &["status", "--format", "waybar"],
    &["explain", "00000001"],
    &["doctor"],
    &["doctor", "--json"],
    &["diagnostics"],
    &["config", "--print"],
    &["replay", "LOG"],
];

/// These arguments, with the path of the session's log for `LOG`.
fn arguments(user: &User, args: &[&str]) -> Vec<String> {
    let log = user.session(1).log().display().to_string();
    args.iter().map(|arg| if *arg == "LOG" { log.clone() } else { (*arg).to_owned() }).collect()
}

#[test]
fn case_145_output_that_cannot_be_written_is_reported() {
    let user = User::new();
    let session = user.session(1);
    let _owner = session.owner(&user);
    session.prompt();
    let further: [&[&str]; 3] = [&["replay", "--json", "LOG"], &["watch", "--json"], &["watch", "--format", "tmux"]];
    for args in COMMANDS.iter().chain(&further) {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let args = arguments(&user, args);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let output = user.pilotlight(&args).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.lines().any(|line| line.contains("No space left on device")), "{args:?}: {stderr}");
        // A closed pipe is no error, or exit code 1.
        let mut command = user.pilotlight(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{args:?}: {status}");
    }
}

/// The report of another user without other processes: none of this run's, and none of a run at the same time.
pub(super) struct SessionReport {
    pub(super) user: User,
    program: PathBuf,
    /// The user and group id.
    number: u32,
}

impl SessionReport {
    /// `None` if the test may not become another user.
    pub(super) fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let user = User::new();
        let program = user.scratch.path().join("pilotlight");
        copy_program(env!("CARGO_BIN_EXE_pilotlight"), &program);
        let session = user.session(1);
        session.prompt();
        session.append(session.line(Duration::ZERO, "session.shutdown", "{}"));
        let nth = std::process::id().wrapping_mul(4).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        // Between those of people and of the system.
        let number = 20_000 + nth % 40_000;
        let owner = format!("{number}:{number}");
        assert!(Command::new("chown").args(["-R", &owner]).arg(user.scratch.path()).status().unwrap().success());
        Some(Self { user, program, number })
    }

    /// A command that becomes this user, then execs the program in its next arguments.
    fn setpriv(&self) -> Command {
        let given = self.user.pilotlight(&[]);
        let mut command = Command::new("setpriv");
        command.env_clear().envs(given.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let number = self.number;
        command.args([format!("--reuid={number}"), format!("--regid={number}"), "--clear-groups".into()]);
        command
    }

    /// Makes the system refuse further threads to this process of the user.
    pub(super) fn forbid_threads(&self, pid: u32) {
        let done = self.setpriv().args(["prlimit", "--nproc=1", &format!("--pid={pid}")]).status().unwrap();
        assert!(done.success());
    }

    /// Pilotlight as this user runs it.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.setpriv();
        command.arg(&self.program).args(args);
        command
    }

    /// Runs Pilotlight with an option of `prlimit` until it exits. Returns its exit code and what it printed.
    fn run(&self, limit: &str, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = self.setpriv();
        let Output { status, stdout, stderr } =
            command.args(["prlimit", limit]).arg(&self.program).args(args).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (status.code(), text(&stdout), text(&stderr))
    }
}

/// `status` needs one thread, and `watch` says what it misses. A library that panics without a thread is not silenced.
#[test]
fn case_142_without_further_threads_what_needs_none_works() {
    let Some(report) = SessionReport::new() else { return };
    for most in 1..=4 {
        let (code, out, err) = report.run(&format!("--nproc={most}"), &["status", "--json"]);
        assert_eq!(code, Some(0), "{err}");
        let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(rows[0]["status"], "ended", "{out}");
    }
    let (code, _, err) = report.run("--nproc=1", &["watch", "--json"]);
    assert_eq!(code, Some(1));
    let said = err.lines().filter(|line| line.starts_with("pilotlight: the system refuses a thread")).count();
    assert_eq!(said, 1, "{err}");
}
